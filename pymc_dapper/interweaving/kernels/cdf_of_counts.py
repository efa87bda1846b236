"""Cumulative probabilities of counts: Poisson, binomial and negative binomial.

Both functions here find a count's step in the cdf in the same way, so that a count comes back from
its noise exactly.

Small counts are summed from 0 by Panjer's recurrence, p(k + 1) / p(k) = a + b / (k + 1), in a scale
of their own, since p(0) may underflow. For large counts that would take too many steps. Their cdf
is an incomplete gamma or beta function: the probability of the count, times the integral of a
log-concave function that falls from 1. It is integrated by Gauss-Legendre quadrature over panels
that double in width, and the count of a given probability is found by Newton's method between
bounds. That takes a few hundred evaluations of the integrand, for thousands or 10^12 alike.
"""

from math import lgamma

import numpy as np
from numba import njit

POISSON, BINOMIAL, NEGATIVE_BINOMIAL = 0, 1, 2

LARGE = 1e280
NEGLIGIBLE = 1e-17
FEW = 2_000
"""Counts are summed if ten standard deviations above the mean are at most this."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
LOWEST = -45.0
"""Logarithm of the share of the integrand's maximum that may be left out."""
MAX_PANELS = 100
RECIPROCALS = np.concatenate([[0.0], 1 / np.arange(1.0, 31.0)])
MAX_STEPS = 400
LOG_SQRT_2_PI = 0.5 * np.log(2 * np.pi)


@njit
def count_noise(count: float, uniform: float, family: int, first: float, second: float) -> float:
    """Point in the cdf's step at a count: F(k - 1) + uniform * p(k).

    Parameters
    ----------
    count : float
        The count k.
    uniform : float
        Position in the step, in [0, 1).
    family : int
        POISSON, BINOMIAL or NEGATIVE_BINOMIAL.
    first, second : float
        The mean and nothing; the number of trials, or of successes, and their probability.

    Returns
    -------
    float
        The point, or nan if the parameters are impossible.
    """
    if not is_possible(family, first, second):
        return np.nan
    if is_small(family, first, second):
        return noise_by_sums(count, uniform, *recurrence(family, first, second))
    if count < 0:
        return np.nan
    lower, upper = cdf(count - 1, family, first, second), cdf(count, family, first, second)
    return lower + uniform * (upper - lower)


@njit
def count_quantile(noise: float, family: int, first: float, second: float) -> float:
    """Count in whose step of the cdf a point lies: F(k - 1) <= noise < F(k).

    Parameters
    ----------
    noise : float
        The point.
    family, first, second
        As in :func:`count_noise`.

    Returns
    -------
    float
        The count, or nan if no count's step contains the point.
    """
    if not (is_possible(family, first, second) and noise >= 0):
        return np.nan
    if is_small(family, first, second):
        return quantile_by_sums(noise, *recurrence(family, first, second))
    return quantile_by_search(noise, family, first, second)


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
def is_small(family: int, first: float, second: float) -> bool:
    """Whether counts are few enough to be summed up."""
    mean, sd = moments(family, first, second)
    return mean + 10 * sd <= FEW


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
def quantile_by_search(noise: float, family: int, first: float, second: float) -> float:
    """Find the smallest count whose cdf exceeds a point, by bounded second-order steps."""
    if noise >= 1:
        return np.nan
    below = -1.0  # F there is at most the point
    above = first if family == BINOMIAL else np.inf  # F there is above it
    mean, sd = moments(family, first, second)
    guess = min(max(0.0, np.floor(normal_guess(noise, mean, sd, second))), above)
    width, reach, slow = np.inf, 1 + sd / 64, 0
    for _ in range(MAX_STEPS):
        reached = cdf(guess, family, first, second)
        if reached > noise:
            above = guess
        else:
            below = guess
        if above - below <= 1:
            return above
        slow = slow + 1 if not above - below < 0.5 * width else 0
        width = above - below
        p = np.exp(log_probability(guess, family, first, second))
        if slow <= 3 and p > 0:
            guess = step_to((noise - reached) / p, guess, family, first, second)
        elif above == np.inf:
            guess, reach = np.floor(below + reach), 4 * reach
        else:
            guess = np.floor(below + 0.5 * width)
        guess = min(max(guess, below + 1), above - 1)
        if not below < guess < above:
            break  # so large that doubles aren't exact
    return np.nan


@njit
def normal_guess(noise: float, mean: float, sd: float, second: float) -> float:
    """Guess a quantile: that of a normal distribution, with Cornish and Fisher's first term.

    The normal quantile is Abramowitz and Stegun's 26.2.23, right to 5e-4.
    """
    if noise <= 0:
        return 0.0
    rest = min(noise, 1 - noise)
    t = np.sqrt(-2 * np.log(rest))
    z = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (
        1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    )
    z = -z if noise < 0.5 else z
    # Skewness is at most 2 / sd * variance / mean in these families; a guess needn't know better.
    skewness = (2 * sd * sd / mean - 1) / sd
    return mean + sd * (z + skewness * (z * z - 1) / 6)


@njit
def step_to(times: float, k: float, family: int, first: float, second: float) -> float:
    """Guess where the cdf is larger by a multiple of the probability of k."""
    p, q = second, 1 - second
    if family == POISSON:
        change = (first - k - 1) / (k + 1)
    elif family == BINOMIAL:
        change = ((first - k) * p - (k + 1) * q) / ((k + 1) * q)
    else:
        change = ((k + first) * q - k - 1) / (k + 1)
    # Along a parabola, by the change from k's probability to the next; if it doesn't reach far
    # enough, along a line.
    bend = 1 + 2 * change * times
    return np.floor(k + (2 * times / (1 + np.sqrt(bend)) if bend > 0 else times)) + 1


@njit
def cdf(k: float, family: int, first: float, second: float) -> float:
    """Compute the probability of at most k, a large count or one of a wide distribution."""
    if k < 0:
        return 0.0
    mean, _ = moments(family, first, second)
    p, q = second, 1 - second
    is_lower = k <= mean  # the tail that is computed
    sign, power, ratio, rate = 1.0, 0.0, 0.0, 0.0
    if family == POISSON:
        is_lower = k + 1 <= mean
        if is_lower:
            slope, bend, sign, factor = k + 1 - mean, mean, -1.0, mean
        else:
            slope, bend, factor = mean - k - 1, mean, k + 1
    elif family == BINOMIAL:
        if k >= first:
            return 1.0
        if is_lower:
            slope, bend = (k - mean) / p, k * q / p
            power, ratio, rate = k, q / p, first - k
        else:
            power, ratio, rate = first - k - 1, p / q, k + 1
            slope, bend = (mean - k - 1) / q, power * p / q
        factor = rate
    elif is_lower:
        slope, bend = (k * p - first * q) / q, k * p / q
        power, ratio, rate, factor = k, p / q, first, k + first
    else:
        slope, bend = ((first - 1) * q - (k + 1) * p) / p, (first - 1) * q / p
        power, ratio, rate, factor = first - 1, q / p, k + 1, (k + 1) / p
    # Called once, because LLVM would inline each call.
    integral = integrate(slope, bend, sign, power, ratio, rate)
    begins = k if is_lower else k + 1
    tail = min(1.0, factor * integral * np.exp(log_probability(begins, family, first, second)))
    return tail if is_lower else 1 - tail


@njit
def integrate(
    slope: float, bend: float, sign: float, power: float, ratio: float, rate: float
) -> float:
    """Integrate exp(-rate * s + power * log(1 + ratio * (1 - exp(-s)))) over all positive s.

    ``slope`` is the exponent's slope at 0, not positive, and ``bend`` is power * ratio. They are
    arguments because they are small differences of large numbers. If ``power`` is 0, the integrand
    is its limit for a large power and a small ratio; with a negative sign, the limit for negative
    s: exp(slope * s - bend * (sign * s - 1 + exp(-sign * s))).
    """
    scale = 1 / max(-slope, np.sqrt(abs(bend + power * (ratio * ratio))))
    total = 0.0
    start, width = 0.0, scale
    for _ in range(MAX_PANELS):
        for i in range(NODES.size):
            s = start + 0.5 * width * (1 + NODES[i])
            total += (
                0.5
                * width
                * WEIGHTS[i]
                * np.exp(exponent(s, slope, bend, sign, power, ratio, rate))
            )
        start, width = start + width, 2 * width
        if exponent(start, slope, bend, sign, power, ratio, rate) < LOWEST:
            break
    return total


@njit
def exponent(
    s: float, slope: float, bend: float, sign: float, power: float, ratio: float, rate: float
) -> float:
    """Compute the exponent of :func:`integrate`."""
    if power == 0:
        return slope * s - bend * exp_remainder(sign * s)
    change = -ratio * np.expm1(-s)
    if change > 0.5:
        return power * np.log1p(change) - rate * s
    return slope * s - bend * exp_remainder(s) + power * log_remainder(change)


@njit
def exp_remainder(x: float) -> float:
    """Compute exp(-x) - 1 + x."""
    if abs(x) > 0.5:
        return np.expm1(-x) + x
    total = 0.0
    for k in range(7 if abs(x) < 0.01 else 17, 2, -1):
        total = -x * RECIPROCALS[k] * (1 + total)
    return 0.5 * x * x * (1 + total)


@njit
def log_remainder(x: float) -> float:
    """Compute log(1 + x) - x."""
    if not -0.4 < x < 0.5:
        return np.log1p(x) - x
    r = x / (2 + x)
    square, total = r * r, 0.0
    for k in range(9 if abs(x) < 0.01 else 29, 1, -2):
        total = square * (RECIPROCALS[k] + total)
    return r * (2 * total - x)


@njit
def log_probability(k: float, family: int, first: float, second: float) -> float:
    """Compute the logarithm of a count's probability, to its last digits (Loader 2000)."""
    if family == POISSON:
        if k == 0:
            return -first
        half = 0.5 * np.log(k)
        return -LOG_SQRT_2_PI - half - stirling_error(k) - deviance(k, first)
    p, q = second, 1 - second
    if family == BINOMIAL:
        return log_binomial(k, first, p, q)
    if k == 0:
        return first * np.log(p)
    return np.log(first / (first + k)) + log_binomial(first, first + k, p, q)


@njit
def log_binomial(k: float, n: float, p: float, q: float) -> float:
    """Compute the logarithm of a binomial probability; neither k nor n need be whole."""
    if k == 0:
        return n * np.log1p(-p)
    if k == n:
        return n * np.log(p)
    errors = stirling_error(n) - stirling_error(k) - stirling_error(n - k)
    half = 0.5 * (np.log(n / k) - np.log(n - k))
    return errors - deviance(k, n * p) - deviance(n - k, n * q) + half - LOG_SQRT_2_PI


@njit
def deviance(x: float, mean: float) -> float:
    """Compute x log(x / mean) + mean - x."""
    if mean < 0.01 * x:  # otherwise its share of x would be lost in rounding
        return x * (np.log(x) - np.log(mean)) + mean - x
    return -x * log_remainder((mean - x) / x)


@njit
def stirling_error(x: float) -> float:
    """Compute log Gamma(x + 1) less Stirling's formula for it."""
    if x < 15:
        return lgamma(x + 1) - (x + 0.5) * np.log(x) + x - LOG_SQRT_2_PI
    y = 1 / (x * x)
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x
