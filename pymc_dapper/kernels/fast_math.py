"""Checks of a number that hold under PyTensor's fast arithmetic."""

import numpy as np
from numba import njit


@njit
def is_finite(x: float) -> bool:
    """Whether a number is neither infinite nor nan.

    It compares. ``np.isfinite`` asks whether x - x is zero, which fast arithmetic assumes.
    """
    return -np.inf < x < np.inf
