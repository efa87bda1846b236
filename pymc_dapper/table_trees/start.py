"""Where a chain starts: block totals drawn given all totals, cells by the prior's proportions."""

from typing import Any

import numpy as np

from pymc_dapper.checks import about
from pymc_dapper.counts.trees.tree import CountTree
from pymc_dapper.table_trees import compiled
from pymc_dapper.table_trees.given import AreaTotals, Geography, TableQuery
from pymc_dapper.table_trees.layout import Fixed, State, Tables

Entries = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Blocks, cells and how many people are there: the people of a state."""


def tree_of_totals(
    areas: Geography, queries: dict[str, TableQuery], totals: AreaTotals, prior: Any, names: Any
) -> CountTree:
    """Make the tree of totals, or refuse it if no totals are possible."""
    exact = [repr(name) for name, (_, _, scale, _) in queries.items() if 0 in np.asarray(scale)]
    with about(f"totals of all cells{f' (exact: {", ".join(exact)})' if exact else ''}"):
        sigma = np.sqrt(np.nan_to_num(totals.variance))
        tree = CountTree(
            areas.parent, totals.value, sigma, noise="gaussian", prior=prior, names=names
        )
        tree.log_evidence()
    return tree


def first_people(
    rng: np.random.Generator, areas: Geography, tree: CountTree, fixed: Fixed
) -> Entries:
    """Draw people to start from."""
    totals = tree.draw(1, random_seed=rng)[0][areas.leaf]
    shares = fixed.alpha / fixed.cumulative[:, -1:]
    parts: list[Entries] = []
    for begin in range(0, totals.size, 4096):
        some = slice(begin, begin + 4096)
        table = rng.multinomial(totals[some], shares[fixed.group[some]])
        blocks, cells = np.nonzero(table)
        parts.append((blocks + begin, cells, table[blocks, cells]))
    blocks, cells, n = (np.concatenate(each) for each in zip(*parts, strict=True))
    return blocks, cells, n


def state_of(fixed: Fixed, released: np.ndarray, entries: Entries) -> State:
    """Make the state with these people."""

    def empty(rows: int) -> Tables:
        shape = (rows, len(fixed.classes))
        none = np.zeros((2, rows), dtype=np.int64)
        return Tables(np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int16), *none)

    state = State(released.copy(), empty(fixed.leaf.size + 1), empty(fixed.together.size))
    compiled.settle(fixed, state, *entries)
    return state


def entries_of(people: Tables) -> Entries:
    """Return the people of a state, in the order in which they are found again."""
    inside = np.arange(people.cells.shape[1]) < people.occupied[:, None]
    blocks = np.nonzero(inside)[0]
    cells = people.cells[inside].astype(np.int64)
    return blocks, cells, people.counts[blocks, cells].astype(np.int64)
