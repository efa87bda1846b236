"""What can be asked of a number under PyTensor's fast arithmetic."""

import numpy as np
from numba import njit


@njit(inline="always")
def is_finite(x: float) -> bool:
    """Whether a number is neither infinite nor nan.

    By comparing. ``np.isfinite`` asks whether x - x is zero, which fast arithmetic takes for
    granted.
    """
    return -np.inf < x < np.inf
