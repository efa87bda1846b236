"""People whose columns depend on each other where they were released together."""

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

import numpy as np
import pymc as pm

from pymc_dapper.microdata.columns import read_columns

MOST_CELLS = 1_000_000
"""Cells that the largest table of probabilities may have."""


def graphical(release: Any, *, n: int | None = None) -> pm.Model:
    """Write the graphical model of people behind a release of tables.

    Columns that were released in one table depend on each other. Others are independent given
    those. private-pgm has the same family of distributions, and computes the one of maximum
    entropy. There is no number of classes to choose, but columns that depend on each other must fit
    into tables of moderate size.

    Parameters
    ----------
    release : Release
        Tables of the same people. The dims of a table are its columns.
    n : int, optional
        Number of people. If not given, it is a variable of the model, with a flat prior on what the
        tables' totals leave open.

    Returns
    -------
    Model
        With a conditional table of probabilities ``p_COLUMN`` for each column, given some earlier
        columns; its dims are these columns, and last its own. Priors are flat. The people are
        ``person_COLUMN``, and each table has a Potential ``table_NAME``.

    Raises
    ------
    TypeError, ValueError
        If the release isn't one of tables with named dims, or contradicts ``n``; if a conditional
        table would have more than a million cells.

    Notes
    -----
    The graph of columns that were released together is triangulated by elimination: the column
    whose table with its neighbours has the fewest cells goes first, and its neighbours are joined.
    In reverse order, each column is given the neighbours that it had when it was eliminated. So
    every released table is a margin of the joint table of one column and those that it is given. If
    there are more people than cells, :func:`pymc_dapper.sample` counts them in these tables.

    References
    ----------
    Dawid, A. P. and Lauritzen, S. L. (1993). Hyper Markov laws in the statistical analysis of
    decomposable graphical models. Annals of Statistics 21. McKenna, R., Sheldon, D. and Miklau, G.
    (2019). Graphical-model based estimation and inference for differential privacy. International
    Conference on Machine Learning 36.

    Examples
    --------
    >>> model = graphical(release, n=48_842)
    >>> with model:
    ...     idata = pmd.sample()
    """
    columns = read_columns(release, n)
    sizes = columns.sizes
    given_of = conditional_tables(sizes, [query.dims for query in columns.tables])
    with pm.Model(coords=columns.labels) as model:
        number = columns.add_number()
        room = columns.numbers[-1]
        people: dict[str, Any] = {}
        for column, given in given_of.items():
            dims = (*given, column)
            p = pm.Dirichlet(f"p_{column}", np.ones([sizes[x] for x in dims]), dims=dims)
            of_each = p[tuple(people[x] for x in given)] if given else p
            people[column] = pm.Categorical(f"person_{column}", of_each, shape=room)
        columns.add_tables(people, number)
    return model


def conditional_tables(
    sizes: Mapping[str, int], released: Iterable[tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Say which columns each column is given, those that others are given first.

    Raises
    ------
    ValueError
        If a table would have more than a million cells.
    """
    neighbours: dict[str, set[str]] = {column: set() for column in sizes}
    for clique in released:
        for column in clique:
            neighbours[column] |= set(clique) - {column}

    def cells(column: str) -> int:
        return prod(sizes[x] for x in (column, *neighbours[column]))

    eliminated: dict[str, set[str]] = {}
    while neighbours:
        column = min(neighbours, key=cells)
        if cells(column) > MOST_CELLS:
            tied = ", ".join(f"'{x}'" for x in (column, *sorted(neighbours[column])))
            raise ValueError(
                f"released tables tie {tied} together, and a table of all these columns has "
                f"{cells(column):,} cells, more than {MOST_CELLS:,}. Use "
                "pmd.microdata.regressions, which forms no such table, or leave tables out"
            )
        eliminated[column] = given = neighbours.pop(column)
        for other in given:
            neighbours[other] = (neighbours[other] | given) - {column, other}
    order = list(reversed(eliminated))
    return {x: tuple(sorted(eliminated[x], key=order.index)) for x in order}
