"""Draws from conditional distributions, in compiled code.

All arrays are flat; ``width`` numbers of the first one belong together.
"""

import numpy as np
from numba import njit

from pymc_dapper.backend.draws import (
    beta,
    fill_exponential,
    fill_normal,
    fill_uniform,
    standard_gamma,
)

TINY = np.finfo(np.float64).tiny
"""The smallest number that a draw may be: zero would have no logarithm."""

FEW = 3.0
"""Gammas of a smaller shape are too skew to be mirrored."""

TOO_SMALL = 1e-100
"""Products of a smaller weight have too few digits to be divided by it."""

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


@njit
def mirrored(y: float, shape: float, uniform: float) -> float:
    """Move a standard gamma to the other side of its distribution.

    Its cube root is almost normal (Wilson and Hilferty 1931). What that leaves out decides whether
    the move is made (Metropolis).
    """
    root, mean = np.cbrt(y), np.cbrt(shape) * (1 - 1 / (9 * shape))
    other = 2 * mean - root
    if other <= 0:
        return y
    new = other**3
    gain = (shape - 1) * np.log(new / y) + y - new + 2 * np.log(other / root)
    return new if np.log(uniform) < gain else y


@njit
def rescale(
    rng: np.random.Generator, weights: np.ndarray, ends: np.ndarray, shapes: np.ndarray,
    rates: np.ndarray, size: int,
) -> None:  # fmt: skip
    """Move weights where probabilities stay as they are: only priors tell how far.

    A row may be multiplied by anything (its factor is gamma). If the first table has one row, each
    of its weights may be multiplied by what a category's weights in another table are divided by
    (a random walk of the logarithm).
    """
    for row in range(0, len(weights), size):
        shape = rate = 0.0
        for j in range(row, row + size):
            shape += shapes[j]
            rate += rates[j] * weights[j]
        factor = standard_gamma(rng, shape) / rate
        for j in range(row, row + size):
            weights[j] = max(factor * weights[j], TINY)
    if ends[0] > size:
        return
    steps, uniforms = np.empty(len(ends) * size), np.empty(len(ends) * size)
    fill_normal(rng, 1, steps)
    fill_uniform(rng, 1, uniforms)
    for t in range(1, len(ends)):
        first, last = int(ends[t - 1]), int(ends[t])
        for c in range(size):
            total = shapes[c] + shapes[first + c : last : size].sum()
            by = steps[t * size + c] * 2 / np.sqrt(total)
            gain = shapes[c] * by - rates[c] * weights[c] * np.expm1(by)
            for j in range(first + c, last, size):
                gain -= shapes[j] * by + rates[j] * weights[j] * np.expm1(-by)
            if np.log(uniforms[t * size + c]) < gain:
                weights[c] = max(weights[c] * np.exp(by), TINY)
                for j in range(first + c, last, size):
                    weights[j] = max(weights[j] * np.exp(-by), TINY)


@njit
def multiply_by(products: np.ndarray, weights: np.ndarray, places: np.ndarray, size: int) -> None:
    """Multiply each entry's product of each category by its weight in a table."""
    for i in range(len(places)):
        place = int(places[i])
        for c in range(size):
            products[i * size + c] *= weights[place + c]


@njit
def leave_out(
    t: int, products: np.ndarray, weights: np.ndarray, ends: np.ndarray, places: np.ndarray,
    offsets: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Return what products are to be multiplied by to leave a table's weights out.

    If some are too small to divide by, the products are written without that table first.
    """
    n = len(places) // len(ends)
    first = int(ends[t - 1]) if t > 0 else 0
    if weights[first : int(ends[t])].min() >= TOO_SMALL:
        return 1 / weights
    products[:] = offsets
    for s in range(len(ends)):
        if s != t:
            multiply_by(products, weights, places[s * n : (s + 1) * n], len(products) // n)
    return np.ones(len(weights))


@njit
def draw_weights(
    rng: np.random.Generator, width: int, out: np.ndarray, weights: np.ndarray, ends: np.ndarray,
    shapes: np.ndarray, rates: np.ndarray, chosen: np.ndarray, places: np.ndarray,
    offsets: np.ndarray,
) -> None:  # fmt: skip
    """Draw weights of categories, table by table, given an exponential variable for each entry.

    Half of the weights that several entries have chosen are mirrored rather than drawn: that leaves
    their conditional distribution as it is, and goes farther (Adler 1981, overrelaxation).

    Parameters
    ----------
    weights : ndarray of float64, shape (m,)
        All tables as they are, flat, one after the other.
    ends : ndarray of float64, shape (number of tables,)
        Where each of them ends.
    shapes, rates : ndarray of float64, shape (m,)
        Of their gamma priors.
    chosen : ndarray of float64, shape (n,)
        The category of each entry; below 0 for none.
    places : ndarray of float64, shape (number of tables * n,)
        For each table, where the row starts that each entry looks up.
    offsets : ndarray of float64, shape (n * number of categories,)
        For each entry and category, the product of all that isn't drawn.
    """
    n = len(chosen)
    size = len(offsets) // max(n, 1)
    out[:] = weights
    products, counts, exposures = offsets.copy(), np.zeros(len(out)), np.zeros(len(out))
    for j in range(len(places)):
        if not 0 <= places[j] <= len(weights) - size:
            raise IndexError("a row of weights is looked up that isn't there")
        if chosen[j % n] >= 0:
            counts[int(places[j]) + int(chosen[j % n])] += 1
    for t in range(len(ends)):
        multiply_by(products, out, places[t * n : (t + 1) * n], size)
    per_total, uniforms = np.empty(n), np.empty(len(out))
    fill_exponential(rng, 1, per_total)
    fill_uniform(rng, 1, uniforms)
    for i in range(n):
        per_total[i] = per_total[i] / products[i * size : (i + 1) * size].sum()
    first = 0
    for t in range(len(ends)):
        last, own = int(ends[t]), places[t * n : (t + 1) * n]
        without = leave_out(t, products, out, ends, places, offsets)
        for i in range(n):
            if chosen[i] >= 0:
                place = int(own[i])
                for c in range(size):
                    others = products[i * size + c] * without[place + c]
                    exposures[place + c] += per_total[i] * others
        for j in range(first, last):
            shape, rate = shapes[j] + counts[j], rates[j] + exposures[j]
            if shape > FEW and uniforms[j] < 0.5:
                out[j] = max(mirrored(out[j] * rate, shape, 2 * uniforms[j]) / rate, TINY)
            else:
                out[j] = max(standard_gamma(rng, shape) / rate, TINY)
        multiply_by(products, out * without, own, size)
        first = last
    rescale(rng, out, ends, shapes, rates, size)
