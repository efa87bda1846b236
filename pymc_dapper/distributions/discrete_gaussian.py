"""The discrete Gaussian distribution.

Let v be the integer nearest to mu, r = mu - v, from -1/2 to 1/2, and h = 1 / (2 sigma^2).
Everything is said relative to the weight of v, the largest. The integer v + d has the relative
weight exp(-h d (d - 2r)), where d (d - 2r) >= 0 suffers no cancellation. With S the sum of these,

    log P(v + d) = -h d (d - 2r) - log S,    S >= 1,

both parts of one sign.

The normaliser
--------------
For sigma < 1/2, S is summed over abs(d) <= 4. The largest terms left out are
exp(-5 h (5 - 2 abs(r))) <= exp(-40), so that the relative error is below 5e-18.

For sigma >= 1/2, Poisson summation gives the dual series

    S = sigma sqrt(2 pi) exp(h r^2) (1 + 2 sum_(m >= 1) q^(m^2) cos(2 pi m r)),
    q = exp(-2 pi^2 sigma^2) < 0.0072,

which is cut after m = 2. What is left out is below 2 q^9 / (1 - q) < 1.2e-19, and the bracket is at
least 1 - 2q > 0.98. From sigma = 3/2 on, 2q < 1.1e-19: the bracket is 1 in double precision.

The tails
---------
The smaller tail is summed from its own end, so that it is right however small. The other one is 1
less that. Let a >= 1/2 be the distance from mu to a tail's first integer. Relative to that one's
weight, the tail is

    T = sum_(n >= 0) exp(-s n - h n^2),    s = a / sigma^2,    T >= 1.

Where sigma < 3 or s > 3/2, it is summed over n < 26. What is left out is below 6e-17 if sigma < 3
(its first term is exp(-26^2 h)), and below exp(-26 s) / (1 - exp(-s)) < 2e-17 if s > 3/2.

Elsewhere, the Abel-Plana formula says that T is about

      integral_0^inf exp(-s x - h x^2) dx + 1/2
    + integral_0^inf 2 sin(s y) exp(h y^2) / (exp(2 pi y) - 1) dy.

The second integrand, expanded in powers of y, gives an asymptotic series: the Euler-Maclaurin
formula. The first integral is a scaled complementary error function. For the second one we take
Gauss quadrature with 8 nodes, which is exact for the series' first 16 terms. Two things are left
out.

1. The remainder of the Euler-Maclaurin formula after M = 16 terms. It is at most
   2 zeta(2M) / (2 pi)^(2M) times the integral of the absolute derivative of order 2M. Derivatives
   of the weight are Hermite functions, and He_n(z) = E (z + iY)^n with a standard normal Y. With Z
   another one, the remainder, relative to T, is at most

       2 zeta(2M) (2 pi sigma)^(-2M) E[(Z^2 + Y^2)^M given Z > s sigma].

   That grows with s. Given Z / sigma > s, the density of Z / sigma is proportional to
   exp(-sigma^2 x^2 / 2), so that Z / sigma, like Y / sigma, gets stochastically smaller as sigma
   grows. The bound is therefore largest at sigma = 3, s = 3/2, where it is 2.5e-18.
2. What quadrature makes of the series' other terms. That is at most the quadrature of what remains
   of the power series of 2 sinh(s y) exp(h y^2) / (exp(2 pi y) - 1) after 16 terms, in which all
   coefficients are positive and grow with s and h. So it is largest at the same place: 4.3e-16.

The tests compute these bounds, and compare with sums in many digits.
"""

import math
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numba.extending import register_jitable
from pymc import Discrete
from pymc.distributions.dist_math import check_parameters
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.numba_ops import draws
from pymc_dapper.distributions import _lattice
from pymc_dapper.distributions._noise import NoiseRV, log_tails

DUAL_FROM = 0.5
"""From this sigma on the normaliser is the dual series."""
STEPS_BESIDE = (-4.0, 4.0, -3.0, 3.0, -2.0, 2.0, -1.0, 1.0)
"""Below it, the weights of these steps from the nearest integer are summed, the smallest first."""
NO_WAVES_FROM = 1.5
"""From this sigma on the normaliser doesn't depend on mu, in double precision."""
SMOOTH_FROM = 3.0
MAX_SMOOTH_SLOPE = 1.5
"""Tails are integrals from this sigma on, up to this slope a / sigma^2. Else they are summed."""
DIRECT_TERMS = 26
PLANA_NODES, PLANA_WEIGHTS = np.array(
    [
        (0.17352832822573655, 0.4015446681602542),
        (0.6201459648082208, 0.02047527015024503),
        (1.1631456895163155, 0.0007969656722874752),
        (1.813736174727082, 1.5954675838369928e-05),
        (2.5902351778689976, 1.4503866499054251e-07),
        (3.524466362159234, 4.971060012763316e-10),
        (4.680080591320002, 4.4230641429868163e-13),
        (6.223347508579316, 3.9069880313008953e-17),
    ]
).T.copy()
"""Gauss quadrature of 2 g(y) / (exp(2 pi y) - 1) over y > 0, for odd functions g.

The tests compare what it makes of the powers y^1 to y^31 with Bernoulli numbers.
"""

SMALLEST_SIGMA = 1e-150
"""Up to this sigma, the nearest integer has all probability; two nearest ones share it."""
REJECTION_FROM = 1.0
"""Draws invert the cumulative weights below this sigma, and reject from a normal from it on."""
INVERSION_REACH = 9
"""Integers on either side of the nearest that an inversion may draw: others have mass < 4e-20."""


@register_jitable
def _propose(remainder, sigma, normal):  # type: ignore[no-untyped-def]  # for numba, too
    """Round a normal variate to an integer, and return the cost of accepting it.

    Let y be the integer's distance from mu, d what rounding moved, at most 1/2, and sigma^2 + c
    the normal's variance. As (y + d)^2 <= (1 + c / sigma^2) y^2 + (1 + sigma^2 / c) d^2,

        cost = y^2 / sigma^2 - (y + d)^2 / (sigma^2 + c) + 1 / (4c)

    is never negative. Accepted with probability exp(-cost / 2), points have a constant density over
    each rounding cell, in proportion to the weight of the cell's integer. This c makes acceptance
    most likely: 64 % at sigma = 1, and about 1 - 1 / (2 sigma) where sigma is large.

    Returns
    -------
    step : float
        The integer, from that nearest to mu.
    cost : float
    """
    variance = sigma * sigma
    c = (1.0 + np.sqrt(1.0 + 16.0 * variance)) / 8.0
    step = np.rint(remainder + np.sqrt(variance + c) * normal)
    distance = step - remainder
    return step, distance * distance / variance - normal * normal + 0.25 / c


def _reject(rng: np.random.Generator, remainder: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """Propose until all are accepted."""
    steps, pending = np.empty(remainder.size, dtype="int64"), np.arange(remainder.size)
    while pending.size:
        drawn, cost = _propose(remainder, sigma, rng.standard_normal(pending.size))
        accepted = 2.0 * rng.standard_exponential(pending.size) >= cost
        steps[pending[accepted]] = drawn[accepted].astype("int64")
        rejected = ~accepted
        pending, remainder, sigma = pending[rejected], remainder[rejected], sigma[rejected]
    return steps


def _invert(rng: np.random.Generator, remainder: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """Look a uniform up in the cumulative weights of the integers next to the nearest."""
    steps = range(-INVERSION_REACH, INVERSION_REACH + 1)

    def weight(step: int) -> np.ndarray:
        return np.exp(-step * (step - 2.0 * remainder) / (2.0 * sigma * sigma))

    level = rng.random(remainder.size) * sum(map(weight, steps))
    drawn = np.full(remainder.size, -INVERSION_REACH)
    cumulative = np.zeros(remainder.size)
    for step in steps[:-1]:
        cumulative += weight(step)
        drawn += level >= cumulative
    return drawn


@register_jitable
def _draw_step(rng, remainder, sigma):  # type: ignore[no-untyped-def]  # for numba
    """One draw, as `_reject` and `_invert` do it."""
    while sigma >= REJECTION_FROM:
        step, cost = _propose(remainder, sigma, rng.standard_normal())
        if 2.0 * rng.standard_exponential() >= cost:
            return np.int64(step)
    rate = 0.5 / (sigma * sigma)
    total = 1.0
    reach = 0
    for step in range(1, INVERSION_REACH + 1):
        larger = np.exp(-step * (step - 2.0 * abs(remainder)) * rate)
        if larger < 1e-20:
            break
        total += larger + np.exp(-step * (step + 2.0 * abs(remainder)) * rate)
        reach = step
    level = rng.random() * total - 1.0
    for step in range(1, reach + 1):
        for signed in (step, -step):
            if level < 0.0:
                break
            level -= np.exp(-signed * (signed - 2.0 * remainder) * rate)
            if level < 0.0:
                return np.int64(signed)
    return np.int64(0)


@register_jitable
def _valid(mu, sigma):  # type: ignore[no-untyped-def]  # for numba, too
    return (sigma > 0) & (np.abs(mu) + 40.0 * sigma < _lattice.MAX_INT64)


_EXPECTED = "sigma must be positive, mu and sigma finite, and mu +- 40 sigma within int64"


class DiscreteGaussianRV(NoiseRV):
    """Random variable of a discrete Gaussian distribution."""

    name = "discrete_gaussian"
    signature = "(),()->()"
    dtype = "int64"
    _print_name = ("DiscreteGaussian", "\\operatorname{DiscreteGaussian}")
    expected = _EXPECTED
    valid = staticmethod(_valid)

    @staticmethod
    def draw(rng: np.random.Generator, mu: Any, sigma: Any, size: Any) -> np.ndarray:
        """Draw the steps from the nearest integer, by the method that suits each sigma."""
        nearest = np.rint(mu)
        remainder = np.broadcast_to(mu - nearest, size)
        sigma = np.broadcast_to(np.maximum(sigma, SMALLEST_SIGMA), size)
        steps, wide = np.empty(size, dtype="int64"), sigma >= REJECTION_FROM
        for chosen, draw in ((wide, _reject), (~wide, _invert)):
            if chosen.any():
                steps[chosen] = draw(rng, remainder[chosen], sigma[chosen])
        return nearest.astype("int64") + steps


@draws(DiscreteGaussianRV)
def _draw(rng, mu, sigma):  # type: ignore[no-untyped-def]  # compiled by numba
    if not _valid(mu, sigma):
        raise ValueError(_EXPECTED)
    nearest = np.rint(1.0 * mu)
    return np.int64(nearest) + _draw_step(rng, mu - nearest, max(sigma, SMALLEST_SIGMA))


def _checked(res: TensorVariable, mu: TensorVariable, sigma: TensorVariable) -> TensorVariable:
    return check_parameters(res, sigma > 0, msg="sigma > 0")


def _log_weight(steps: Any, remainder: TensorVariable, sigma: TensorVariable) -> TensorVariable:
    """Log weight of an integer some steps from the nearest, relative to the nearest's."""
    sigma = pt.maximum(sigma, SMALLEST_SIGMA)  # PyTensor takes the square, which would be zero
    return -0.5 * (steps / sigma) * ((steps - 2.0 * remainder) / sigma)


def _log_weights_sum(remainder: TensorVariable, sigma: TensorVariable) -> TensorVariable:
    """Log of the sum of all integers' weights relative to the nearest's: at least 0."""
    known = _lattice.known_value(sigma)
    if known is not None and np.all(known >= DUAL_FROM):
        return _log_dual_sum(remainder, sigma)
    # A derivative of the branch not taken is multiplied by zero: keep it finite.
    return pt.switch(
        pt.lt(sigma, DUAL_FROM),
        _log_direct_sum(remainder, pt.minimum(sigma, DUAL_FROM)),
        _log_dual_sum(remainder, pt.maximum(sigma, DUAL_FROM)),
    )


def _log_direct_sum(remainder: TensorVariable, sigma: TensorVariable) -> TensorVariable:
    """Sum over steps from -4 to 4."""
    return pt.log1p(sum(pt.exp(_log_weight(n, remainder, sigma)) for n in STEPS_BESIDE))


def _log_dual_sum(remainder: TensorVariable, sigma: TensorVariable) -> TensorVariable:
    """Poisson summation, two waves."""
    q = pt.exp(-2.0 * math.pi**2 * pt.sqr(sigma))
    wave = pt.cos(2.0 * math.pi * remainder)
    waves = 2.0 * q * (wave + q * q * q * (2.0 * wave * wave - 1.0))
    integral = pt.log(sigma * math.sqrt(2 * math.pi)) + 0.5 * pt.sqr(remainder / sigma)
    return integral + pt.log1p(waves)


def _smaller_tail(
    value: TensorVariable, mu: TensorVariable, sigma: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Whether P(X <= value) is the smaller tail, else P(X > value), and that one's logarithm."""
    nearest, remainder = _lattice.split_location(mu)
    steps = _lattice.whole_steps_from(value, nearest)
    is_lower, steps = _lattice.start_of_smaller_tail(steps, remainder)
    first = _log_weight(steps, remainder, sigma) - _log_weights_sum(remainder, sigma)
    return is_lower, first + pt.log(_tail_sum(pt.abs(steps - remainder), sigma))


def _tail_sum(distance: TensorVariable, sigma: TensorVariable) -> TensorVariable:
    """Sum of a tail's weights relative to its first, which is at this distance from mu."""
    known = _lattice.known_value(sigma)
    slope = (distance / sigma) / sigma
    direct = _tail_by_terms(slope, sigma)
    if known is not None and np.all(known < SMOOTH_FROM):
        return direct
    # Again, keep the branch not taken finite.
    smooth = _tail_by_integrals(pt.minimum(slope, MAX_SMOOTH_SLOPE), pt.maximum(sigma, SMOOTH_FROM))
    is_smooth = pt.and_(pt.ge(sigma, SMOOTH_FROM), pt.le(slope, MAX_SMOOTH_SLOPE))
    return pt.switch(is_smooth, smooth, direct)


def _tail_by_terms(slope: TensorVariable, sigma: TensorVariable) -> TensorVariable:
    """Add terms one by one, so that readers see that entries don't mix. The first term is 1."""
    h = 0.5 / pt.sqr(sigma)
    return 1.0 + sum(pt.exp(-n * (slope + n * h)) for n in np.arange(1.0, DIRECT_TERMS))


def _tail_by_integrals(slope: TensorVariable, sigma: TensorVariable) -> TensorVariable:
    """Abel-Plana formula."""
    integral = math.sqrt(math.pi / 2) * sigma * pt.erfcx(slope * sigma * math.sqrt(0.5))
    h = 0.5 / pt.sqr(sigma)
    rule = zip(PLANA_NODES, PLANA_WEIGHTS, strict=True)
    waves = sum(weight * pt.sin(slope * node) * pt.exp(h * node**2) for node, weight in rule)
    return integral + 0.5 + waves


class DiscreteGaussian(Discrete):
    r"""Discrete Gaussian distribution.

    A Gaussian's density, restricted to the integers and renormalised (Canonne, Kamath & Steinke
    2020): the noise of the discrete Gaussian mechanism. It isn't a rounded Gaussian.

    .. math::

       P(k \mid \mu, \sigma) = \frac{e^{-(k - \mu)^2 / (2 \sigma^2)}}
                                    {\sum_{j \in \mathbb{Z}} e^{-(j - \mu)^2 / (2 \sigma^2)}}

    ========  ==================================================================
    Support   :math:`k \in \mathbb{Z}`
    Mean      :math:`\mu` if :math:`2 \mu` is an integer, else next to it unless
              :math:`\sigma < 1`
    Variance  at most :math:`\sigma^2` if :math:`\mu` is an integer, and next to
              :math:`\sigma^2` unless :math:`\sigma < 1`
    ========  ==================================================================

    Parameters
    ----------
    mu : tensor_like of float or int
        Location, any real number. The normaliser depends on its fractional part. An integer type
        has none, which makes the log-density cheaper if sigma is small.
    sigma : tensor_like of float
        Scale (sigma > 0): the standard deviation of the Gaussian with the same weights. Some
        libraries ask for its square.

    Notes
    -----
    For sigma from 1e-3 to 1e8 the log-normaliser has a relative error of at most 1e-12. ``logcdf``
    and ``logccdf`` are accurate in both tails; for the reason see the module's docstring. There is
    no ``icdf``.

    References
    ----------
    Canonne, C. L., Kamath, G. & Steinke, T. (2020). The discrete Gaussian for differential privacy.
    Advances in Neural Information Processing Systems 33.

    Examples
    --------
    >>> import pymc as pm
    >>> from pymc_dapper.distributions import DiscreteGaussian
    >>> pm.logp(DiscreteGaussian.dist(mu=120, sigma=6.32), 131).eval().round(4)
    np.float64(-4.2773)
    """

    rv_op = DiscreteGaussianRV()

    @classmethod
    def dist(cls, mu: Any, sigma: Any, *args: Any, **kwargs: Any) -> TensorVariable:
        """Create the distribution without adding it to a model."""
        parameters = [_lattice.as_location(mu), _lattice.as_parameter(sigma)]
        return super().dist(parameters, *args, **kwargs)

    support_point = _lattice.nearest_integer

    def logp(value: TensorVariable, mu: TensorVariable, sigma: TensorVariable) -> TensorVariable:
        """Log-probability; minus infinity for values that aren't integers."""
        known = _lattice.known_value(sigma)
        if known is not None and np.all(known >= NO_WAVES_FROM):
            distance = _lattice.steps_from(value, mu) / sigma
            res = -0.5 * pt.sqr(distance) - pt.log(sigma) - 0.5 * math.log(2 * math.pi)
        else:
            nearest, remainder = _lattice.split_location(mu)
            steps = _lattice.steps_from(value, nearest)
            res = _log_weight(steps, remainder, sigma) - _log_weights_sum(remainder, sigma)
        return _checked(_lattice.only_integers(value, res), mu, sigma)

    logcdf, logccdf = log_tails(_smaller_tail, _checked)
