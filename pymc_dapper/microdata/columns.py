"""What a release of tables says of a data set: its columns, and the number of people."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.checks import is_a, whole_number
from pymc_dapper.mechanisms.additive import AdditiveNoise
from pymc_dapper.releases.query import Query
from pymc_dapper.releases.release import Release
from pymc_dapper.sizes.reading.present import present
from pymc_dapper.statistics import joint_counts

MOST_DEVIATIONS = 10.0
"""So many standard deviations of its noise may lie between a table's total and that of people."""

SMALL_TABLE = 1_000
"""Most cells of a small table."""

SIMULATED = 64
"""Tables of noise from which the standard deviation of their total is computed."""


@dataclass(frozen=True)
class Columns:
    """Columns of a data set, as the tables of a release tell them."""

    labels: Mapping[str, tuple[Any, ...]]
    """Of each column: its categories."""
    tables: tuple[Query, ...]
    """What was released of the columns."""
    totals: tuple[Query, ...]
    """What was released of the number of people alone."""
    numbers: range
    """How many people there may be."""

    @property
    def sizes(self) -> dict[str, int]:
        """Of each column: the number of its categories."""
        return {column: len(labels) for column, labels in self.labels.items()}

    def shares(self, column: str) -> np.ndarray:
        """Estimate what share of all people is in each category of a column, noise and all.

        The mean over the tables of that column. Cells that are hidden or below zero count as empty,
        and one person more is spread evenly.
        """
        found = []
        for query in self.tables:
            if column in query.dims:
                others = tuple(k for k, x in enumerate(query.dims) if x != column)
                cells = np.ma.filled(np.ma.asarray(query.values, dtype=np.float64), 0.0)
                people = np.maximum(np.nan_to_num(cells), 0.0).sum(axis=others)
                found.append((people + 1 / people.size) / (people.sum() + 1))
        return np.mean(found, axis=0)

    def add_number(self) -> TensorVariable | None:
        """Add the number of people to the model in context, if it isn't known; else None."""
        if len(self.numbers) == 1:
            return None
        n = pm.DiscreteUniform("n", self.numbers[0], self.numbers[-1])
        for query in self.totals:
            query.potential(n, name=f"table_{query.name}" if query.name == "n" else None)
        return n

    def add_tables(self, people: Mapping[str, TensorVariable], n: TensorVariable | None) -> None:
        """Add the likelihood of the tables to the model in context."""
        if n is not None:
            there = present(n, self.numbers[-1])
            people = {column: pt.switch(there, x, -1) for column, x in people.items()}
        for query in self.tables:
            sizes = [self.sizes[column] for column in query.dims]
            table = joint_counts([people[column] for column in query.dims], sizes)
            # A table of one column is mostly called as that is, and so is its dim.
            query.potential(table, name=f"table_{query.name}")

    def add_shares(self, people: Mapping[str, TensorVariable], n: TensorVariable | None) -> None:
        """Add the share of people in each cell of the tables to the model in context."""
        each = pt.constant(1 / self.numbers[-1])
        if n is not None:
            each = present(n, self.numbers[-1]) / pt.maximum(n, 1)
        shapes = [[self.sizes[column] for column in query.dims] for query in self.tables]
        # Counts of small tables have one length: so they compile as one function.
        longest = max(x for x in (0, *map(prod, shapes)) if x <= SMALL_TABLE)
        for query, shape in zip(self.tables, shapes, strict=True):
            cell, n_cells = 0, prod(shape)
            for column in query.dims:
                cell = cell * self.sizes[column] + people[column]
            share = pt.zeros(max(n_cells, longest))[cell].inc(each)[:n_cells].reshape(shape)
            pm.Deterministic(f"share_{query.name}", share, dims=query.dims)


def read_columns(release: Any, n: Any) -> Columns:
    """Read off a release which columns there are, and how many people.

    Raises
    ------
    TypeError, ValueError
        If an axis of a table has no name, no category or only one, if a column has a name that
        can't be used, or if the tables' totals contradict the number of people.
    """
    is_a(release, Release, "release must be a pmd.Release")
    if n is not None:
        n = whole_number(n, "n", at_least=2)
    labels: dict[str, tuple[Any, ...]] = dict(release.coords)
    for query in release:
        for column, size in zip(query.dims, np.shape(query.values), strict=True):
            if column is None:
                raise ValueError(
                    f"'{query.name}': its axes have no names. Say which column each is of, as in "
                    "pmd.Query(..., dims=('age', 'sex'))"
                )
            labels.setdefault(column, tuple(range(size)))
            if size < 2:
                what = "only one category: leave that axis" if size else "no category: leave it"
                raise ValueError(f"'{query.name}': '{column}' has {what} out")
    taken = sorted({"chain", "draw", *(["n"] if n is None else [])} & set(labels))
    if taken:
        raise ValueError(
            f"a column can't be called '{taken[0]}': the result of sampling has that name, too. "
            "Rename it in the release"
        )
    tables = tuple(query for query in release if query.dims)
    if not tables:
        raise ValueError("release has no table of a column: give one table at least")
    totals = tuple(query for query in release if not query.dims)
    return Columns(labels, tables, totals, _numbers(release, n))


def _numbers(release: Release, n: int | None) -> range:
    """Return how many people there may be: the number given, or what the totals leave open."""
    known = {query.name: found for query in release if (found := _total(query))}
    if n is None:
        if not known:
            raise ValueError(
                "n: no table holds plain noisy counts, whose total would tell the number of "
                "people. Give n, or a bound on it in a model of your own"
            )
        # All are of the same people.
        low = max(total - MOST_DEVIATIONS * spread for total, spread in known.values())
        high = min(total + MOST_DEVIATIONS * spread for total, spread in known.values())
        if high < max(low, 2):
            why = "tables aren't of the same people" if high < low else "there is nobody"
            raise ValueError(f"n: {why}: {_listed(known)}")
        return range(max(int(low), 0), int(np.ceil(high)) + 1)
    for query in release:
        low, high, spread = _ends(query)
        if not low - MOST_DEVIATIONS * spread <= n <= high + MOST_DEVIATIONS * spread:
            total = f"{low:,.0f}" if low == high else f"something from {low:,.0f} to {high:,.0f}"
            raise ValueError(
                f"n is {n:,}, but the cells of '{query.name}' add up to {total}, with noise of "
                f"standard deviation {spread:,.2g}. Each person is in one cell of each table: look "
                "for another number of people, a wrong scale, or people who were counted twice"
            )
    return range(n, n + 1)


def _total(query: Query) -> tuple[float, float] | None:
    """Return a table's total and the standard deviation of its noise; None if it isn't known."""
    mechanism = query.mechanism
    if not isinstance(mechanism, AdditiveNoise) or mechanism.publication.rules:
        return None
    low, high, spread = _ends(query)
    return (low, spread) if low == high and not mechanism.suppresses else None


def _ends(query: Query) -> tuple[float, float, float]:
    """Return between which ends a table's total is, but for noise, and that noise's spread.

    A cell whose noisy value is known to be below a limit may be empty.
    """
    mechanism = query.mechanism
    if not isinstance(mechanism, AdditiveNoise) or mechanism.unknown:
        return -np.inf, np.inf, 0.0
    released = np.ma.filled(np.ma.asarray(query.values, dtype=np.float64), -np.inf)
    span = mechanism.publication.span(released)
    low, high = np.where(span.below, 0.0, span.low.value), span.high.value
    plain = mechanism._published(replace(mechanism.publication, rules=(), nonempty=False))
    nobody = np.zeros((SIMULATED, *released.shape), dtype=np.int64)
    noise = plain._draw(nobody, np.random.default_rng(0)).reshape(SIMULATED, -1)
    # Of many cells, those with noise above zero may be the ones that aren't hidden.
    hidden = np.maximum(noise, 0).sum(axis=1).mean() if np.any(span.below) else 0.0
    return (
        float(np.sum(low) - hidden),
        float(np.sum(np.where(span.above, np.inf, high))),
        float(noise.sum(axis=1).std()),
    )


def _listed(known: Mapping[str, tuple[float, float]]) -> str:
    """Tell of the smallest and the largest total."""
    ordered = sorted(known.items(), key=lambda item: item[1][0])
    return " and ".join(
        f"the cells of '{name}' add up to {total:,.0f} ± {spread:,.2g}"
        for name, (total, spread) in dict.fromkeys((ordered[0], ordered[-1]))
    )
