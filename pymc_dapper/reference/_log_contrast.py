"""The law of a log-contrast of cell probabilities, such as the log odds ratio.

Its distribution function comes from its characteristic function, with an error that is bounded.
Gil-Pelaez (1951) writes the distribution function of X as an integral over its characteristic
function. Put on the midpoints t_j = (j + 1/2) h, the integral becomes a series that means
something by itself. Since sum_j sin((2j + 1) a) / (2j + 1) is pi/4 times the sign of sin(a),

    1/2 - sum_j Im(phi(t_j) exp(-i t_j x)) / (pi (j + 1/2)) = 1/2 - E[sign sin(h (X - x) / 2)] / 2,

which is P(X < x) exactly if X never leaves x by more than 2 pi / h. Take an interval that X leaves
with probability below a tolerance and let 2 pi / h be its length: for every x within it, the series
is that close to P(X < x). What is left is to cut the series where its tail is small.

References
----------
Gil-Pelaez, J. (1951). Note on the inversion theorem. Biometrika 38, 481-482.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln, loggamma, polygamma

from pymc_dapper.budget.roots import root
from pymc_dapper.reference._split import SplitLaw


def invert_cdf(
    cdf: Callable[[float], float],
    q: ArrayLike,
    low: float,
    high: float,
    margin: float = 0.0,
) -> np.ndarray:
    """Solve ``cdf(x) = q`` for each `q` by a bracketing root find: ``cdf(low) <= q <= cdf(high)``.

    The cdf is continuous and non-decreasing. Raises ValueError if a probability isn't strictly
    between `margin` and ``1 - margin``.
    """
    probabilities = np.asarray(q, dtype=float)
    if not np.all((probabilities > margin) & (probabilities < 1 - margin)):
        between = "0 and 1" if margin == 0 else f"{margin:g} and 1 - {margin:g}"
        raise ValueError(
            f"q must lie strictly between {between}, got {q!r}. "
            "Give probabilities, such as 0.05 for the 5 % quantile."
        )

    def solve(probability: float) -> float:
        return root(lambda x: cdf(x) - probability, low, high, xtol=1e-300)

    return np.vectorize(solve, otypes=[float])(probabilities)


MAX_TERMS = 1_000_000
QUANTILE_MARGIN = 1e-9
"""Quantiles nearer to 0 or 1 are refused, since the cdf is only known to 1e-12 or so."""


@dataclass(frozen=True, eq=False)
class InvertedLaw:
    """A continuous law on the line, tabulated as a characteristic function `phi` on midpoints.

    They are ``t = (j + 1/2) 2 pi / (high - low)``. Outside of low to high probability is neglected.
    """

    low: float
    high: float
    t: np.ndarray
    phi: np.ndarray

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Distribution function at `x`, of the shape of `x`: 0 below `low` and 1 above `high`."""
        weights = self.phi / (np.pi * (np.arange(self.t.size) + 0.5))
        series = 0.5 - self._series(x, weights).imag
        inside = np.clip(series, 0.0, 1.0)
        return np.where(np.less(x, self.low), 0.0, np.where(np.greater(x, self.high), 1.0, inside))

    def pdf(self, x: ArrayLike) -> np.ndarray:
        """Density at `x`, of the shape of `x`: 0 outside of `low` to `high`."""
        step = 2 * self.t[0]
        inside = np.maximum(self._series(x, self.phi * (step / np.pi)).real, 0.0)
        return np.where(np.less(x, self.low) | np.greater(x, self.high), 0.0, inside)

    def quantile(self, q: ArrayLike) -> np.ndarray:
        """Quantiles at probabilities `q`, not within `QUANTILE_MARGIN` of 0 or 1; shape of `q`."""
        return invert_cdf(
            lambda x: float(self.cdf(x)), q, self.low, self.high, margin=QUANTILE_MARGIN
        )

    def _series(self, x: ArrayLike, weights: np.ndarray) -> np.ndarray:
        """Sum of ``weights * exp(-i t x)`` over t, at each x."""
        each = np.vectorize(lambda point: weights @ np.exp(-1j * self.t * point), otypes=[complex])
        return each(np.asarray(x, dtype=float))


def invert(
    characteristic_function: Callable[[np.ndarray], np.ndarray],
    envelope: Callable[[float], tuple[float, float]],
    low: float,
    high: float,
    tolerance: float,
) -> InvertedLaw:
    """Tabulate a characteristic function finely and far enough for a cdf of known accuracy.

    The envelope maps t > 0 to ``(bound, rate)`` with ``|phi(u)| <= bound * exp(-rate * (u - t))``
    for all u >= t; the bound non-increasing and the rate non-decreasing in t.

    The tolerance is what the truncation of the series may add to the error of the cdf. Altogether
    this is at most P(outside of low to high) + tolerance + rounding. Raises ValueError if more than
    `MAX_TERMS` terms would be needed.
    """
    step = 2 * math.pi / (high - low)

    def tail(terms: int) -> float:
        """Bound on the sum of all but the first terms."""
        bound, rate = envelope((terms + 0.5) * step)
        return -bound / (math.pi * (terms + 0.5) * math.expm1(-rate * step))

    terms = bisect_left(range(MAX_TERMS), True, lo=1, key=lambda terms: tail(terms) <= tolerance)
    if terms == MAX_TERMS:
        raise ValueError(
            f"the law spreads over {high - low:.3g}, too wide for its characteristic function to "
            f"be inverted with {MAX_TERMS} terms. Very small alpha does this; raise alpha, or use "
            "the mean and sd, which need no inversion."
        )
    t: np.ndarray = (np.arange(terms, dtype=np.float64) + 0.5) * step
    return InvertedLaw(low, high, t, characteristic_function(t))


TOLERANCE = 1e-12
"""Error of the cdf, before rounding: a quarter to each tail and a half to the series' end."""


class LogContrast:
    r"""Law of ``L = sum_k c_k log p_k`` with ``sum_k c_k = 0`` under a mixture of Dirichlet laws.

    Given a split n, p is made of independent gamma variables G_k of shape a_k = alpha_k + n_k over
    their sum, and the sum cancels in L. So, given n, L has mean sum_k c_k digamma(a_k), variance
    sum_k c_k^2 trigamma(a_k) and the characteristic function prod_k Gamma(a_k + i c_k t) /
    Gamma(a_k); the law of n mixes them. The cdf comes from :func:`invert`, with two bounds:

    * Tails, by Chernoff: P(L - m >= y) <= E[exp(u (L - m))] exp(-u y) for every u > 0 that leaves
      all a_k + c_k u positive; the exponential moment is again a mean of a product over cells.
    * Series, from d/dy log|Gamma(a + iy)| = -sum_{j >= 0} y / ((a + j)^2 + y^2) <= -arctan(y / a)
      for y > 0: each factor's modulus falls, and ever faster at that.

    Altogether the cdf is exact to `TOLERANCE` plus the rounding of log-gamma functions, some 1e-16
    N log N: less than 1e-12 for a thousand records, about 1e-11 for ten thousand, 1e-9 for a
    million.

    The split is the law of the counts n that are added to alpha, the Dirichlet prior's parameters.
    The coefficients c_k aren't all 0. `mean` and `sd` are those of L.
    """

    def __init__(self, alpha: np.ndarray, split: SplitLaw, coefficients: np.ndarray) -> None:
        self.coefficients = coefficients
        self._split = split
        self._shapes = [a + n for a, n in zip(alpha, split.supports, strict=True)]
        means = [c * digamma(a) for c, a in zip(coefficients, self._shapes, strict=True)]
        self.mean, between = split.moments_of_sum(means)
        parts = zip(coefficients, self._shapes, split.pmfs, strict=True)
        within = sum(c**2 * float(pmf @ polygamma(1, a)) for c, a, pmf in parts)
        self.sd = float(np.sqrt(within + between))

    def characteristic_function(self, t: ArrayLike) -> np.ndarray:
        """``E[exp(i t L)]`` at real `t`, of the shape of `t`."""
        mean = self._split.mean_of_product
        mean_at = np.vectorize(lambda t: mean(self._ratios(t)), otypes=[complex])
        return mean_at(np.asarray(t, dtype=float))

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Distribution function at `x`, of the shape of `x`."""
        return self._centred.cdf(np.asarray(x, dtype=float) - self.mean)

    def pdf(self, x: ArrayLike) -> np.ndarray:
        """Density at `x`, of the shape of `x`."""
        return self._centred.pdf(np.asarray(x, dtype=float) - self.mean)

    def quantile(self, q: ArrayLike) -> np.ndarray:
        """Quantiles at probabilities `q`, not within 1e-9 of 0 or 1, of the shape of `q`."""
        return self._centred.quantile(q) + self.mean

    @cached_property
    def _centred(self) -> InvertedLaw:
        """Law of L less its mean."""
        return invert(
            lambda t: self.characteristic_function(t) * np.exp(-1j * t * self.mean),
            self._envelope,
            low=-self._tail_bound(-1),
            high=self._tail_bound(1),
            tolerance=TOLERANCE / 2,
        )

    def _ratios(self, t: float) -> list[np.ndarray]:
        """``Gamma(a_k + i c_k t) / Gamma(a_k)`` for each count in each cell's support."""
        pairs = zip(self.coefficients, self._shapes, strict=True)
        return [np.exp(loggamma(a + 1j * c * t) - gammaln(a)) for c, a in pairs]

    def _envelope(self, t: float) -> tuple[float, float]:
        """Bound on the characteristic function at t, and the rate at which it falls from there."""
        bound = self._split.mean_of_product([np.abs(ratio) for ratio in self._ratios(t)]).real
        speed = np.abs(self.coefficients)
        largest = np.array([a[-1] for a in self._shapes])
        return bound, float(speed @ np.arctan(speed * t / largest))

    def _tail_bound(self, side: int) -> float:
        """Find a y such that L seldom enough leaves its mean by y on the given side."""
        smallest = np.array([a[0] for a in self._shapes])
        slope = -side * self.coefficients
        limit = float(np.min(smallest[slope > 0] / slope[slope > 0]))
        # Were L normal, the best exponent for 1e-12 would be about 7.5 / sd.
        exponents = min(limit, 12 / self.sd) * np.linspace(0.05, 0.95, 19)

        def log_moment(exponent: float) -> float:
            u = side * exponent
            pairs = zip(self.coefficients, self._shapes, strict=True)
            logs = [gammaln(a + c * u) - gammaln(a) for c, a in pairs]
            return self._split.log_mean_of_product(logs)

        log_moments = np.array([log_moment(float(one)) for one in exponents])
        log_tail = np.log(TOLERANCE / 4)
        bounds = (log_moments - side * exponents * self.mean - log_tail) / exponents
        return float(bounds.min())
