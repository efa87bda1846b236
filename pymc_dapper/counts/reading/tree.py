"""Whether counts lie on a tree: all that is known is of sums of cells that are nested or disjoint.

Such counts need no chain, given the parameters: messages go up the tree, and draws go down
(`pymc_dapper.counts.trees`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pymc_dapper.counts.reading.model import CountReading


@dataclass(frozen=True, eq=False)
class TreeReading:
    """The tree of the sums of cells that a model sees: cells are its leaves.

    Cells that follow from others, latent totals, aren't leaves: they are sums.
    """

    parent: NDArray[np.int64]
    """Shape (number of nodes,): the parent of each node, -1 of a root."""
    cells: NDArray[np.int64]
    """Shape (number of leaves,): their cells. Leaves are the first of the nodes."""
    exact: NDArray[np.bool_]
    """Shape (number of nodes,): which sums are known exactly."""
    term_starts: NDArray[np.int64]
    """Shape (number of nodes + 1,): where the terms of each node start in the next two."""
    terms: NDArray[np.int64]
    """The terms, numbered as `CountReading.terms` come."""
    weights: NDArray[np.float64]
    """By what each term multiplies its sum."""


class _Sum(NamedTuple):
    """A sum that something sees."""

    name: str
    cells: NDArray[np.int64]
    weight: float
    term: int
    """Number of the term; -1 of what is known exactly."""


def why_no_tree(reading: CountReading) -> str | None:
    """Say what keeps the counts of a model from lying on a tree; None if they do."""
    tree = read_tree(reading)
    return tree if isinstance(tree, str) else None


def read_tree(reading: CountReading) -> TreeReading | str:
    """Find the tree of the sums that a model sees, or say what keeps these from being one."""
    for whole in reading.wholes:
        return f"'{whole.factor}' doesn't see sums of cells one by one, because {whole.reason}"
    sums: list[_Sum] = []
    first = 0
    for terms in reading.terms:
        name = " and ".join(f"'{factor}'" for factor in terms.factors)
        if len(terms.linear) > 1:
            return f"a term of {name} sees several sums of cells at once"
        for matrix in terms.linear.values():
            sums += _sums(name, matrix, first)
        first += terms.size
    for invariant in reading.invariants:
        sums += _sums(f"'{invariant.factor}'", invariant.rows.matrix, None)
    for each in sums:
        if not each.weight:
            return f"{each.name} weighs cells in its sums"
    return _tree(sums, np.flatnonzero(~reading.totals.follows), reading.n_cells)


def _sums(name: str, matrix: sparse.csr_array, first_term: int | None) -> Iterator[_Sum]:
    """Yield the sums that rows of a matrix are; with weight 0 where that of cells differs."""
    for row, (start, stop) in enumerate(zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)):
        weights, cells = matrix.data[start:stop], matrix.indices[start:stop]
        cells, weights = cells[weights != 0], weights[weights != 0]
        if len(cells):
            weight = weights[0] if np.all(weights == weights[0]) else 0.0
            term = -1 if first_term is None else first_term + row
            yield _Sum(name, cells.astype(np.int64), float(weight), term)


def _tree(sums: Sequence[_Sum], leaves: NDArray[np.int64], n_cells: int) -> TreeReading | str:
    """Put sums into each other; say which overlap of which neither holds the other."""
    node_of = np.full(n_cells, -1)
    node_of[leaves] = np.arange(len(leaves))
    parent, largest = [-1] * len(leaves), [1] * len(leaves)
    within = np.full(n_cells, -1)
    latest = np.full(n_cells, -1)  # place of the sum that a cell was last found in
    nodes = np.zeros(len(sums), dtype=np.int64)
    # From the largest on, each lies in one of those before, or in none.
    order = sorted(range(len(sums)), key=lambda k: -len(sums[k].cells))
    for place, k in enumerate(order):
        cells = sums[k].cells
        around = latest[cells]
        if np.any(around != around[0]):
            other = sums[order[around.max()]].name
            return (
                f"{sums[k].name} and {other} sum cells that overlap, and neither sum holds the "
                "other"
            )
        latest[cells] = place
        above = int(within[cells[0]])
        if len(cells) == 1:
            nodes[k] = node_of[cells[0]]
        elif above >= 0 and largest[above] == len(cells):
            nodes[k] = above
        else:
            nodes[k] = len(parent)
            parent.append(above)
            largest.append(len(cells))
            within[cells] = nodes[k]
    for leaf, cell in enumerate(leaves):
        parent[leaf] = int(within[cell])
    exact = np.zeros(len(parent), dtype=bool)
    of_node: list[list[int]] = [[] for _ in parent]
    for k, each in enumerate(sums):
        if each.term < 0:
            exact[nodes[k]] = True
        else:
            of_node[nodes[k]].append(k)
    listed = [k for ks in of_node for k in ks]
    return TreeReading(
        np.array(parent, dtype=np.int64),
        leaves.astype(np.int64),
        exact,
        np.cumsum([0] + [len(ks) for ks in of_node], dtype=np.int64),
        np.array([sums[k].term for k in listed], dtype=np.int64),
        np.array([sums[k].weight for k in listed]),
    )
