"""Directions in which the cells of a block move together.

Along a direction a table is drawn by a slice sampler, and steps along several are accepted by the
ratio of Metropolis and Hastings, so any fixed set of directions is right. They mix well if, in the
metric of the log-density's curvature, they are nearly orthogonal: then what is drawn along one
hardly depends on the others, as for independent coordinates. Tables are points of a lattice. Its
reduced basis in that metric has such directions: changes that keep what is known well come out as
short vectors, however the sums overlap.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pymc_dapper.counts.kernels.lattice import reduce_basis
from pymc_dapper.counts.kernels.line import Structure
from pymc_dapper.counts.reading.blocks import Block

STIFF = 1.0
"""Squared length of directions in which tables have little room, in the metric of the curvature."""
JOINT_SIZE = 30
"""How many of them move together, at most."""
JOINT_PASSES = 6
"""How often each of them does."""
SOFT = 0.2
"""Where the log-density bends less than so many times as along single vectors, these mix slowly."""
EMPTIEST = 1.0
"""Room that a cell has at least, in people."""
FLATTEST = 1e-12
"""The least curvature in any direction, relative to the largest: it may be zero, or negative."""


@dataclass(frozen=True, eq=False)
class BlockMoves:
    """Directions in which the cells of a block move."""

    directions: sparse.csr_array
    """Int64, shape (number of directions, number of cells of the table): the directions; in each,
    some cell gains people."""
    joint: list[np.ndarray]
    """Which of them move together."""
    factors: list[np.ndarray]
    """For each of these, the Cholesky factor of the directions' scalar products."""


@dataclass(frozen=True, eq=False)
class BlockMetric:
    """A block, with the linear functions that see its cells."""

    block: Block
    rows: np.ndarray
    """The linear functions."""
    coefficients: sparse.csr_array
    """Shape (number of these, number of cells of the block): their coefficients."""

    def moves(self, table: np.ndarray, curvatures: np.ndarray) -> BlockMoves:
        """Find directions that are nearly orthogonal in the metric of the curvature.

        Curvatures, one for each linear function, say how strongly terms bend at the table.
        """
        bends = self.coefficients.T @ sparse.diags_array(curvatures[self.rows]) @ self.coefficients
        # No cell has room for much more than its count, whatever bends. So 1 / count^2 is added, as
        # the curvature of log(count) is: a Gamma density then has that of its standard deviation.
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
    """Turn vectors along which no cell gains people around."""
    return np.where(vectors.max(axis=1, keepdims=True, initial=-1) > 0, vectors, -vectors)


def _soft(reduced: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Find long vectors of the lattice along which the log-density hardly bends.

    A basis of short vectors can't be orthogonal where it bends much less in one direction than in
    the others, as where all cells grow together: each vector then has a little of that direction.
    The longer a vector of the lattice, the closer it can come to it.
    """
    lengths = np.sqrt(np.diag(products))
    bends, combinations = np.linalg.eigh(products / np.outer(lengths, lengths))
    # Rounding to whole steps along each vector adds this much squared length, on average. Vectors
    # are made so long that their own squared length is the same.
    lost = (lengths**2).sum() / 12
    times = np.sqrt(lost / np.maximum(bends, 1e-12))
    soft = (bends < SOFT) & (2 * lost < STIFF)
    steps = np.round(times * combinations / lengths[:, None]).astype(np.int64)
    found = steps.T[soft] @ reduced
    return found[np.any(found != 0, axis=1)]


def _joint(products: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Choose at random which directions move together, of those with little room."""
    stiff, rng = np.flatnonzero(np.diag(products) >= STIFF), np.random.default_rng(0)
    if len(stiff) < 2:
        return [], []
    n_parts = -(-len(stiff) // JOINT_SIZE)
    # In the order of the reduced basis, which the Cholesky factor depends on.
    joint = [
        np.sort(part)
        for _ in range(JOINT_PASSES)
        for part in np.array_split(rng.permutation(stiff), n_parts)
    ]
    return joint, [np.linalg.cholesky(products[np.ix_(part, part)]) for part in joint]


def _positive(metric: np.ndarray) -> np.ndarray:
    """Raise what a metric has of zero or negative eigenvalues."""
    values, vectors = np.linalg.eigh(metric)
    values = np.maximum(values, max(FLATTEST * values[-1], 1e-100))
    return np.ascontiguousarray((vectors * values) @ vectors.T)


def block_metrics(blocks: tuple[Block, ...], structure: Structure) -> list[BlockMetric]:
    """Find out which linear functions see the cells of each block."""
    shape = (structure.terms.size, structure.starts.size - 1)
    seen = sparse.csc_array((structure.coefficients, structure.rows, structure.starts), shape=shape)
    metrics = []
    for block in blocks:
        inside = seen[:, block.cells].tocsr()
        rows = np.flatnonzero(np.diff(inside.indptr))
        metrics.append(BlockMetric(block, rows, inside[rows]))
    return metrics
