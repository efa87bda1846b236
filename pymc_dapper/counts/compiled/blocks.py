"""Directions in which the cells of a block move together.

A table is drawn along a direction by a slice sampler, and steps along several directions are
accepted by Metropolis-Hastings. So any fixed set of directions is exact. Mixing is good if the
directions are nearly orthogonal in the metric of the log-density's curvature: draws along one then
hardly depend on the others. Tables are points of a lattice, and its reduced basis in that metric
has such directions. Changes that keep well-known sums are short vectors, however the sums overlap.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pymc_dapper.counts.kernels.lattice import reduce_basis
from pymc_dapper.counts.kernels.line import Structure
from pymc_dapper.counts.reading.blocks import Block

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
FLATTEST = 1e-12
"""Least curvature in any direction, relative to the largest; the true one may be zero or
negative."""


@dataclass(frozen=True, eq=False)
class BlockMoves:
    """Directions in which the cells of a block move."""

    directions: sparse.csr_array
    """Int64, shape (number of directions, number of cells of the table): the directions. In each,
    some cell gains people."""
    joint: list[np.ndarray]
    """Sets of directions that move together."""
    factors: list[np.ndarray]
    """For each set, the Cholesky factor of the directions' scalar products."""


@dataclass(frozen=True, eq=False)
class BlockMetric:
    """A block, with the linear functions of its cells."""

    block: Block
    rows: np.ndarray
    """The linear functions."""
    coefficients: sparse.csr_array
    """Shape (number of these, number of cells of the block): their coefficients."""

    def moves(self, table: np.ndarray, curvatures: np.ndarray) -> BlockMoves:
        """Find directions that are nearly orthogonal in the metric of the curvature.

        There is a curvature for each linear function: how strongly its terms bend at the table.
        """
        bends = self.coefficients.T @ sparse.diags_array(curvatures[self.rows]) @ self.coefficients
        # A cell has little more room than its count. So 1 / count^2, the curvature of log(count),
        # is added: a Gamma density then has the curvature of its standard deviation.
        room = np.maximum(table[self.block.cells], EMPTIEST)
        metric = _positive(bends.toarray() + np.diag(room**-2))
        reduced = _upwards(reduce_basis(self.block.basis, metric))
        products = reduced @ metric @ reduced.T
        joint, factors = _joint(products)
        along = np.vstack([reduced, _upwards(_soft(reduced, products))])
        entries = sparse.coo_array(along)
        directions = sparse.csr_array(
            (entries.data, (entries.row, self.block.cells[entries.col])),
            shape=(len(along), len(table)),
        )
        return BlockMoves(directions, joint, factors)


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


def _joint(products: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Choose sets of directions with little room at random; a set moves together."""
    stiff, rng = np.flatnonzero(np.diag(products) >= STIFF), np.random.default_rng(0)
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


def _positive(metric: np.ndarray) -> np.ndarray:
    """Raise zero and negative eigenvalues of a metric."""
    values, vectors = np.linalg.eigh(metric)
    values = np.maximum(values, max(FLATTEST * values[-1], 1e-100))
    return np.ascontiguousarray((vectors * values) @ vectors.T)


def block_metrics(blocks: tuple[Block, ...], structure: Structure) -> list[BlockMetric]:
    """Find the linear functions of the cells of each block."""
    shape = (structure.terms.size, structure.starts.size - 1)
    seen = sparse.csc_array((structure.coefficients, structure.rows, structure.starts), shape=shape)
    metrics = []
    for block in blocks:
        inside = seen[:, block.cells].tocsr()
        rows = np.flatnonzero(np.diff(inside.indptr))
        metrics.append(BlockMetric(block, rows, inside[rows]))
    return metrics
