"""Cumulative probabilities of counts: Poisson, binomial and negative binomial.

A count's noise and its quantile find its step in the cdf in the same way, so that a count comes
back from its noise exactly.

Small counts are summed from 0 by Panjer's recurrence, p(k + 1) / p(k) = a + b / (k + 1), in a scale
of their own, since p(0) may underflow. For large counts that would take too many steps. Their cdf
is SciPy's, an incomplete gamma or beta function, and the count of a given probability is found by
bisection around a guess. That takes a few evaluations.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

POISSON, BINOMIAL, NEGATIVE_BINOMIAL = 0, 1, 2

LARGE = 1e280
NEGLIGIBLE = 1e-17
FEW, FEW_IN_PYTHON = (200, 1_000, 200), (50, 50, 50)
"""Counts of each family are summed if ten standard deviations above the mean are at most this.
SciPy's functions take about as long there."""
RIGHT, SURE = 4.4, 1e6
"""If the mean is above ``SURE``, SciPy's incomplete gamma function is wrong for counts more than
``RIGHT`` standard deviations above it."""


@njit
def is_possible(family: int, first: float, second: float) -> bool:
    """Whether there is such a distribution."""
    if not 0 <= first < np.inf:
        return False
    if family == POISSON:
        return True
    if family == BINOMIAL:
        return 0 <= second < 1
    return first > 0 and 0 < second <= 1


@njit
def moments(family: int, first: float, second: float) -> tuple[float, float]:
    """Return mean and standard deviation."""
    if family == POISSON:
        return first, np.sqrt(first)
    if family == BINOMIAL:
        return first * second, np.sqrt(first * second * (1 - second))
    mean = first * (1 - second) / second
    return mean, np.sqrt(mean / second)


@njit
def is_small(family: int, first: float, second: float, few: tuple[int, int, int]) -> bool:
    """Whether counts are few enough to be summed up."""
    mean, sd = moments(family, first, second)
    return mean + 10 * sd <= few[int(family)]


# Summed up ---------------------------------------------------------------------------------------


@njit
def recurrence(family: int, first: float, second: float) -> tuple[float, float, float]:
    """Return log p(0), and a and b of Panjer's recurrence."""
    if family == POISSON:
        return -first, 0.0, first
    if family == BINOMIAL:
        odds = second / (1 - second)
        return first * np.log1p(-second), -odds, (first + 1) * odds
    return first * np.log(second), 1 - second, (first - 1) * (1 - second)


@njit
def noise_by_sums(count: float, uniform: float, log_p0: float, a: float, b: float) -> float:
    """Find the point in the cdf's step at a count; see :func:`count_noise`."""
    log_scale = log_p0
    p, below = 1.0, 0.0
    k = 0
    while k < count:
        below += p
        k += 1
        ratio = a + b / k
        p *= ratio
        if p <= 0 or (ratio < 1 and p < NEGLIGIBLE * below):
            break  # the rest is below rounding error
        if max(below, p) > LARGE:  # p may be 10^19 times as large in the next round
            below, p, log_scale = below / LARGE, p / LARGE, log_scale + np.log(LARGE)
    scale = np.exp(log_scale)
    return below * scale + uniform * ((below + p) * scale - below * scale)


@njit
def quantile_by_sums(noise: float, log_p0: float, a: float, b: float) -> float:
    """Find the count in whose step a point lies; see :func:`count_quantile`."""
    log_scale = log_p0
    scale = np.exp(log_scale)
    p, below = 1.0, 0.0
    k = 0
    while (below + p) * scale <= noise:
        below += p
        k += 1
        ratio = a + b / k
        p *= ratio
        if p <= 0 or (ratio < 1 and p < NEGLIGIBLE * below):
            return np.nan  # beyond the largest count, or lost in rounding
        if max(below, p) > LARGE:
            below, p, log_scale = below / LARGE, p / LARGE, log_scale + np.log(LARGE)
            scale = np.exp(log_scale)
    return float(k)


# Searched for ------------------------------------------------------------------------------------


@njit
def about(noise: float, mean: float, sd: float) -> float:
    """Guess the count of a cumulative probability, by a normal law with the counts' skewness.

    Its quantile is that of Abramowitz and Stegun (26.2.23).
    """
    t = np.sqrt(-2 * np.log(max(min(noise, 1 - noise), 1e-300)))
    below = (2.515517 + t * (0.802853 + t * 0.010328)) / (
        1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    )
    z = t - below if noise > 0.5 else below - t
    skew = (2 * sd**2 / mean - 1) * (z**2 - 1) / 6
    return max(np.floor(mean + sd * z + skew), 0.0)


@njit
def largest(family: int, first: float) -> float:
    """Return the largest count that is possible, and whose step of the cdf is known."""
    if family == BINOMIAL:
        return first
    if family == POISSON and first > SURE:
        return np.floor(first + RIGHT * np.sqrt(first))
    return np.inf


class OfCounts(NamedTuple):
    """Functions of counts, for numba.

    Their last parameters are ``family``, which is POISSON, BINOMIAL or NEGATIVE_BINOMIAL; and
    ``first`` and ``second``: the mean and nothing; the number of trials, or of successes, and their
    probability.
    """

    cdf: Callable[[float, int, float, float], float]
    """Cumulative probability of a large count."""
    noise: Callable[[float, float, int, float, float], float]
    """Point in the cdf's step at a count k, F(k - 1) + uniform * p(k), of the count and of a number
    in [0, 1); nan if the parameters are impossible, or the step isn't known."""
    quantile: Callable[[float, int, float, float], float]
    """Count in whose step of the cdf a point lies, F(k - 1) <= noise < F(k); nan if there is
    none."""


def functions_of_counts(
    gammaincc: Callable[..., float],
    betainc: Callable[..., float],
    betaincc: Callable[..., float],
    few: tuple[int, int, int],
) -> OfCounts:
    """Make the functions, with SciPy's, and limits on counts that are summed."""

    @njit
    def cdf(k: float, family: int, first: float, second: float) -> float:
        if k < 0:
            return 0.0
        if family == POISSON:
            return gammaincc(k + 1, first)
        if family == BINOMIAL:
            return betaincc(k + 1, first - k, second) if k < first else 1.0
        return betainc(first, k + 1, second)

    @njit
    def noise(count: float, uniform: float, family: int, first: float, second: float) -> float:
        if not is_possible(family, first, second):
            return np.nan
        if is_small(family, first, second, few):
            return noise_by_sums(count, uniform, *recurrence(family, first, second))
        if not 0 <= count <= largest(family, first):
            return np.nan
        lower = cdf(count - 1, family, first, second)
        return lower + uniform * (cdf(count, family, first, second) - lower)

    @njit
    def quantile(noise: float, family: int, first: float, second: float) -> float:
        if not (is_possible(family, first, second) and noise >= 0):
            return np.nan
        if is_small(family, first, second, few):
            return quantile_by_sums(noise, *recurrence(family, first, second))
        most = largest(family, first)
        if noise >= 1 or (most < np.inf and cdf(most, family, first, second) <= noise):
            return np.nan
        below, above = -1.0, most  # F is at most the point there, and above it here
        mean, sd = moments(family, first, second)
        guess, reach = min(about(noise, mean, sd), most - 1), 1 + np.floor(sd / 1_000)
        while below < guess < above:
            if cdf(guess, family, first, second) > noise:
                above = guess
            else:
                below = guess
            if above == most and guess + reach < above:
                guess, reach = guess + reach, 2 * reach
            elif below == -1 and guess - reach > below:
                guess, reach = guess - reach, 2 * reach
            else:
                guess = np.floor(below + 0.5 * (above - below))
        return above if above - below == 1 else np.nan  # so large that doubles aren't exact

    return OfCounts(cdf, noise, quantile)
