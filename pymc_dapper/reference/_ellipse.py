"""The boundary of an elliptical confidence region for two parameters."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


def ellipse(
    center: ArrayLike, covariance: ArrayLike, radius: float, points: int = 200
) -> FloatArray:
    """Points v, shape (points, 2), with (v - center)' covariance^-1 (v - center) = radius^2.

    The first one comes again as the last.
    """
    angle = np.linspace(0, 2 * np.pi, points)
    circle = radius * np.stack([np.cos(angle), np.sin(angle)])
    factor = np.linalg.cholesky(np.asarray(covariance, dtype=float))
    return np.asarray(center, dtype=float) + (factor @ circle).T
