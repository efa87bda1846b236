"""Cumulative probabilities of counts, by a recurrence from one count to the next.

Poisson, binomial and negative binomial probabilities obey p(k + 1) / p(k) = a + b / (k + 1)
(Panjer's class). The sum is kept in a scale of its own, since p(0) may be too small a number.

Both functions here form the same sums in the same order. So a count comes back from its noise
exactly.
"""

import numpy as np
from numba import njit

LARGE = 1e280
NEGLIGIBLE = 1e-17


@njit
def count_noise(count: float, uniform: float, log_p0: float, a: float, b: float) -> float:
    """Point in the cdf's step at a count: F(k - 1) + uniform * p(k).

    Parameters
    ----------
    count : float
        The count k.
    uniform : float
        Where in the step, in [0, 1).
    log_p0 : float
        Logarithm of the probability of 0.
    a, b : float
        Coefficients of the recurrence.

    Returns
    -------
    float
        The point, or nan where the parameters are impossible.
    """
    if not (np.isfinite(log_p0) and np.isfinite(a) and np.isfinite(b)):
        return np.nan
    log_scale = log_p0
    p, below = 1.0, 0.0
    k = 0
    while k < count:
        below += p
        k += 1
        p *= a + b / k
        if below > LARGE:
            below, p, log_scale = below / LARGE, p / LARGE, log_scale + np.log(LARGE)
    scale = np.exp(log_scale)
    return below * scale + uniform * ((below + p) * scale - below * scale)


@njit
def count_quantile(noise: float, log_p0: float, a: float, b: float) -> float:
    """Count in whose step of the cdf a point lies: F(k - 1) <= noise < F(k).

    Parameters
    ----------
    noise : float
        The point.
    log_p0, a, b : float
        As in :func:`count_noise`.

    Returns
    -------
    float
        The count, or nan where no count's step reaches the point.
    """
    if not (np.isfinite(log_p0) and np.isfinite(a) and np.isfinite(b) and noise >= 0):
        return np.nan
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
        if below > LARGE:
            below, p, log_scale = below / LARGE, p / LARGE, log_scale + np.log(LARGE)
            scale = np.exp(log_scale)
    return float(k)
