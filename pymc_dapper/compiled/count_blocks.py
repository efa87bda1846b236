"""Directions in which the cells of a block move together.

Along a direction a table is drawn by a slice sampler, so any set of directions is right. They mix
well if, in the metric of the log-density's curvature, they are nearly orthogonal: then what is
drawn along one hardly depends on the others, as for independent coordinates. Tables are points of
a lattice. Its reduced basis in that metric has such directions: changes that keep what is known
well come out as short vectors, however the sums overlap.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pymc_dapper.kernels.count_line import Structure
from pymc_dapper.kernels.lattice import reduce_basis
from pymc_dapper.reading.counts.blocks import Block

FLATTEST = 1e-12
"""The least curvature in any direction, relative to the largest: it may be zero, or negative."""


@dataclass(frozen=True, eq=False)
class BlockMetric:
    """A block, with the linear functions that see its cells.

    Attributes
    ----------
    block : Block
        The block.
    rows : ndarray of int
        The linear functions.
    coefficients : csr_array, shape (number of these, number of cells of the block)
        Their coefficients.
    """

    block: Block
    rows: np.ndarray
    coefficients: sparse.csr_array

    def directions(self, curvatures: np.ndarray, n_cells: int) -> sparse.csr_array:
        """Find directions that are nearly orthogonal in the metric of the curvature.

        Parameters
        ----------
        curvatures : ndarray of float64, shape (number of linear functions,)
            How strongly terms bend.
        n_cells : int
            Number of cells of the whole table.

        Returns
        -------
        csr_array of int64, shape (number of directions, n_cells)
            The directions; in each, some cell gains people.
        """
        bends = self.coefficients.T @ sparse.diags_array(curvatures[self.rows]) @ self.coefficients
        reduced = sparse.coo_array(reduce_basis(self.block.basis, _positive(bends.toarray())))
        highest = reduced.max(axis=1).toarray()
        sign = np.where(highest > 0, 1, -1)
        return sparse.csr_array(
            (reduced.data * sign[reduced.row], (reduced.row, self.block.cells[reduced.col])),
            shape=(reduced.shape[0], n_cells),
        )


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
