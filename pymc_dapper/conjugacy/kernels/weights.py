"""Draws of weights of categories, in compiled code.

For what they are, see `pymc_dapper.conjugacy.weights`. Entries that look up the same rows and have
the same category count as one entry, ``times`` as often. A draw has three parts. First, an
exponential variable is drawn for each entry. Then weights are drawn given these, table by table, or
mirrored; weights that nearly all entries have chosen also move together with these variables.
Finally, weights move together in ways that change probabilities little or not at all.

Yu, Y., and Meng, X.-L. (2011). To center or not to center: that is not the question. Journal of
Computational and Graphical Statistics 20(3).
"""

import numpy as np
from numba import njit

from pymc_dapper.backend.draws import fill_normal, fill_uniform, standard_gamma
from pymc_dapper.conjugacy.kernels.families import TINY
from pymc_dapper.kernels.arrays import copy_into, int64
from pymc_dapper.kernels.products import first_rows, look_up

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

MOST_KEYS = 2.0**62
"""Entries of more possible kinds are taken one by one: a kind's number needs 63 bits."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Multiplied by it, numbers that are near to each other are far apart (Fibonacci hashing)."""


@njit
def numbered(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give keys numbers from 0 on, equal ones the same.

    Returns each key's number, and where each number is first. Negative keys have none: -1. It is a
    hash table with open addressing.
    """
    bits = int(np.log2(2 * len(keys) + 1)) + 1
    shift, last = np.uint64(64 - bits), 2**bits - 1
    found, first = np.full(2**bits, -1, np.int32), np.empty(len(keys), np.int64)
    numbers, n = np.full(len(keys), -1), 0
    for i in range(len(keys)):
        if keys[i] < 0:
            continue
        at = np.int64((np.uint64(keys[i]) * GOLDEN) >> shift)
        while found[at] >= 0 and keys[first[found[at]]] != keys[i]:
            at = (at + 1) & last
        if found[at] < 0:
            found[at], first[n] = n, i
            n += 1
        numbers[i] = found[at]
    return numbers, first[:n]


@njit
def kinds(
    chosen: np.ndarray, rows: np.ndarray, ends: np.ndarray, size: int, all_differ: bool
) -> np.ndarray:
    """Give entries the same key that look up the same rows and chose the same; others another.

    Each has its own if they ``all_differ`` otherwise. Those that chose nothing have a negative one.
    """
    keys, n_keys, start = chosen.copy(), MOST_KEYS if all_differ else float(size), 0
    for t in range(len(ends)):
        n_rows, own = ends[t] - start, rows[t]
        n_keys *= n_rows
        for i in range(len(keys)):
            keys[i] = keys[i] * n_rows + own[i] - start
        start = ends[t]
    for i in range(len(keys) if n_keys >= MOST_KEYS else 0):
        keys[i] = -1 if chosen[i] < 0 else i
    return keys


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
    """Draw the factor of a weight, now 1, from a density with terms in the factor and its inverse.

    Its logarithm y has the log-density shape * y - more * exp(y) - less * exp(-y). It is drawn from
    a normal distribution of the same mode and curvature there (independence Metropolis). The factor
    stays at 1 if the curvature isn't below ``most``, or the density is too skew. Neither condition
    depends on the present factor.
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
def column_total(x: np.ndarray, column: int) -> float:
    """Add up a column. A loop compiles faster than NumPy's functions of arrays."""
    total = 0.0
    for k in range(len(x)):
        total += x[k, column]
    return total


@njit
def scale_column(x: np.ndarray, column: int, by: float) -> None:
    """Multiply a column by a number."""
    for k in range(len(x)):
        x[k, column] *= by


@njit
def draw_row(
    rng: np.random.Generator, weights: np.ndarray, row: int, exposures: np.ndarray,
    shapes: np.ndarray, rates: np.ndarray, counts: np.ndarray, uniforms: np.ndarray,
    normals: np.ndarray, factors: np.ndarray,
) -> None:  # fmt: skip
    """Draw the weights of a row, one after the other; the other arguments are for all rows.

    Given the exponential variables, a weight is gamma. If nearly all entries that look it up chose
    its category, such a draw moves it little: its spread is that of a count of all of them. So the
    weight is moved again, with other variables held fixed: each exponential variable times the
    product of the weights that its entry chose (interweaving, Yu and Meng 2011). Then entries of
    other categories pull it down, and entries that chose it pull it up, the less certain their
    choice, the more.

    ``exposures`` are sums of exponential variables times products, by what was chosen and category.
    ``factors`` get the factor of a weight's second move. The caller divides the exponential
    variables of entries that chose the weight by it.
    """
    for c in range(len(exposures)):
        j, old = row + c, weights[row + c]
        shape, rate = shapes[j] + counts[j], rates[j] + column_total(exposures, c) / old
        if shape > FEW and uniforms[2 * j] < MIRRORED:
            new = mirrored(old * rate, shape, uniforms[2 * j] / MIRRORED) / rate
        else:
            new = standard_gamma(rng, shape) / rate
        weights[j] = max(new, TINY)
        scale_column(exposures, c, weights[j] / old)
        most = counts[j] / 2
        if most <= FEW:
            continue
        exposures[c, c] = 0.0  # not in the sums below, nor needed later
        more, less = rates[j] * weights[j] + column_total(exposures, c), exposures[c].sum()
        by = redrawn(shapes[j], more, less, most, normals[j], uniforms[2 * j + 1])
        scale_column(exposures, c, by)
        scale_column(exposures.T, c, 1 / by)
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
    shapes: np.ndarray, rates: np.ndarray, products: np.ndarray, choices: np.ndarray,
    times: np.ndarray, signs: np.ndarray,
) -> None:  # fmt: skip
    """Multiply a row's weight by what the same category's are divided by in other rows.

    A random walk of the logarithm, for one category after the other. Probabilities change only for
    entries that look up either the row or one of the others. Of these are ``products``, shape
    (entries, categories), ``choices``, ``times``, and ``signs``: 1 for those that look up the row,
    else -1.
    """
    size = products.shape[1]
    chosen = np.zeros(size)
    for k in range(len(choices)):
        chosen[choices[k]] += times[k]
    steps, uniforms = np.empty(size), np.empty(size)
    fill_normal(rng, 1, steps)
    fill_uniform(rng, 1, uniforms)
    for c in range(size):
        curvature = shapes[row + c]
        for j in others:
            curvature += shapes[j + c]
        curvature += chosen[c] * (chosen.sum() - chosen[c]) / max(chosen.sum(), 1)
        by = steps[c] * 2 / np.sqrt(curvature)
        gain = shapes[row + c] * by - rates[row + c] * weights[row + c] * np.expm1(by)
        for j in others:
            gain -= shapes[j + c] * by + rates[j + c] * weights[j + c] * np.expm1(-by)
        for k in range(len(choices)):
            more = products[k, c] / products[k].sum() * np.expm1(signs[k] * by)
            gain += times[k] * (signs[k] * by * (choices[k] == c) - np.log1p(more))
        if np.log(uniforms[c]) < gain:
            weights[row + c] = max(weights[row + c] * np.exp(by), TINY)
            for j in others:
                weights[j + c] = max(weights[j + c] * np.exp(-by), TINY)
            for k in range(len(choices)):
                products[k, c] *= np.exp(signs[k] * by)


@njit
def exchange_all(
    rng: np.random.Generator, weights: np.ndarray, ends: np.ndarray, shapes: np.ndarray,
    rates: np.ndarray, offsets: np.ndarray, choices: np.ndarray, times: np.ndarray,
    rows: np.ndarray, some: np.ndarray,
) -> None:  # fmt: skip
    """Exchange factors between rows of two tables that nearly the same entries look up.

    Such as a row for the married, and rows for husbands and wives: data hardly tell their effects
    apart. Each row takes the rows of another table that are mostly looked up by entries of its own,
    in a sample. If they are of nearly the same entries, factors are exchanged. Which rows these are
    doesn't depend on weights, so the moves are exact.
    """
    m, size = offsets.shape
    for s in range(len(ends)):
        for t in range(len(ends)):
            starts = ends[s - 1] if s else 0, ends[t - 1] if t else 0
            shape = ends[s] - starts[0], ends[t] - starts[1]
            if s == t or (shape[0] > 1 and shape[0] * shape[1] > SAMPLED):
                continue
            both = np.zeros(shape)
            for k in range(some.shape[1]):
                both[some[s, k] - starts[0], some[t, k] - starts[1]] += 1
            moved = np.empty(shape[1], np.bool_)
            for r in range(shape[0]):
                n_own = n_rest = differ = 0.0
                for j in range(shape[1]):
                    own, rest = both[r, j], column_total(both, j) - both[r, j]
                    moved[j] = own > rest or shape[0] == 1
                    n_own, n_rest = n_own + own, n_rest + rest
                    differ += rest if moved[j] else own
                if not moved.any() or differ > ALIKE * min(n_own, n_rest):
                    continue
                signs = np.zeros(m)
                for k in range(m if shape[0] > 1 else 0):
                    signs[k] += rows[s, k] - starts[0] == r
                    signs[k] -= moved[rows[t, k] - starts[1]]
                apart = np.flatnonzero(signs)
                products = offsets[apart]
                multiply(products, weights, rows[:, apart], NO_TABLE)
                others = (starts[1] + np.flatnonzero(moved)) * size
                exchange(
                    rng, weights, (starts[0] + r) * size, others, shapes, rates, products,
                    choices[apart], times[apart], signs[apart],
                )  # fmt: skip


@njit
def multiply(products: np.ndarray, weights: np.ndarray, rows: np.ndarray, left_out: int) -> None:
    """Multiply each entry's product of each category by its weights in all tables but one."""
    m, size = products.shape
    for k in range(m):
        for t in range(len(rows)):
            if t != left_out:
                for c in range(size):
                    products[k, c] *= weights[rows[t, k] * size + c]


@njit
def draw_weights(
    rng: np.random.Generator, size: int, out: np.ndarray, weights: np.ndarray, shapes: np.ndarray,
    rates: np.ndarray, chosen: np.ndarray, offsets: np.ndarray, indices: np.ndarray,
    lengths: np.ndarray, axes: np.ndarray,
) -> None:  # fmt: skip
    """Draw weights of categories, table by table, given an exponential variable for each entry.

    Most of the weights that several entries have chosen are mirrored rather than drawn: that leaves
    their conditional distribution as it is, and goes farther (Adler 1981, overrelaxation). A
    category has to be there: the graph checks it.

    Parameters
    ----------
    size : int
        Number of categories.
    weights : ndarray of float64, shape (m,)
        All tables as they are, flat, one after the other.
    shapes, rates : ndarray of float64, shape (m,)
        Of their gamma priors.
    chosen : ndarray of int, shape (n,)
        The category of each entry; -1 for none.
    offsets : ndarray of float64, shape (n * size,) or (size,)
        For each entry and category, the product of all that isn't drawn; or for all entries.
    indices, lengths, axes : ndarray of int
        The rows that each entry looks up: see :func:`look_up` and :func:`choose_by_products`.
    """
    n, starts, axis = len(chosen), first_rows(lengths, axes), int64(0)
    of_entries, ends = np.zeros((len(axes), n), np.int64), starts[1:]
    for t in range(len(axes)):
        look_up(of_entries[t], indices, lengths, axis, axes[t], n, int64(0))
        axis += axes[t]
        for i in range(n):
            of_entries[t, i] += starts[t]
    copy_into(out, 0, weights)
    numbers, first = numbered(kinds(chosen, of_entries, ends, size, len(offsets) > size))
    m, rows, choices = len(first), of_entries[:, first], chosen[first]
    present, times, counts = numbers[numbers >= 0], np.zeros(m), np.zeros(len(out))
    for k in present:
        times[k] += 1
    fixed, of_each = np.empty((m, size)), len(offsets) > size
    for k in range(m):
        for c in range(size):
            fixed[k, c] = offsets[first[k] * size + c if of_each else c]
    products = fixed.copy()
    multiply(products, out, rows, NO_TABLE)
    for own in rows:
        for k in range(m):
            counts[own[k] * size + choices[k]] += times[k]
    per_total, uniforms, normals = np.empty(m), np.empty(2 * len(out)), np.empty(len(out))
    fill_normal(rng, 1, normals)
    fill_uniform(rng, 1, uniforms)
    for k in range(m):  # a sum of so many exponential variables
        per_total[k] = standard_gamma(rng, times[k]) / products[k].sum()
    # What products are yet to be multiplied by (new weights of the table before, by the old ones),
    # and what exponential variables are yet to be divided by.
    changes, factors, start, before = np.ones(len(out)), np.ones(len(out)), 0, rows[0]
    for t in range(len(ends)):
        first_of, last_of, own = start * size, ends[t] * size, rows[t]
        old = out[first_of:last_of].copy()
        if old.min() < TOO_SMALL:
            products, old[:], changes[:] = fixed.copy(), 1.0, 1.0
            multiply(products, out, rows, t)
        exposures = np.zeros((last_of - first_of, size))
        for k in range(m):
            per_total[k] /= factors[before[k] * size + choices[k]]
            at = (own[k] - start) * size + choices[k]
            for c in range(size):
                products[k, c] *= changes[before[k] * size + c]
                exposures[at, c] += per_total[k] * products[k, c]
        for row in range(first_of, last_of, size):
            of_row = exposures[row - first_of : row - first_of + size]
            for c in range(size):
                scale_column(of_row, c, out[row + c] / old[row - first_of + c])
            draw_row(rng, out, row, of_row, shapes, rates, counts, uniforms, normals, factors)
        for j in range(first_of, last_of):
            changes[j] = out[j] / old[j - first_of]
        start, before = ends[t], own
    rescale(rng, out, shapes, rates, size)
    some = rows[:, present[:: len(present) // SAMPLED + 1]]
    exchange_all(rng, out, ends, shapes, rates, fixed, choices, times, rows, some)
