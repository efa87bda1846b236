"""Draws from the families of conditional distributions, in compiled code.

All arrays are flat; ``width`` numbers of the first one belong together.
"""

import numpy as np
from numba import njit

from pymc_dapper.backend.draws import beta, fill_exponential, fill_normal, standard_gamma

TINY = np.finfo(np.float64).tiny
"""The smallest number that a draw may be: zero would have no logarithm."""

BELOW_ONE = 1.0 - np.finfo(np.float64).epsneg


@njit
def draw_beta(
    rng: np.random.Generator, width: int, out: np.ndarray, a: np.ndarray, b: np.ndarray
) -> None:
    """Draw independent betas."""
    for i in range(len(out)):
        out[i] = min(max(beta(rng, a[i], b[i]), TINY), BELOW_ONE)


@njit
def draw_gamma(
    rng: np.random.Generator, width: int, out: np.ndarray, shape: np.ndarray, rate: np.ndarray
) -> None:
    """Draw independent gammas."""
    for i in range(len(out)):
        out[i] = max(standard_gamma(rng, shape[i]) / rate[i], TINY)


@njit
def draw_inverse_gamma(
    rng: np.random.Generator, width: int, out: np.ndarray, shape: np.ndarray, scale: np.ndarray
) -> None:
    """Draw independent inverse gammas."""
    for i in range(len(out)):
        smallest = TINY * max(scale[i], 1.0)  # so that the quotient is at most 1 / TINY
        out[i] = max(scale[i] / max(standard_gamma(rng, shape[i]), smallest), TINY)


@njit
def draw_dirichlet(rng: np.random.Generator, width: int, out: np.ndarray, a: np.ndarray) -> None:
    """Draw independent Dirichlets."""
    smallest = np.inf
    for first in range(0, len(out), width):
        total = 0.0
        for i in range(first, first + width):
            out[i] = standard_gamma(rng, a[i])
            total += out[i]
        smallest = min(smallest, total)
    if smallest < 1:
        # Where all shapes are small, weights are below the smallest number. The total is
        # independent of the shares, so it may decide that these are drawn anew: from logarithms,
        # G(a) ~ G(a + 1) U^(1/a).
        logs = np.empty(len(out))
        for i in range(len(out)):
            logs[i] = np.log(standard_gamma(rng, a[i] + 1))
        fill_exponential(rng, 1, out)
        for i in range(len(out)):
            out[i] = logs[i] - out[i] / a[i]
        for first in range(0, len(out), width):
            largest = -np.inf
            for i in range(first, first + width):
                largest = max(largest, out[i])
            for i in range(first, first + width):
                out[i] = np.exp(out[i] - largest)
    for first in range(0, len(out), width):
        total = 0.0
        for i in range(first, first + width):
            total += out[i]
        for i in range(first, first + width):
            out[i] = max(out[i] / total, TINY)


@njit
def draw_entrywise(
    rng: np.random.Generator, width: int, out: np.ndarray, mean: np.ndarray, sd: np.ndarray
) -> None:
    """Draw independent normals."""
    fill_normal(rng, 1, out)
    for i in range(len(out)):
        out[i] = mean[i] + sd[i] * out[i]


@njit(fastmath={"reassoc", "contract"})
def product(x: np.ndarray, first: int, second: int, n: int) -> float:
    """Sum of products of the n numbers from two places on."""
    total = 0.0
    for i in range(n):
        total += x[first + i] * x[second + i]
    return total


@njit
def draw_joint(rng: np.random.Generator, width: int, out: np.ndarray, rows: np.ndarray) -> None:
    """Draw from the joint normal of density exp(-|residuals + slopes' theta|^2 / 2).

    The rows are those of the slopes, and the residuals.
    """
    # By the QR decomposition of the slopes: their products would square the condition number.
    # Reflections, as LAPACK makes them, lead to rows with nothing right of the diagonal.
    dim, n = len(out), len(rows) // (len(out) + 1)
    x = np.empty(len(rows))
    for i in range(len(rows)):
        x[i] = rows[i]
    for k in range(dim):
        place, length = k * n + k, n - k
        head, beyond = x[place], product(x, place + 1, place + 1, length - 1)
        if beyond > 0:
            diagonal = np.sqrt(head * head + beyond)
            if head > 0:
                diagonal = -diagonal
            factor = (diagonal - head) / diagonal
            for i in range(place + 1, place + length):
                x[i] /= head - diagonal
            x[place] = diagonal
            for j in range(k + 1, dim + 1):
                other = j * n + k
                along = factor * (x[other] + product(x, place + 1, other + 1, length - 1))
                x[other] -= along
                for i in range(1, length):
                    x[other + i] -= along * x[place + i]
        if not abs(x[place]) > 0:
            raise np.linalg.LinAlgError("the precision of a joint normal isn't positive definite")
    # |residuals + slopes' theta| = |R theta + q| but for a constant.
    fill_normal(rng, 1, out)
    for k in range(dim - 1, -1, -1):
        out[k] -= x[dim * n + k]
        for j in range(k + 1, dim):
            out[k] -= x[j * n + k] * out[j]
        out[k] /= x[k * n + k]
