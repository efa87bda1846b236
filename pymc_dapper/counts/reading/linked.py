"""Linked tables: tables that have columns in common, and agree on their margins.

A Multinomial's total may be a margin of another table of counts: in a chain of columns a, b, c, the
table of b and c has as many people of each b as that of a and b. Tables that are linked so, one by
one, are the margins of a decomposable model's cliques. All tables that agree are the counts of some
data set, and a person who changes one column is a move between such tables. So moves in which
people of any categories change a column connect all tables. Where several columns change at once,
with signs in turn, tables with fewer of them stay as they are (Dobra 2003). The same people may
also change several columns at once.

If some tables have probability zero, others may lie behind them. Then the step takes moves that
don't use these columns, if it knows any, or refuses the model.

Dobra, A. (2003). Markov bases for decomposable graphical models. Bernoulli 9.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from pymc_dapper.counts.kernels.linked import AT_ONCE, MOST_CHANGED, NONE
from pymc_dapper.graphs.terms.of_sums import rows_of

Axis = tuple[int, int]
"""A table, and one of its axes, by their numbers."""
Axes = tuple[int, tuple[int, ...]]
"""A table, and some of its axes."""

LINES_PER_CELL = 4
"""Lines in a sweep, for each cell of a linked table."""
SPREAD = 20
"""Tables that show whether all are possible."""


@dataclass(frozen=True)
class Linked:
    """Tables with columns in common."""

    sizes: np.ndarray
    """The number of categories of each column."""
    starts: np.ndarray
    """The first cell of each table."""
    strides: np.ndarray
    """Shape (tables, columns): how many cells lie between two categories; 0 if the table doesn't
    have the column."""
    sets: np.ndarray
    """Shape (lines of a sweep, MOST_CHANGED): the columns that change, as :func:`pack_linked` has
    them. Without any, the number of people changes."""

    def spread(self, table: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Yield tables that agree, whatever their probability: people change one column each."""
        table, of_one = table.copy(), self.sets[(self.sets[:, 0] >= 0) & (self.sets[:, 1] < 0), 0]
        for k in range(len(self.sets)):
            column, person = rng.choice(of_one), rng.integers(self.sizes)
            strides = self.strides[self.strides[:, column] > 0]
            cells = self.starts[self.strides[:, column] > 0] + strides @ person
            move = rng.integers(self.sizes[column]) - person[column]
            others = cells + strides[:, column] * move
            n_people = rng.integers(table[cells].min(), endpoint=True)
            table[cells] -= n_people
            table[others] += n_people
            if (k + 1) % max(1, len(self.sets) // SPREAD) == 0:
                yield table


@dataclass(frozen=True)
class Margin:
    """The cells of a table that have some categories of its columns."""

    table: int
    axes: tuple[int, ...]
    categories: tuple[int, ...]


Equations = Sequence[tuple[Margin, ...]]
"""Each says how large one margin is, or that two margins are equal."""


def find_linked(equations: sparse.csr_array, shapes: Sequence[tuple[int, ...]]) -> Linked | None:
    """Find linked tables by the equations of their cells; None if these say anything else.

    Parameters
    ----------
    equations
        With a row for each equation and a column for each cell.
    shapes
        Of each table, in the order of the cells.
    """
    starts = np.cumsum([0, *map(prod, shapes)])
    read = [_margins(*row, starts, shapes) for row in rows_of(equations)]
    by_axes = defaultdict[tuple[Axes, ...], list[tuple[Margin, ...]]](list)
    for margins in read:
        by_axes[tuple((x.table, x.axes) for x in margins)].append(margins)
    links = {where: each for where, each in by_axes.items() if len(where) == 2}
    tables = sorted({table for where in links for table, _ in where})
    complete = all(_are_complete(each, shapes) for each in by_axes.values())
    if () in by_axes or not complete or not _is_tree(links, tables):
        return None
    columns = [{(table, axis)} for table in tables for axis, n in enumerate(shapes[table]) if n > 1]
    for where, each in links.items():
        for pair in _shared(where, each):
            joined = [column for column in columns if not column.isdisjoint(pair)]
            columns = [column for column in columns if column not in joined]
            columns.append(set().union(*joined))
    known = [
        {k for k, column in enumerate(columns) if not column.isdisjoint((table, x) for x in axes)}
        for [(table, axes), *others] in by_axes
        if not others
    ]
    most = max(known, key=len, default=None)
    if most is not None and not all(each <= most for each in known):
        return None
    strides = np.zeros((len(tables), len(columns)), dtype=np.int64)
    for k, column in enumerate(columns):
        for table, axis in column:
            strides[tables.index(table), k] = prod(shapes[table][axis + 1 :])
    sizes = [next(shapes[table][axis] for table, axis in column) for column in columns]
    n_cells = [prod(shapes[table]) for table in tables]
    return Linked(np.array(sizes), starts[tables], strides, _sets(strides, n_cells, most))


def _margins(
    cells: np.ndarray, values: np.ndarray, starts: np.ndarray, shapes: Sequence[tuple[int, ...]]
) -> tuple[Margin, ...]:
    """Read an equation as a margin that is known, or two that are equal; none if it's neither."""
    of_cells = np.searchsorted(starts, cells, side="right") - 1
    tables, margins = np.unique(of_cells), list[Margin]()
    coefficients = [np.unique(values[of_cells == table]) for table in tables]
    if any(len(each) > 1 for each in coefficients) or len(tables) > 2:
        return ()
    if len(tables) == 2 and sum(coefficients) != 0:
        return ()
    for table in tables.tolist():
        shape = shapes[table]
        at = np.array(np.unravel_index(cells[of_cells == table] - starts[table], shape))
        axes = [k for k, n in enumerate(shape) if n > 1 and np.all(at[k] == at[k, 0])]
        if at.shape[1] * prod(shape[k] for k in axes) != prod(shape):
            return ()
        margins.append(Margin(table, tuple(axes), tuple(at[axes, 0].tolist())))
    return tuple(margins)


def _are_complete(equations: Equations, shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether equations of the same margins are there for all categories."""
    return all(
        len({margin.categories for margin in margins})
        == prod(shapes[margins[0].table][axis] for axis in margins[0].axes)
        for margins in zip(*equations, strict=True)
    )


def _shared(where: tuple[Axes, ...], equations: Equations) -> list[tuple[Axis, Axis]]:
    """Pair the axes of two tables' equal margins, by the categories in each equation."""
    (first, axes), (second, others) = where
    of_first, of_second = (np.array([x[k].categories for x in equations]).T for k in (0, 1))
    return [
        ((first, axis), (second, other))
        for axis, categories in zip(axes, of_first, strict=True)
        for other, found in zip(others, of_second, strict=True)
        if np.array_equal(categories, found)
    ]


def _is_tree(links: Collection[tuple[Axes, ...]], tables: Sequence[int]) -> bool:
    """Whether links connect all tables, each by one way."""
    ends = np.array([[tables.index(table) for table, _ in link] for link in links]).T
    if len(links) != len(tables) - 1 or not links:
        return False
    graph = sparse.coo_array((np.ones(len(links)), tuple(ends)), shape=(len(tables), len(tables)))
    return bool(connected_components(graph, directed=False)[0] == 1)


def _sets(strides: np.ndarray, cells_of: Sequence[int], fixed: set[int] | None) -> np.ndarray:
    """List which columns change in each line of a sweep.

    The common margin of ``fixed`` columns is known, so these don't change without others. If
    nothing is known, there may be more people, or fewer. If columns nearly determine each other,
    the same people have to change several at once.
    """
    lines = []
    for own, n_cells in zip(strides, cells_of, strict=True):
        columns = np.flatnonzero(own).tolist()
        sets = []
        for size in range(MOST_CHANGED + 1):
            rest = (NONE,) * (MOST_CHANGED - size)
            for chosen in combinations(columns, size):
                if fixed is None or not fixed.issuperset(chosen):
                    sets.append((*chosen, *rest))
                if size > 1 and (fixed or set()).isdisjoint(chosen):
                    sets.append((*(AT_ONCE - column for column in chosen), *rest))
        lines += [sets[k % len(sets)] for k in range(LINES_PER_CELL * n_cells) if sets]
    return np.array(lines, dtype=np.int64).reshape(-1, MOST_CHANGED)
