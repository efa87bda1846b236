"""Where a chain starts: block totals drawn given all totals, cells by those of larger areas."""

from typing import Any

import numpy as np

from pymc_dapper.checks import about
from pymc_dapper.counts.trees.tree import CountTree
from pymc_dapper.table_trees import compiled
from pymc_dapper.table_trees.given import Geography, TableQuery, Told
from pymc_dapper.table_trees.layout import Fixed, State, Tables

Entries = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Blocks, cells and how many people are there: the people of a state."""


def tree_of_totals(
    areas: Geography, queries: dict[str, TableQuery], told: Told, prior: Any, names: Any
) -> CountTree:
    """Make the tree of totals, or refuse it if no totals are possible."""
    exact = [repr(name) for name, (_, _, scale, _) in queries.items() if 0 in np.asarray(scale)]
    with about(f"totals of all cells{f' (exact: {", ".join(exact)})' if exact else ''}"):
        sigma = np.sqrt(np.nan_to_num(told.variance))
        tree = CountTree(
            areas.parent, told.value, sigma, noise="gaussian", prior=prior, names=names
        )
        tree.log_evidence()
    return tree


def compositions(
    areas: Geography, queries: dict[str, TableQuery], fixed: Fixed, totals: np.ndarray
) -> np.ndarray:
    """Guess the proportions of each group, from the largest areas down.

    An area begins with the proportions of the area above. These are multiplied, query after query,
    by the ratio of released counts to expected ones. Released counts below zero are taken for zero,
    and one sigma is added to both.
    """
    n_cells = len(fixed.classes)
    wanted = np.zeros(areas.parent.size, dtype=bool)
    above = fixed.together
    while (above >= 0).any():
        wanted[above[above >= 0]] = True
        above = np.where(above >= 0, areas.parent[above], -1)
    found = {-1: np.full((1, n_cells), 1 / n_cells)}
    place = np.zeros(areas.parent.size, dtype=np.int64)
    guess = found[-1]
    for level in range(int(areas.depth[wanted].max()) + 1):
        here = np.flatnonzero(wanted & (areas.depth == level))
        guess = guess[place[areas.parent[here]] if level else np.zeros(here.size, dtype=np.int64)]
        place[here] = np.arange(here.size)
        found[level] = guess
        for classes, released, scale, _ in queries.values():
            k, of = np.shape(released)[1], np.asarray(classes)
            values, sigma = np.asarray(released)[here], np.asarray(scale)[here, None]
            inside = of >= 0
            sums = np.zeros((k, n_cells))
            sums[of[inside], np.flatnonzero(inside)] = 1
            fitted = totals[here, None] * (guess @ sums.T)
            ratio = (np.maximum(values, 0) + sigma + 1e-9) / (fitted + sigma + 1e-9)
            ratio = np.where(np.isnan(ratio), 1.0, ratio)
            guess[:, inside] *= ratio[:, of[inside]]
            guess /= guess.sum(axis=1, keepdims=True)
    shares = np.empty((fixed.together.size, n_cells))
    for g, area in enumerate(fixed.together.tolist()):
        shares[g] = found[int(areas.depth[area])][place[area]]
    shares *= fixed.alpha > 0
    shares += 1e-12 * fixed.alpha / fixed.cumulative[:, -1:]
    return shares / shares.sum(axis=1, keepdims=True)


def first_people(
    rng: np.random.Generator, areas: Geography, tree: CountTree, fixed: Fixed, shares: np.ndarray
) -> Entries:
    """Draw people to start from."""
    totals = tree.draw(1, random_seed=rng)[0][areas.leaf]
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
