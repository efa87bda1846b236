"""Draws of weights of categories, in compiled code.

For what they are, see `pymc_dapper.conjugacy.weights`. A draw has three parts. An exponential
variable is drawn for each entry. Weights are drawn given these, table by table, or mirrored; those
that nearly all have chosen also move with these variables. At last, weights move together where
probabilities stay as they are, or nearly so.

Yu, Y., and Meng, X.-L. (2011). To center or not to center: that is not the question. Journal of
Computational and Graphical Statistics 20(3).
"""

import numpy as np
from numba import njit

from pymc_dapper.backend.draws import fill_exponential, fill_normal, fill_uniform, standard_gamma
from pymc_dapper.conjugacy.kernels.families import TINY

FEW = 3.0
"""Gammas of a smaller shape are too skew to be mirrored."""

MIRRORED = 0.75
"""The share of all other weights that are mirrored, not drawn."""

TOO_SMALL = 1e-100
"""Products of a smaller weight have too few digits to be divided by it."""

SAMPLED = 2_000
"""A sample of so many entries says which rows of two tables are looked up together.

Two tables of more pairs of rows exchange no factors.
"""

ALIKE = 0.1
"""Rows are of nearly the same entries if at most this share differs.

The share of the row's entries, and of all other entries.
"""

NO_TABLE = -1


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
def redrawn(
    shape: float, more: float, less: float, most: float, normal: float, uniform: float
) -> float:
    """Draw the factor of a weight, which is 1 now, from a density that it enters twice.

    Its logarithm y has the log-density shape * y - more * exp(y) - less * exp(-y). It is drawn from
    a normal distribution of the same mode and curvature there (independence Metropolis). The factor
    stays if the curvature isn't below ``most``, or the density is too skew. Neither depends on
    where the factor is.
    """
    curvature = np.sqrt(shape**2 + 4 * more * less)
    if not FEW < curvature < most:
        return 1.0
    mode = np.log((shape + curvature) / (2 * more))
    y = mode + normal / np.sqrt(curvature)
    gain = shape * y - more * np.expm1(y) - less * np.expm1(-y)
    gain += curvature / 2 * ((y - mode) ** 2 - mode**2)
    return np.exp(y) if np.log(uniform) < gain else 1.0


@njit
def draw_row(
    rng: np.random.Generator, weights: np.ndarray, row: int, exposures: np.ndarray,
    shapes: np.ndarray, rates: np.ndarray, counts: np.ndarray, uniforms: np.ndarray,
    normals: np.ndarray, factors: np.ndarray,
) -> None:  # fmt: skip
    """Draw the weights of a row, one after the other; the other arguments are for all rows.

    Given the exponential variables, a weight is gamma. If nearly all who look it up chose it, it
    moves little in this way: its spread is that of a count of all of them. So it is moved again
    given other variables: each exponential variable times the product of what was chosen
    (interweaving, Yu and Meng 2011). Those who didn't choose it hold it down, and those who chose
    it hold it up, each as far as their choice was open.

    ``exposures`` are sums of exponential variables times products, by what was chosen and category.
    ``factors`` get what a weight is moved by the second time. The exponential variables of those
    who chose it are to be divided by it.
    """
    for c in range(len(exposures)):
        j, old = row + c, weights[row + c]
        shape, rate = shapes[j] + counts[j], rates[j] + exposures[:, c].sum() / old
        if shape > FEW and uniforms[2 * j] < MIRRORED:
            new = mirrored(old * rate, shape, uniforms[2 * j] / MIRRORED) / rate
        else:
            new = standard_gamma(rng, shape) / rate
        weights[j] = max(new, TINY)
        exposures[:, c] *= weights[j] / old
        most = counts[j] / 2
        if most <= FEW:
            continue
        exposures[c, c] = 0.0  # what chose it has no say, and no later weight asks for it
        more, less = rates[j] * weights[j] + exposures[:, c].sum(), exposures[c].sum()
        by = redrawn(shapes[j], more, less, most, normals[j], uniforms[2 * j + 1])
        exposures[:, c] *= by
        exposures[c] /= by
        weights[j], factors[j] = max(weights[j] * by, TINY), by


@njit
def rescale(
    rng: np.random.Generator, weights: np.ndarray, shapes: np.ndarray, rates: np.ndarray, size: int
) -> None:
    """Multiply each row by a gamma factor: probabilities stay as they are."""
    for row in range(0, len(weights), size):
        shape = rate = 0.0
        for j in range(row, row + size):
            shape += shapes[j]
            rate += rates[j] * weights[j]
        factor = standard_gamma(rng, shape) / rate
        for j in range(row, row + size):
            weights[j] = max(factor * weights[j], TINY)


@njit
def exchange(
    rng: np.random.Generator, weights: np.ndarray, row: int, others: np.ndarray,
    shapes: np.ndarray, rates: np.ndarray, offsets: np.ndarray, choices: np.ndarray,
    rows: np.ndarray, apart: np.ndarray, signs: np.ndarray,
) -> None:  # fmt: skip
    """Multiply a row's weight by what the same category's are divided by in other rows.

    A random walk of the logarithm, for one category after the other. Probabilities change only for
    the entries ``apart``, which look up either the row or one of the others. ``signs`` are 1 for
    those that look up the row, else -1.
    """
    size = len(offsets) // max(len(choices), 1)
    products, chosen = np.empty((len(apart), size)), np.zeros(size)
    for k in range(len(apart)):
        i = apart[k]
        chosen[choices[i]] += 1
        products[k] = offsets[i * size : (i + 1) * size]
        for t in range(len(rows)):
            products[k] *= weights[rows[t, i] : rows[t, i] + size]
    steps, uniforms = np.empty(size), np.empty(size)
    fill_normal(rng, 1, steps)
    fill_uniform(rng, 1, uniforms)
    for c in range(size):
        total = shapes[row + c] + shapes[others + c].sum()
        total += chosen[c] * (len(apart) - chosen[c]) / max(len(apart), 1)
        by = steps[c] * 2 / np.sqrt(total)
        gain = shapes[row + c] * by - rates[row + c] * weights[row + c] * np.expm1(by)
        for j in others + c:
            gain -= shapes[j] * by + rates[j] * weights[j] * np.expm1(-by)
        for k in range(len(apart)):
            more = products[k, c] / products[k].sum() * np.expm1(signs[k] * by)
            gain += signs[k] * by * (choices[apart[k]] == c) - np.log1p(more)
        if np.log(uniforms[c]) < gain:
            weights[row + c] = max(weights[row + c] * np.exp(by), TINY)
            for j in others + c:
                weights[j] = max(weights[j] * np.exp(-by), TINY)
            products[:, c] *= np.exp(signs * by)


@njit
def exchange_all(
    rng: np.random.Generator, weights: np.ndarray, starts: np.ndarray, ends: np.ndarray,
    shapes: np.ndarray, rates: np.ndarray, offsets: np.ndarray, choices: np.ndarray,
    there: np.ndarray, rows: np.ndarray,
) -> None:  # fmt: skip
    """Exchange factors between rows of two tables that nearly the same entries look up.

    Such as a row for the married, and rows for husbands and wives: data hardly tell their effects
    apart. Each row takes the rows of another table that are mostly looked up by entries of its own,
    in a sample. If they are of nearly the same entries, factors are exchanged. Which rows these are
    doesn't depend on weights, so the moves are exact.
    """
    n, size = len(choices), len(offsets) // max(len(choices), 1)
    some = np.arange(0, n, n // SAMPLED + 1)
    for s in range(len(ends)):
        for t in range(len(ends)):
            shape = (ends[s] - starts[s]) // size, (ends[t] - starts[t]) // size
            if s == t or (shape[0] > 1 and shape[0] * shape[1] > SAMPLED):
                continue
            both = np.zeros(shape)
            for k in some:
                if there[k]:
                    both[(rows[s, k] - starts[s]) // size, (rows[t, k] - starts[t]) // size] += 1
            looked_up = both.sum(axis=0)
            for r, own in enumerate(both):
                moved = 2 * own > looked_up if shape[0] > 1 else np.ones(shape[1], np.bool_)
                differ = np.where(moved, looked_up - own, own).sum()
                if not moved.any() or differ > ALIKE * min(own.sum(), (looked_up - own).sum()):
                    continue
                signs = np.zeros(n)
                for i in range(n if shape[0] > 1 else 0):
                    if there[i]:
                        signs[i] += rows[s, i] == starts[s] + r * size
                        signs[i] -= moved[(rows[t, i] - starts[t]) // size]
                apart = np.flatnonzero(signs)
                others = starts[t] + np.flatnonzero(moved) * size
                exchange(
                    rng, weights, starts[s] + r * size, others, shapes, rates, offsets, choices,
                    rows, apart, signs[apart],
                )  # fmt: skip


@njit
def multiply(products: np.ndarray, weights: np.ndarray, rows: np.ndarray, left_out: int) -> None:
    """Multiply each entry's product of each category by its weights in all tables but one."""
    size = len(products) // max(rows.shape[1], 1)
    for i in range(rows.shape[1]):
        for t in range(len(rows)):
            if t != left_out:
                for c in range(size):
                    products[i * size + c] *= weights[rows[t, i] + c]


@njit
def draw_weights(
    rng: np.random.Generator, width: int, out: np.ndarray, weights: np.ndarray, ends: np.ndarray,
    shapes: np.ndarray, rates: np.ndarray, chosen: np.ndarray, places: np.ndarray,
    offsets: np.ndarray,
) -> None:  # fmt: skip
    """Draw weights of categories, table by table, given an exponential variable for each entry.

    Most of the weights that several entries have chosen are mirrored rather than drawn: that leaves
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
    products, counts = offsets.copy(), np.zeros(len(out))
    rows = places.astype(np.int64).reshape((len(ends), n))
    choices = np.maximum(chosen.astype(np.int64), 0)  # of those with none, nothing is counted
    for own in rows:
        for i in range(n):
            if not 0 <= own[i] <= len(weights) - size:
                raise IndexError("a row of weights is looked up that isn't there")
            if chosen[i] >= 0:
                counts[own[i] + choices[i]] += 1
    multiply(products, out, rows, NO_TABLE)
    per_total, uniforms, normals = np.empty(n), np.empty(2 * len(out)), np.empty(len(out))
    fill_normal(rng, 1, normals)
    fill_exponential(rng, 1, per_total)
    fill_uniform(rng, 1, uniforms)
    for i in range(n):
        total = products[i * size : (i + 1) * size].sum()
        per_total[i] = per_total[i] / total if chosen[i] >= 0 else 0.0
    # What products are yet to be multiplied by (new weights of the table before, by the old ones),
    # and what exponential variables are yet to be divided by.
    changes, factors, first, before = np.ones(len(out)), np.ones(len(out)), 0, rows[0]
    for t in range(len(ends)):
        last, own = int(ends[t]), rows[t]
        old = out[first:last].copy()
        if old.min() < TOO_SMALL:
            products[:], changes[:], old[:] = offsets, 1.0, 1.0
            multiply(products, out, rows, t)
        exposures = np.zeros((last - first, size))
        for i in range(n):
            per_total[i] /= factors[before[i] + choices[i]]
            of_choice = exposures[own[i] - first + choices[i]]
            for c in range(size):
                products[i * size + c] *= changes[before[i] + c]
                of_choice[c] += per_total[i] * products[i * size + c]
        for row in range(first, last, size):
            of_row = exposures[row - first : row - first + size]
            of_row *= out[row : row + size] / old[row - first : row - first + size]
            draw_row(rng, out, row, of_row, shapes, rates, counts, uniforms, normals, factors)
        changes[first:last] = out[first:last] / old
        first, before = last, own
    rescale(rng, out, shapes, rates, size)
    last_of, there = ends.astype(np.int64), chosen >= 0
    first_of = np.append(np.zeros(1, np.int64), last_of[:-1])
    exchange_all(rng, out, first_of, last_of, shapes, rates, offsets, choices, there, rows)
