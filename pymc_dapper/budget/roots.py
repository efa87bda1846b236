"""Roots of functions of one number, to the precision of a float."""

import sys
from collections.abc import Callable

import scipy


def root(
    function: Callable[[float], float], low: float, high: float, *, xtol: float = 1e-15
) -> float:
    """Solve ``function(x) = 0`` between two points."""
    rtol = 4 * sys.float_info.epsilon
    return float(scipy.optimize.brentq(function, low, high, xtol=xtol, rtol=rtol, maxiter=5000))


def root_below(function: Callable[[float], float], high: float) -> float:
    """Solve ``function(x) = 0`` below a point where it is non-negative, or go down to -700.

    Growing steps downwards find a point where it isn't positive.
    """
    low, step = high, 1.0
    while low > -700 and function(low) > 0:
        low, step = max(low - step, -700.0), 2 * step
    return root(function, low, high) if low < high else high
