"""The discrete Laplace distribution.

Let v be the integer nearest to mu, r = mu - v, from -1/2 to 1/2, and t = 1 / scale. Weights,
relative to that of v, sum to (1 + exp(-(1 - 2 abs(r)) t)) / (1 - exp(-t)): a geometric series on
either side of mu. Tails are geometric series, too, so that the cdf and its inverse are closed.
"""

from typing import Any

import numpy as np
import pytensor.tensor as pt
from numba.extending import register_jitable
from pymc import Discrete
from pymc.distributions.dist_math import check_icdf_parameters, check_icdf_value, check_parameters
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.numba_ops import draws
from pymc_dapper.distributions import _lattice
from pymc_dapper.distributions._noise import NoiseRV, log_tails

_EXPECTED = "scale must be positive, mu and scale finite, and mu +- 800 scale within int64"


@register_jitable
def _from_noise(uniform, exponential, mu, scale):  # type: ignore[no-untyped-def]  # for numba, too
    """Choose a side of mu, then go away from it by a geometric number of steps.

    The integer part of an exponential variate of mean `scale` is geometric: it is at least g with
    probability exp(-g / scale).
    """
    below = np.floor(mu)
    # The side up to mu has weight exp(-(mu - below) t), the other one exp(-(below + 1 - mu) t).
    lower_probability = 0.5 + 0.5 * np.tanh((0.5 - (mu - below)) / scale)
    upper = 1.0 * (uniform >= lower_probability)
    return below + upper + (2.0 * upper - 1.0) * np.floor(exponential * scale)


@register_jitable
def _valid(mu, scale):  # type: ignore[no-untyped-def]  # for numba, too
    return (scale > 0) & (np.abs(mu) + 800.0 * scale < _lattice.MAX_INT64)


class DiscreteLaplaceRV(NoiseRV):
    """Random variable of a discrete Laplace distribution."""

    name = "discrete_laplace"
    signature = "(),()->()"
    dtype = "int64"
    _print_name = ("DiscreteLaplace", "\\operatorname{DiscreteLaplace}")
    expected = _EXPECTED
    valid = staticmethod(_valid)

    @staticmethod
    def draw(rng: np.random.Generator, mu: Any, scale: Any, size: Any) -> np.ndarray:
        """Draw a side and a distance for each."""
        uniform, exponential = rng.random(size), rng.standard_exponential(size)
        return np.asarray(_from_noise(uniform, exponential, mu, scale)).astype("int64")


@draws(DiscreteLaplaceRV)
def _draw(rng, mu, scale):  # type: ignore[no-untyped-def]  # compiled by numba
    if not _valid(mu, scale):
        raise ValueError(_EXPECTED)
    return np.int64(_from_noise(rng.random(), rng.standard_exponential(), 1.0 * mu, scale))


def _checked(res: TensorVariable, mu: TensorVariable, scale: TensorVariable) -> TensorVariable:
    return check_parameters(res, scale > 0, msg="scale > 0")


def _excess(steps: TensorVariable, remainder: TensorVariable) -> TensorVariable:
    """``abs(steps - remainder) - abs(remainder)`` of whole steps, without cancellation."""
    sign = pt.sign(steps)
    return pt.abs(steps) - sign * remainder - pt.abs(sign) * pt.abs(remainder)


def _log_sides(remainder: TensorVariable, scale: TensorVariable) -> TensorVariable:
    """Log of the weight of both sides of mu, relative to the side of the nearest integer."""
    return pt.log1p(pt.exp(-(1.0 - 2.0 * pt.abs(remainder)) / scale))


def _smaller_tail(
    value: TensorVariable, mu: TensorVariable, scale: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Whether P(X <= value) is the smaller tail, else P(X > value), and that one's logarithm."""
    nearest, remainder = _lattice.split_location(mu)
    steps = _lattice.whole_steps_from(value, nearest)
    is_lower, steps = _lattice.start_of_smaller_tail(steps, remainder)
    return is_lower, -_excess(steps, remainder) / scale - _log_sides(remainder, scale)


class DiscreteLaplace(Discrete):
    r"""Discrete Laplace distribution.

    Also called two-sided or double geometric. It is the noise of the geometric mechanism (Ghosh,
    Roughgarden & Sundararajan 2012).

    .. math::

       P(k \mid \mu, \text{scale}) = \frac{e^{-|k - \mu| / \text{scale}}}
                                         {\sum_{j \in \mathbb{Z}} e^{-|j - \mu| / \text{scale}}}

    ========  ==========================================================================
    Support   :math:`k \in \mathbb{Z}`
    Mean      :math:`\mu`, if :math:`2 \mu` is an integer
    Variance  :math:`2 e^{-t} / (1 - e^{-t})^2` with :math:`t` = 1 / scale, if :math:`\mu`
              is an integer
    ========  ==========================================================================

    Parameters
    ----------
    mu : tensor_like of float or int
        Location, any real number. The normaliser depends on its fractional part. An integer type
        has none, which makes the log-density cheaper.
    scale : tensor_like of float
        Scale (scale > 0). For epsilon-differential privacy it is sensitivity / epsilon. A trap: the
        rate of the geometric series, which some libraries ask for, is 1 / scale. Nor is it the
        standard deviation, which is near ``sqrt(2) * scale`` for a large scale.

    References
    ----------
    Ghosh, A., Roughgarden, T. & Sundararajan, M. (2012). Universally utility-maximizing privacy
    mechanisms. SIAM Journal on Computing 41(6), 1673-1693.

    Inusah, S. & Kozubowski, T. J. (2006). A discrete analogue of the Laplace distribution. Journal
    of Statistical Planning and Inference 136, 1090-1102.

    Examples
    --------
    >>> import pymc as pm
    >>> from pymc_dapper.distributions import DiscreteLaplace
    >>> pm.logp(DiscreteLaplace.dist(mu=120, scale=2.0), 123).eval().round(4)
    np.float64(-2.9068)
    """

    rv_op = DiscreteLaplaceRV()

    @classmethod
    def dist(cls, mu: Any, scale: Any, *args: Any, **kwargs: Any) -> TensorVariable:
        """Create the distribution without adding it to a model."""
        parameters = [_lattice.as_location(mu), _lattice.as_parameter(scale)]
        return super().dist(parameters, *args, **kwargs)

    support_point = _lattice.nearest_integer

    def logp(value: TensorVariable, mu: TensorVariable, scale: TensorVariable) -> TensorVariable:
        """Log-probability; minus infinity for values that aren't integers."""
        nearest, remainder = _lattice.split_location(mu)
        excess = _excess(_lattice.steps_from(value, nearest), remainder)
        res = -excess / scale + pt.log1mexp(-1.0 / scale) - _log_sides(remainder, scale)
        return _checked(_lattice.only_integers(value, res), mu, scale)

    logcdf, logccdf = log_tails(_smaller_tail, _checked)

    def icdf(value: TensorVariable, mu: TensorVariable, scale: TensorVariable) -> TensorVariable:
        """Smallest integer k (as a float) with P(X <= k) at least `value`."""
        nearest, remainder = _lattice.split_location(mu)
        log_sides = _log_sides(remainder, scale)
        inside = pt.and_(pt.gt(value, 0), pt.lt(value, 1))
        p = pt.switch(inside, value, 0.5)
        lower = pt.ceil(remainder - pt.abs(remainder) + (pt.log(p) + log_sides) * scale)
        upper = pt.ceil(remainder + pt.abs(remainder) - 1 - (pt.log1p(-p) + log_sides) * scale)
        # The last integer up to mu, in steps from the nearest. The lower formula holds until there.
        last = pt.floor(remainder)
        steps = pt.switch(pt.le(lower, last), lower, pt.maximum(upper, last + 1))

        def reaches(steps: TensorVariable) -> TensorVariable:
            is_lower, first = _lattice.start_of_smaller_tail(steps, remainder)
            log_tail = -_excess(first, remainder) / scale - log_sides
            return pt.exp(pt.switch(is_lower, log_tail, pt.log1mexp(log_tail))) >= p

        # Rounding may have led to a neighbour.
        above = pt.switch(reaches(steps), steps, steps + 1)
        steps = pt.switch(reaches(steps - 1), steps - 1, above)
        at_ends = pt.switch(pt.le(value, 0), -np.inf, np.inf)
        res = pt.switch(inside, nearest + steps, at_ends)
        return check_icdf_parameters(check_icdf_value(res, value), scale > 0, msg="scale > 0")
