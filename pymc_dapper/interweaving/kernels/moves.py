"""Moves of a few parameters by elliptical slices of a fitted multivariate t distribution.

The target density is divided by a t density fitted to it. A t distribution is a normal one with
random scale, and an ellipse through the present value and a random one leaves a normal prior
invariant. So: draw the scale given the present value, draw the ellipse, and slice the quotient
along it. If the fit is good, most points of the ellipse are accepted, and the next value is nearly
independent of the present one, in any number of dimensions. If the fit is bad, the slice shrinks
towards the present value: the move becomes short, but is never rejected as a whole.

Each parameter's density may be skewed, such as that of a log-scale. So the t distribution is fitted
after a transformation that makes each symmetric: y = sinh(asinh(x) - skewness), where x is the
standardised parameter. Both tails are linear in y, with different slopes (Jones and Pewsey 2009,
without their change of tail weight).

Jones, M. C., and Pewsey, A. (2009). Sinh-arcsinh distributions. Biometrika 96(4), section 2.

Nishihara, R., Murray, I., and Adams, R. P. (2014). Parallel MCMC with generalized elliptical slice
sampling. Journal of Machine Learning Research 15, section 3.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.backend.draws import fill_normal, fill_uniform
from pymc_dapper.kernels.fast_math import is_finite

DEGREES_OF_FREEDOM = 4
"""Degrees of freedom of the t distribution. They are few: where the target has heavier tails than
the t distribution, there are hardly any moves."""

NORMALS = DEGREES_OF_FREEDOM + 2
"""Number of normal variates of a move, besides two for each dimension."""

MAX_SHRINKS = 24
"""After this number of shrinkages the value stays; a slice is then about 1e-7 of the ellipse
long."""


class Fit(NamedTuple):
    """A t distribution around 0, skewed in each dimension, scaled and shifted."""

    location: np.ndarray
    """Float64, shape (d,): the location, to which 0 is mapped."""
    scale: np.ndarray
    """Float64, shape (d,): positive."""
    skewness: np.ndarray
    """Float64, shape (d,): if positive, the right tail is the longer one."""
    factor: np.ndarray
    """Float64, shape (d, d): lower triangular Cholesky factor of the t distribution's scale
    matrix."""


class Variates(NamedTuple):
    """All random numbers of k moves."""

    normals: np.ndarray
    """Float64, shape (k, 2 * d + NORMALS): standard normal. The first d are for the ellipse; then
    as many as the scale has degrees of freedom, whose sum of squares it is; then two whose sum of
    squares is twice a standard exponential variate: the depth of the slice below the present
    log-density."""
    angles: np.ndarray
    """Float64, shape (k, MAX_SHRINKS): uniform on (0, 1): positions on the ellipse, at first and
    after each shrinkage."""


def draw_variates(rng: np.random.Generator, k: int, dim: int) -> Variates:
    """Draw the random numbers of k moves in ``dim`` dimensions."""
    normals = rng.standard_normal((k, 2 * dim + NORMALS))
    return Variates(normals, rng.random((k, MAX_SHRINKS)))


@njit
def draw_flat(
    rng: np.random.Generator, n_uniforms: int, n_normals: int, n_angles: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw uniform noise of records, and then the numbers of moves, in compiled code."""
    uniforms, normals, angles = np.empty(n_uniforms), np.empty(n_normals), np.empty(n_angles)
    fill_uniform(rng, 1, uniforms)
    fill_normal(rng, 1, normals)
    fill_uniform(rng, 1, angles)
    return uniforms, normals, angles


@njit
def sum_of_squares(x: np.ndarray) -> float:
    """Sum of squares."""
    total = 0.0
    for value in x:
        total += value * value
    return total


@njit
def log_t(squared_norm: float, dim: int) -> float:
    """Log-density of the standard t distribution, up to a constant."""
    return -0.5 * (DEGREES_OF_FREEDOM + dim) * np.log1p(squared_norm / DEGREES_OF_FREEDOM)


@njit
def skewed(y: Any, skewness: Any) -> Any:
    """Compute sinh(asinh(y) + skewness), of numbers or arrays."""
    return y * np.cosh(skewness) + np.sqrt(1 + y * y) * np.sinh(skewness)


@njit
def log_slope(y: float, skewness: float) -> float:
    """Logarithm of the derivative of :func:`skewed` by y."""
    return np.log(np.cosh(skewness) + y / np.sqrt(1 + y * y) * np.sinh(skewness))


@njit
def move_parameters(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    start: np.ndarray,
    movable: bool,
    fit: Fit,
    variates: Variates,
) -> tuple[np.ndarray, np.ndarray]:
    """Move the parameters several times: a deterministic function of its arguments.

    Parameters
    ----------
    log_density : callable
        ``log_density(context, theta) -> float``, compiled by numba.
    context : tuple of ndarray
        Inputs of the log-density besides the parameters (the noise, released values).
    start : ndarray of float64, shape (d,)
        The present parameters.
    movable : bool
        Whether to move at all.
    fit : Fit
        The t distribution and its skewness.
    variates : Variates
        Of k moves.

    Returns
    -------
    path : ndarray of float64, shape (k + 1, d)
        The parameters at the start and after each move.
    outcome : ndarray of float64, shape (k + 1,)
        The log-density at the end of the path, and then how often each move evaluated it: never, if
        the start is impossible.
    """
    n_moves, dim = len(variates.angles), len(start)
    location, scales, skewness, factor = fit
    path = np.empty((n_moves + 1, dim))
    outcome = np.zeros(n_moves + 1)
    at = np.empty(dim)  # the present value, standardised
    ray = np.empty(dim)  # the other end of the ellipse
    tried = np.empty(dim)
    proposed = np.empty(dim)
    for i in range(dim):
        path[0, i] = proposed[i] = start[i]
    present = log_density(context, proposed) if movable else -np.inf
    log_volume = 0.0
    for i in range(dim):
        rest = skewed((start[i] - location[i]) / scales[i], -skewness[i])
        log_volume += log_slope(rest, skewness[i])
        for j in range(i):
            rest -= factor[i, j] * at[j]
        at[i] = rest / factor[i, i]
    squared_norm = sum_of_squares(at)
    possible = is_finite(present) and is_finite(squared_norm + log_volume)

    for k in range(n_moves):
        for i in range(dim):
            path[k + 1, i] = path[k, i]
        if not possible:
            continue
        normals = variates.normals[k]
        # Given the present value, the scale is inverse gamma distributed.
        scale = np.sqrt((DEGREES_OF_FREEDOM + squared_norm) / sum_of_squares(normals[dim:-2]))
        for i in range(dim):
            ray[i] = scale * normals[i]
        quotient = present + log_volume - log_t(squared_norm, dim)
        height = quotient - sum_of_squares(normals[-2:]) / 2
        angle = 2 * np.pi * variates.angles[k, 0]
        lower, upper = angle - 2 * np.pi, angle
        for shrinks in range(1, MAX_SHRINKS):
            outcome[k + 1] += 1
            for i in range(dim):
                tried[i] = np.cos(angle) * at[i] + np.sin(angle) * ray[i]
            volume_there = 0.0
            for i in range(dim):
                y = 0.0
                for j in range(i + 1):
                    y += factor[i, j] * tried[j]
                proposed[i] = location[i] + scales[i] * skewed(y, skewness[i])
                volume_there += log_slope(y, skewness[i])
            there, norm_there = log_density(context, proposed), sum_of_squares(tried)
            if is_finite(there) and there + volume_there - log_t(norm_there, dim) > height:
                present, squared_norm, log_volume = there, norm_there, volume_there
                for i in range(dim):
                    at[i] = tried[i]
                    path[k + 1, i] = proposed[i]
                break
            if angle < 0:
                lower = angle
            else:
                upper = angle
            angle = lower + (upper - lower) * variates.angles[k, shrinks]
    outcome[0] = present
    return path, outcome
