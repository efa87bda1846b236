"""The boundary of an elliptical confidence region for two parameters."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


def ellipse(
    center: ArrayLike, covariance: ArrayLike, radius: float, points: int = 200
) -> FloatArray:
    """Points v with (v - center)' covariance^-1 (v - center) = radius^2.

    Parameters
    ----------
    center : (2,) array_like
        Where the ellipse lies.
    covariance : (2, 2) array_like
        Its shape; positive definite.
    radius : float
        Its size, in standard deviations.
    points : int
        Number of points; the first one comes again as the last.

    Returns
    -------
    (points, 2) array
    """
    angle = np.linspace(0, 2 * np.pi, points)
    circle = radius * np.stack([np.cos(angle), np.sin(angle)])
    factor = np.linalg.cholesky(np.asarray(covariance, dtype=float))
    return np.asarray(center, dtype=float) + (factor @ circle).T
