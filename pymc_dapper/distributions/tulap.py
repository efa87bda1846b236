"""The truncated-uniform-Laplace (Tulap) distribution.

A discrete Laplace variate of rate -log(b) plus a uniform one on (-1/2, 1/2) is Tulap(0, b, 0). Its
density is constant within each cell around an integer, so its cdf is piecewise linear. Let x >= 0,
n = ceil(x - 1/2) its cell, and u = n + 1/2 - x, from 0 to 1, what is left of that cell. Then

    F0(-x) = 1 - F0(x) = b^n / (1 + b) (b + u (1 - b)).

That is the definition of Awan & Slavkovic (2018), written for a tail. Truncation takes probability
q/2 off either end: F(x) = (F0(x) - q/2) / (1 - q), within 0 and 1.
"""

from typing import Any

import numpy as np
import pytensor.tensor as pt
from numba.extending import register_jitable
from pymc import Continuous
from pymc.distributions.dist_math import check_icdf_parameters, check_icdf_value, check_parameters
from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.numba_ops import draws
from pymc_dapper.distributions._lattice import as_parameter
from pymc_dapper.distributions._noise import NoiseRV, log_tails

_EXPECTED = "b must be between 0 and 1, q at least 0 and below 1, and m finite"
_MSG = "0 < b < 1, 0 <= q < 1"


@register_jitable
def _from_uniform(uniform, m, b, q):  # type: ignore[no-untyped-def]  # for numba, too
    """Invert the cdf, from the nearer end: the tail's probability is from q / 2 to 1/2, not 0."""
    upper = 1.0 * (uniform >= 0.5)
    tail = 0.5 * q + (1.0 - q) * (0.5 + 0.5 * upper - uniform)
    log_b = np.log(b)
    log_scaled = np.log(tail) + np.log1p(b)
    cell = np.maximum(np.floor(log_scaled / log_b), 0.0)
    left = (np.exp(log_scaled - cell * log_b) - b) / (1.0 - b)
    left = np.minimum(np.maximum(left, 0.0), 1.0)
    return m + (2.0 * upper - 1.0) * np.maximum(cell + 0.5 - left, 0.0)


@register_jitable
def _valid(m, b, q):  # type: ignore[no-untyped-def]  # for numba, too
    return np.isfinite(m) & (b > 0) & (b < 1) & (q >= 0) & (q < 1)


class TulapRV(NoiseRV):
    """Random variable of a Tulap distribution."""

    name = "tulap"
    signature = "(),(),()->()"
    dtype = "floatX"
    _print_name = ("Tulap", "\\operatorname{Tulap}")
    expected = _EXPECTED
    valid = staticmethod(_valid)

    @staticmethod
    def draw(rng: np.random.Generator, m: Any, b: Any, q: Any, size: Any) -> np.ndarray:
        """Draw by inversion."""
        return np.asarray(_from_uniform(rng.random(size), m, b, q))


@draws(TulapRV)
def _draw(rng, m, b, q):  # type: ignore[no-untyped-def]  # compiled by numba
    if not _valid(m, b, q):
        raise ValueError(_EXPECTED)
    return _from_uniform(rng.random(), m, b, q)


def _conditions(b: TensorVariable, q: TensorVariable) -> list[TensorVariable]:
    return [b > 0, b < 1, q >= 0, q < 1]


def _checked(
    res: TensorVariable, m: TensorVariable, b: TensorVariable, q: TensorVariable
) -> TensorVariable:
    return check_parameters(res, *_conditions(b, q), msg=_MSG)


def _cell(distance: TensorVariable) -> TensorVariable:
    """Which integer's cell, (n - 1/2, n + 1/2], a distance from m is in."""
    return pt.maximum(pt.ceil(distance - 0.5), 0.0)


def _log_tail(distance: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Log-probability of less than minus the distance, without truncation."""
    cell = _cell(distance)
    left = pt.switch(pt.isinf(distance), 0.0, cell + 0.5 - distance)
    return cell * pt.log(b) - pt.log1p(b) + pt.log(b + left * (1.0 - b))


def _smaller_tail(
    value: TensorVariable, m: TensorVariable, b: TensorVariable, q: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Whether P(X <= value) is the smaller tail, else P(X > value), and that one's logarithm."""
    log_tail = _log_tail(pt.abs(value - m), b)
    # If at most exp(-700) is left, truncation has removed it, unless there is no truncation.
    cut = 0.5 * q * pt.exp(-pt.maximum(log_tail, -700.0))
    inside = pt.lt(cut, 1.0)
    kept = log_tail + pt.log1p(-pt.switch(inside, cut, 0.0)) - pt.log1p(-q)
    return pt.le(value, m), pt.switch(inside, kept, -np.inf)


def _tail_quantile(tail: TensorVariable, b: TensorVariable) -> TensorVariable:
    """Distance below m beyond which the noise has this probability, without truncation."""
    log_b = pt.log(b)
    log_scaled = pt.log(tail) + pt.log1p(b)
    cell = pt.maximum(pt.floor(log_scaled / log_b), 0.0)
    left = pt.clip((pt.exp(log_scaled - cell * log_b) - b) / (1.0 - b), 0.0, 1.0)
    return pt.maximum(cell + 0.5 - left, 0.0)


class Tulap(Continuous):
    r"""Truncated-uniform-Laplace distribution.

    The noise of uniformly most powerful private tests for binomial data (Awan & Slavkovic 2018,
    2020).

    With :math:`[x]` the integer nearest to x, the untruncated law has the density

    .. math::

       f_0(x) = \frac{1 - b}{1 + b} b^{|[x]|}

    and the distribution function :math:`F_0`. Then

    .. math::

       f(x \mid m, b, q) = \frac{f_0(x - m)}{1 - q}
       \quad \text{where} \quad q / 2 \le F_0(x - m) \le 1 - q / 2,

    and 0 elsewhere.

    ========  ================================================================================
    Support   :math:`x \in \mathbb{R}` if q = 0, else an interval around m
    Mean      :math:`m`
    Variance  :math:`2 b / (1 - b)^2 + 1/12` if q = 0
    ========  ================================================================================

    Parameters
    ----------
    m : tensor_like of float
        Location: the centre, and the median.
    b : tensor_like of float
        ``exp(-epsilon)`` for a sensitivity of 1 (0 < b < 1). Not a scale: a larger b is more noise.
    q : tensor_like of float, default 0
        Probability that the truncation takes off, half of it at either end (0 <= q < 1). For
        (epsilon, delta)-differential privacy, q = 2 delta b / (1 - b + 2 delta b).

    Notes
    -----
    The density is constant except for jumps at m plus the half-integers, so its gradient doesn't
    help a sampler. Just above its lower end, the cdf is as exact as the difference of two nearly
    equal numbers can be.

    References
    ----------
    Awan, J. & Slavkovic, A. (2018). Differentially private uniformly most powerful tests for
    binomial data. Advances in Neural Information Processing Systems 31.

    Awan, J. & Slavkovic, A. (2020). Differentially private inference for binomial data. Journal of
    Privacy and Confidentiality 10(1).

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_dapper.distributions import Tulap
    >>> pm.logp(Tulap.dist(m=40.0, b=np.exp(-0.5)), 42.3).eval().round(4)
    np.float64(-2.4068)
    """

    rv_op = TulapRV()

    @classmethod
    def dist(cls, m: Any, b: Any, q: Any = 0.0, *args: Any, **kwargs: Any) -> TensorVariable:
        """Create the distribution without adding it to a model."""
        parameters = [as_parameter(m), as_parameter(b), as_parameter(q)]
        return super().dist(parameters, *args, **kwargs)

    def support_point(rv: TensorVariable, size: Any, m: Any, b: Any, q: Any) -> TensorVariable:
        """Return the centre."""
        centre = m + pt.zeros_like(b) + pt.zeros_like(q)
        return centre if rv_size_is_none(size) else pt.full(size, centre)

    def logp(
        value: TensorVariable, m: TensorVariable, b: TensorVariable, q: TensorVariable
    ) -> TensorVariable:
        """Log-density; minus infinity where it is truncated."""
        distance = pt.abs(value - m)
        density = _cell(distance) * pt.log(b) + pt.log1p(-b) - pt.log1p(b) - pt.log1p(-q)
        res = pt.switch(pt.ge(pt.exp(_log_tail(distance, b)), 0.5 * q), density, -np.inf)
        return _checked(res, m, b, q)

    logcdf, logccdf = log_tails(_smaller_tail, _checked)

    def icdf(
        value: TensorVariable, m: TensorVariable, b: TensorVariable, q: TensorVariable
    ) -> TensorVariable:
        """Quantile."""
        tail = 0.5 * q + (1.0 - q) * pt.minimum(value, 1.0 - value)
        inside = pt.gt(tail, 0)
        distance = pt.switch(inside, _tail_quantile(pt.switch(inside, tail, 0.5), b), np.inf)
        res = m + pt.switch(pt.le(value, 0.5), -distance, distance)
        return check_icdf_parameters(check_icdf_value(res, value), *_conditions(b, q), msg=_MSG)
