"""Draws of a count within bounds, by inversion.

Poisson, binomial and negative binomial probabilities satisfy p(k + 1) / p(k) = a + b / (k + 1)
(Panjer's class). All weights are relative to the likeliest count within the bounds, so no digits
are lost even far out in a tail.
"""

import numpy as np
from numba import njit

NEGLIGIBLE = 1e-18
LARGEST = 2.0**46
"""Largest count that is drawn: one takes a second there, and beyond 2**53 there is no next one."""


@njit
def truncated_count(u: float, lower: float, upper: float, a: float, b: float) -> float:
    """Return the count for a uniform number, by inversion within bounds.

    Parameters
    ----------
    u : float
        Uniform on [0, 1).
    lower, upper : float
        The least and the largest count; the second may be infinite.
    a, b : float
        Coefficients of the recurrence. a is below 1.

    Returns
    -------
    float
        The count, or nan if the parameters are impossible, or if likely counts are above
        :data:`LARGEST`. Each likely count takes a step.
    """
    lower, upper = np.ceil(lower), np.floor(upper)
    if lower < 0:
        lower = 0.0
    likeliest = np.floor(b / (1 - a))
    if not (lower <= upper and lower < np.inf and -np.inf < likeliest < np.inf):
        return np.nan
    start = min(max(likeliest, lower), upper)
    if start > LARGEST:
        return np.nan

    # Up from the start, then down from it: at first to sum the weights, then to find the count.
    total, wanted = np.inf, np.inf
    for searching in (False, True):
        if searching:
            wanted = u * total
        weight = total = 1.0
        k = start
        while wanted >= total and k < upper:
            weight *= a + b / (k + 1)
            if not weight > NEGLIGIBLE * total:
                break
            total += weight
            k += 1
        if wanted < total:
            return k
        weight = 1.0
        k = start
        while wanted >= total and k > lower:
            weight /= a + b / k
            if not weight > NEGLIGIBLE * total:
                break
            total += weight
            k -= 1
        if wanted < total:
            return k
    return k
