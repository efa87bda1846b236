"""Whether counts lie on a tree: all that is known is of sums of cells that are nested or disjoint.

Such counts need no chain, given the parameters: messages go up the tree, and draws go down
(`pymc_dapper.counts.trees`).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pymc_dapper.counts.reading.model import CountReading


def why_no_tree(reading: CountReading) -> str | None:
    """Say what keeps the counts of a model from lying on a tree; None if they do."""
    for whole in reading.wholes:
        return f"'{whole.factor}' doesn't see sums of cells one by one, because {whole.reason}"
    groups: list[tuple[str, NDArray[np.int64]]] = []
    for terms in reading.terms:
        name = " and ".join(f"'{factor}'" for factor in terms.factors)
        if len(terms.linear) > 1:
            return f"a term of {name} sees several sums of cells at once"
        groups += [(name, cells) for matrix in terms.linear.values() for cells in _sums(matrix)]
    for invariant in reading.invariants:
        groups += [(f"'{invariant.factor}'", cells) for cells in _sums(invariant.rows.matrix)]
    for name, cells in groups:
        if not len(cells):
            return f"{name} weighs cells in its sums"
    return _crossing(groups, reading.n_cells)


def _sums(matrix: sparse.csr_array) -> Iterator[NDArray[np.int64]]:
    """Cells of each sum; none of one in which they have different weights."""
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        weights, cells = matrix.data[start:stop], matrix.indices[start:stop]
        cells, weights = cells[weights != 0], weights[weights != 0]
        if len(cells):
            yield cells if np.all(weights == weights[0]) else cells[:0]


def _crossing(groups: list[tuple[str, NDArray[np.int64]]], n_cells: int) -> str | None:
    """Say which groups overlap of which neither holds the other."""
    # From the largest on, each lies in one of those before, or in none.
    groups = sorted(groups, key=lambda group: -len(group[1]))
    within = np.full(n_cells, -1)
    for k, (name, cells) in enumerate(groups):
        around = within[cells]
        if np.any(around != around[0]):
            other = groups[around.max()][0]
            return f"{name} and {other} sum cells that overlap, and neither sum holds the other"
        within[cells] = k
    return None
