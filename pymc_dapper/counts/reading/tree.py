"""Whether counts lie on a tree: all known sums of cells are nested or disjoint.

Given the parameters, such counts need no chain: messages go up the tree, and draws go down
(`pymc_dapper.counts.trees`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from pymc_dapper.counts.reading.model import CountReading
from pymc_dapper.graphs.terms.of_sums import rows_of


@dataclass(frozen=True, eq=False)
class TreeReading:
    """The tree of a model's sums of cells; cells are its leaves.

    Latent totals aren't leaves: they are sums.
    """

    parent: np.ndarray
    """Shape (number of nodes,): the parent of each node, -1 of a root."""
    cells: np.ndarray
    """Shape (number of leaves,): their cells. Leaves are the first nodes."""
    exact: np.ndarray
    """Shape (number of nodes,): which sums are known exactly."""
    term_starts: np.ndarray
    """Shape (number of nodes + 1,): the start of each node's terms in the next two."""
    terms: np.ndarray
    """The terms, as numbers in `CountReading.terms`."""
    weights: np.ndarray
    """The factor by which each term multiplies its sum."""


class _Sum(NamedTuple):
    """A sum in a term or an equation."""

    name: str
    cells: np.ndarray
    weight: float
    term: int
    """Number of the term; -1 for an exact equation."""


def why_no_tree(reading: CountReading) -> str | None:
    """Say why the counts of a model don't lie on a tree; None if they do."""
    tree = read_tree(reading)
    return tree if isinstance(tree, str) else None


def read_tree(reading: CountReading) -> TreeReading | str:
    """Find the tree of a model's sums, or say why they aren't a tree."""
    for whole in reading.wholes:
        return f"'{whole.factor}' isn't a sum of terms of single sums, because {whole.reason}"
    sums: list[_Sum] = []
    first = 0
    for terms in reading.terms:
        name = f"'{terms.factor}'"
        if len(terms.linear) > 1:
            return f"a term of {name} depends on several sums of cells at once"
        for matrix in terms.linear.values():
            sums += _sums(name, matrix, first)
        first += terms.size
    factors = np.array(reading.known.factors, dtype=object)
    for factor in dict.fromkeys(factors):
        sums += _sums(f"'{factor}'", reading.known.matrix[factors == factor], None)
    for each in sums:
        if not each.weight:
            return f"{each.name} weighs cells in its sums"
    return _tree(sums, np.flatnonzero(~reading.totals.follows), reading.n_cells)


def _sums(name: str, matrix: sparse.csr_array, first_term: int | None) -> Iterator[_Sum]:
    """Yield the sums in the rows of a matrix; weight 0 if cells have different weights."""
    for row, (cells, weights) in enumerate(rows_of(matrix)):
        if len(cells):
            weight = weights[0] if np.all(weights == weights[0]) else 0.0
            term = -1 if first_term is None else first_term + row
            yield _Sum(name, cells, float(weight), term)


def _tree(sums: Sequence[_Sum], leaves: np.ndarray, n_cells: int) -> TreeReading | str:
    """Nest sums, from the smallest on; say which ones overlap without being nested."""
    top = np.full(n_cells, -1)  # the largest sum until now with each cell
    top[leaves] = np.arange(len(leaves))
    parent, size, names = [-1] * len(leaves), [1] * len(leaves), [""] * len(leaves)
    nodes = np.zeros(len(sums), dtype=np.int64)
    for k in sorted(range(len(sums)), key=lambda k: len(sums[k].cells)):
        cells = sums[k].cells
        parts, n_inside = np.unique(top[cells], return_counts=True)
        for part, n in zip(parts.tolist(), n_inside.tolist(), strict=True):
            if n < size[part]:
                return (
                    f"{names[part]} and {sums[k].name} sum overlapping cells, and neither sum "
                    "contains the other"
                )
        nodes[k] = parts[0]
        if len(parts) > 1:
            nodes[k] = len(parent)
            for part in parts.tolist():
                parent[part] = len(parent)
            parent.append(-1)
            size.append(len(cells))
            names.append(sums[k].name)
            top[cells] = nodes[k]
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
