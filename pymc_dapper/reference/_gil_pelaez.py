r"""A distribution function from a characteristic function, with an error that is bounded.

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

import numpy as np
from numpy.typing import ArrayLike

from pymc_dapper.reference._quantiles import invert_cdf

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
        points = np.asarray(x, dtype=float)
        sums = [weights @ np.exp(-1j * self.t * point) for point in points.ravel()]
        return np.array(sums, dtype=complex).reshape(points.shape)


def invert(
    characteristic_function: Callable[[float], complex],
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
    phi = np.array([characteristic_function(float(one)) for one in t], dtype=complex)
    return InvertedLaw(low, high, t, phi)
