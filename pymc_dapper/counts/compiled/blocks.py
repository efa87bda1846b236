"""Directions in which the cells of a block move together.

A table is drawn along a direction by a slice sampler, and steps along several directions are
accepted by Metropolis-Hastings. So any fixed set of directions is exact. Mixing is good if the
directions are nearly orthogonal in the metric of the log-density's curvature: draws along one then
hardly depend on the others. Tables are points of a lattice, and its reduced basis in that metric
has such directions. Changes that keep well-known sums are short vectors, however the sums overlap.
"""

from dataclasses import dataclass

import numpy as np

from pymc_dapper.counts.kernels.lattice import reduce_basis
from pymc_dapper.counts.kernels.line import Structure

STIFF = 1.0
"""Directions whose squared length, in the metric of the curvature, exceeds this have little
room."""
JOINT_SIZE = 30
"""Most directions that move together."""
JOINT_PASSES = 6
"""How often each direction moves."""
SOFT = 0.2
"""Single vectors mix slowly if the log-density bends less than this, relative to along them."""
EMPTIEST = 1.0
"""Least room of a cell, in people."""
LEAST_BEND = 0.1
"""Least curvature in any direction, in units of 1 / count^2; the true one may be negative."""
FLATTEST = 1e-12
"""Least curvature in any direction, relative to the largest."""


@dataclass(frozen=True, eq=False)
class BlockMoves:
    """Directions in which the cells of a block move."""

    directions: np.ndarray
    """Int64, shape (number of directions, number of cells of the block): the directions. In each,
    some cell gains people."""
    lines: np.ndarray
    """Those that move by themselves: all but those of one cell, which moves alone anyway."""
    joint: list[np.ndarray]
    """Sets of directions that move together."""
    factors: list[np.ndarray]
    """For each set, the Cholesky factor of the directions' scalar products."""


def block_moves(
    basis: np.ndarray, coefficients: np.ndarray, curvatures: np.ndarray, counts: np.ndarray
) -> BlockMoves:
    """Find directions that are nearly orthogonal in the metric of a block.

    Each linear function of its cells has a curvature: how strongly its terms bend at the table.
    """
    bends = (coefficients.T * curvatures) @ coefficients
    # A cell has little more room than its count. So 1 / count^2, the curvature of log(count), is
    # added: a Gamma density then has the curvature of its standard deviation. Where terms bend
    # upwards, cells still have little more room than a few times their counts.
    room = np.maximum(counts, EMPTIEST)
    own = room**-2
    scale = np.outer(room, room)
    metric = _at_least((bends + np.diag(own)) * scale, LEAST_BEND) / scale
    reduced = _upwards(reduce_basis(basis, metric))
    products = reduced @ metric @ reduced.T
    # A cell that has little room because of its own few people moves no better along with others.
    # (A Poisson count bends by 1 / count.)
    alone = np.count_nonzero(reduced, axis=1) == 1
    by_few = alone * (reduced**2 @ (own + 1 / room))
    joint, factors = _joint(products, np.flatnonzero(np.diag(products) - by_few >= STIFF))
    along = np.vstack([reduced, _upwards(_soft(reduced, products))])
    lines = np.flatnonzero(np.count_nonzero(along, axis=1) > 1)
    return BlockMoves(along, lines, joint, factors)


def functions_of(cells: np.ndarray, structure: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return the linear functions of some cells, and the coefficients of the cells in them."""
    runs = [np.arange(*structure.starts[cell : cell + 2]) for cell in cells]
    entries = np.concatenate(runs)
    rows, place = np.unique(structure.rows[entries], return_inverse=True)
    coefficients = np.zeros((len(rows), len(cells)))
    column = np.repeat(np.arange(len(cells)), [len(run) for run in runs])
    coefficients[place, column] = structure.coefficients[entries]
    return rows, coefficients


def _upwards(vectors: np.ndarray) -> np.ndarray:
    """Reverse vectors along which no cell gains people."""
    return np.where(vectors.max(axis=1, keepdims=True, initial=-1) > 0, vectors, -vectors)


def _soft(reduced: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Find long vectors of the lattice along which the log-density hardly bends.

    A basis of short vectors can't be orthogonal if the log-density bends much less in one
    direction, as when all cells grow together: each vector has a part along that direction. Longer
    vectors of the lattice can come closer to it.
    """
    lengths = np.sqrt(np.diag(products))
    bends, combinations = np.linalg.eigh(products / np.outer(lengths, lengths))
    # Rounding to whole steps adds this much squared length on average. Vectors are chosen so long
    # that their own squared length is the same.
    lost = (lengths**2).sum() / 12
    times = np.sqrt(lost / np.maximum(bends, 1e-12))
    soft = (bends < SOFT) & (2 * lost < STIFF)
    steps = np.round(times * combinations / lengths[:, None]).astype(np.int64)
    found = steps.T[soft] @ reduced
    return found[np.any(found != 0, axis=1)]


def _joint(products: np.ndarray, stiff: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Choose sets of stiff directions at random; a set moves together."""
    rng = np.random.default_rng(0)
    if len(stiff) < 2:
        return [], []
    n_parts = -(-len(stiff) // JOINT_SIZE)
    # Keep the order of the reduced basis, on which the Cholesky factor depends.
    joint = [
        np.sort(part)
        for _ in range(JOINT_PASSES)
        for part in np.array_split(rng.permutation(stiff), n_parts)
    ]
    return joint, [np.linalg.cholesky(products[np.ix_(part, part)]) for part in joint]


def _at_least(metric: np.ndarray, least: float) -> np.ndarray:
    """Raise eigenvalues of a metric that are less."""
    values, vectors = np.linalg.eigh(metric)
    values = np.maximum(values, max(least, FLATTEST * values[-1]))
    return np.ascontiguousarray((vectors * values) @ vectors.T)
