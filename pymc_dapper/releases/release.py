"""A release: all numbers published about some records, with their mechanisms."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.budget import ApproxDP, Budget, compose
from pymc_dapper.budget.kinds import check_budget, is_below
from pymc_dapper.budget.written import budget_from_dict, budget_to_dict
from pymc_dapper.checks import different, is_a, known, shown, text
from pymc_dapper.html import aligned, table
from pymc_dapper.releases.labels import as_coords, check_used
from pymc_dapper.releases.margins import margin
from pymc_dapper.releases.mechanism_json import (
    as_given,
    mechanism_from_dict,
    mechanism_to_dict,
    number,
)
from pymc_dapper.releases.query import Query

if TYPE_CHECKING:
    from pymc_dapper.answers import Answer

SCHEMA, VERSION = "pymc_dapper release", 1

HEADER = ("query", "dims", "shape", "values", "mechanism")

MOST_VALUES = 6
"""Up to this number of values, each is shown."""


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """All released values about the same records, and the mechanisms that made them.

    Readers return a `Release`: `read_release` for a table, and those in `pymc_dapper.releases` for
    the formats of privacy libraries and offices.

    Parameters
    ----------
    queries : sequence of Query
        The released statistics. Dims of the same name have the same labels.
    budget : PureDP, ZCDP or ApproxDP, optional
        What the release as a whole spends. By default, the sum of the mechanisms' budgets
        (sequential composition), if each is known and all are of one kind.

    Raises
    ------
    TypeError, ValueError
        If there is no query, two have the same name, or a dim has other labels in another query. If
        the budget contradicts the mechanisms' budgets: it is for other neighbours, below one of
        them, or, for pure and zero-concentrated budgets, below their sum.

    Examples
    --------
    >>> Release([Query("people", [110, 131], LaplaceMechanism(6), "sex", {"sex": ["m", "f"]})])
    Release of 1 query
    query    dims    shape    values      mechanism
    people   sex     2        110, 131    LaplaceMechanism(scale=6)
    """

    queries: Any
    budget: Budget | None = None

    def __post_init__(self) -> None:
        queries = self.queries
        if isinstance(queries, Query):
            queries = (queries,)
        if not isinstance(queries, list | tuple) or not all(isinstance(q, Query) for q in queries):
            raise TypeError(f"queries must be a list of Query, got {shown(self.queries)}")
        if not queries:
            raise ValueError("queries must hold at least one query, got none")
        rule = "queries must have different names (dataclasses.replace(query, name=...) sets one)"
        different([query.name for query in queries], rule)
        _check_dims(queries)
        check_budget(self.budget)
        total = _added_up([query.mechanism.budget for query in queries])
        if self.budget is None:
            object.__setattr__(self, "budget", total)
        else:
            _check_budget(self.budget, total, queries)
        object.__setattr__(self, "queries", tuple(queries))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the queries."""
        return tuple(query.name for query in self.queries)

    @property
    def coords(self) -> dict[str, tuple[Any, ...]]:
        """Labels of all dims, as for ``pm.Model(coords=release.coords)``."""
        return {dim: labels for query in self.queries for dim, labels in query.coords.items()}

    def __getitem__(self, name: str) -> Query:
        for query in self.queries:
            if query.name == name:
                return query
        raise KeyError(f"the release has no query {name!r}, but {', '.join(self.names)}")

    def __iter__(self) -> Iterator[Query]:
        return iter(self.queries)

    def __len__(self) -> int:
        return len(self.queries)

    def potential(self, statistic: Any) -> Any:
        """Add the likelihood of the released values to the model in context, as Potentials.

        Parameters
        ----------
        statistic : tensor_like or mapping of str to tensor_like
            The confidential statistic. For a release of several queries, a dict by their names; you
            may leave some out.

        Returns
        -------
        TensorVariable or dict of str to TensorVariable
            The Potential, or a dict of them if statistics were given as a dict.

        Raises
        ------
        TypeError, ValueError
            As of `Query.potential`; or if there is no such query.
        """
        return self._add("potential", statistic)

    def observe(self, statistic: Any) -> Any:
        """Add the released values to the model in context as observed variables.

        Predictive draws then give releases. Arguments and errors are those of :meth:`potential`.

        Returns
        -------
        TensorVariable or dict of str to TensorVariable
            The observed variable, or a dict of them if statistics were given as a dict.
        """
        return self._add("observe", statistic)

    def _add(self, method: str, statistic: Any) -> TensorVariable | dict[str, TensorVariable]:
        if not isinstance(statistic, Mapping):
            if len(self) > 1:
                raise TypeError(
                    f"the release has {len(self)} queries: give {method} a dict of statistics by "
                    f"name, as in {method}({{{self.names[0]!r}: ...}}), got {shown(statistic)}"
                )
            return getattr(self.queries[0], method)(statistic)
        known(statistic, self.names, "statistic: the release has no query")
        if not statistic:
            raise ValueError("statistic must name at least one query, got none")
        return {name: getattr(self[name], method)(value) for name, value in statistic.items()}

    def margins(
        self,
        table: Any,
        dims: Sequence[str],
        *,
        within: Mapping[str, tuple[str, Sequence[Any]]] | None = None,
    ) -> dict[str, Any]:
        """Sum a table over the dims that each query doesn't have.

        Parameters
        ----------
        table : tensor or ndarray
            The table whose margins the queries are, such as latent counts.
        dims : sequence of str
            Its dims.
        within : mapping, optional
            For a dim that isn't the table's but groups one of the table's, such as counties: the
            grouped dim, and the group's label for each of its entries: ``{"county": ("tract",
            ["01", "01", "02"])}``.

        Returns
        -------
        dict of str to tensor or ndarray
            The margin of each query, with the query's dims in their order.

        Raises
        ------
        TypeError, ValueError
            If a query has a dim that the table doesn't have, and that groups none of the table's.
        """
        return {query.name: margin(query, table, dims, within) for query in self}

    def posterior(
        self,
        *,
        prior: Any = "flat",
        total: Any = None,
        margins: bool | None = None,
        within: Mapping[str, tuple[str, Sequence[Any]]] | None = None,
        draws: int = 4000,
        random_seed: Any = None,
    ) -> "Answer | dict[str, Answer]":
        """Draw the true values given the released ones, without a model.

        Parameters
        ----------
        prior : str, range or tuple, default "flat"
            Prior of each true value. ``"flat"``: counts, flat on 0, 1, 2, ...; ``"smooth"``: counts
            that share strength, gamma-Poisson with unknown mean and concentration; ``range(0,
            1001)``: counts, flat on this range; ``(lower, upper)``: real numbers, flat between the
            limits, such as sums of clamped values, with limits for all cells or one for each. For
            several statistics, a dict by their names.
        total : int, DataArray or Series, optional
            Sums that are known exactly: the total of all cells, or totals with the labels of some
            dims. A flat prior is then flat on tables with these sums.
        margins : bool, optional
            Whether all queries are margins of one table. They are then estimated together, so that
            all answers agree with each other. Required if queries have different dims.
        within : mapping, optional
            For dims that group another one, as in :meth:`margins`: ``{"county": ("tract", ["01",
            "01", "02"])}``. All queries are then margins of one table.
        draws : int, default 4000
            Number of draws.
        random_seed : int, Generator, ..., optional
            Seed.

        Returns
        -------
        Answer or dict of str to Answer
            Draws of the table; or, if each query is a statistic of its own, a dict by query.

        Raises
        ------
        TypeError, ValueError
            If an argument is of a wrong kind; if a mechanism doesn't release each cell by itself;
            if no true values can have led to the released ones; or if nothing bounds the true
            values.

        Notes
        -----
        Draws are exact and independent in two cases: if each cell is by itself (its law is
        tabulated), and if all released sums are nested (by a `CountTree`). Otherwise they come from
        a chain. `Answer.method` says which.

        Examples
        --------
        >>> cases = release.posterior(random_seed=1)
        >>> print(cases.summary())
        >>> (cases["A"] / cases["B"]).interval(0.9)
        """
        from pymc_dapper.answers.posterior import posterior_of

        return posterior_of(
            self,
            prior=prior,
            total=total,
            margins=margins,
            within=within,
            draws=draws,
            random_seed=random_seed,
        )

    def __repr__(self) -> str:
        return "\n".join([self._title, *aligned([HEADER, *map(_row, self.queries)])])

    def _repr_html_(self) -> str:
        return table(self._title, HEADER, map(_row, self.queries))

    @property
    def _title(self) -> str:
        count = f"{len(self)} {'query' if len(self) == 1 else 'queries'}"
        return f"Release of {count}" + ("" if self.budget is None else f", {self.budget}")

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Write the release with its mechanisms, for :meth:`from_json`.

        Parameters
        ----------
        path : path, optional
            File to write to.

        Returns
        -------
        str
            The text. [Releases](releases.md) has the schema.

        Raises
        ------
        TypeError
            If a mechanism can't be written, such as a `CustomMechanism`; the message begins with
            the query's name.
        """
        queries = [
            {
                "name": query.name,
                "dims": list(query.dims),
                "values": _written(query.values),
                "mechanism": mechanism_to_dict(query.name, query.mechanism),
            }
            for query in self.queries
        ]
        parts = {
            "schema": _dumps(SCHEMA),
            "version": _dumps(VERSION),
            "budget": _dumps(budget_to_dict(self.budget)),
            "coords": _dumps(self.coords),
            "queries": "[\n  " + ",\n  ".join(map(_dumps, queries)) + "\n ]",
        }
        lines = (f' "{key}": {value}' for key, value in parts.items())
        written = "{\n" + ",\n".join(lines) + "\n}"
        if path is not None:
            Path(path).write_text(written + "\n", encoding="utf-8")
        return written

    @classmethod
    def from_json(cls, source: str | PathLike[str]) -> Self:
        """Read what :meth:`to_json` wrote.

        Parameters
        ----------
        source : str or path
            The text, which begins with a brace, or the path of a file.

        Returns
        -------
        Release

        Raises
        ------
        TypeError, ValueError
            If the source isn't a release or has a later version of the schema; or if it holds an
            unknown mechanism, lacks a parameter, or has values that the mechanism can't have
            released. The message names the query.
        OSError
            If the file can't be read.
        """
        is_a(source, str | PathLike, "source must be text or the path of a file")
        is_text = isinstance(source, str) and source.lstrip().startswith("{")
        try:
            content = json.loads(
                str(source) if is_text else Path(source).read_text(encoding="utf-8"),
                parse_constant=_refuse_constant,
                object_pairs_hook=_with_each_key_once,
            )
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"source isn't JSON: {error}") from None
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            raise ValueError(f"source isn't a release: its 'schema' must be {SCHEMA!r}")
        if isinstance(content.get("version"), bool) or content.get("version") != VERSION:
            raise ValueError(
                f"source has version {content.get('version')!r} of the schema, where this "
                f"pymc_dapper knows version {VERSION}"
            )
        _check_keys("the release", content, ("schema", "version", "budget", "coords", "queries"))
        is_a(content["queries"], list, "queries must be a list")
        coords = as_coords("the release's", content["coords"])
        queries = [_query(each, coords) for each in content["queries"]]
        check_used(coords, [dim for query in queries for dim in query.dims], "is a dim of no query")
        return cls(queries, budget_from_dict(content["budget"]))


def _dumps(content: Any) -> str:
    return json.dumps(content, allow_nan=False, ensure_ascii=False)


def _written(values: np.ndarray) -> Any:
    """Convert values to nested lists; suppressed ones become None."""
    if not np.ma.isMaskedArray(values):
        return number(values)
    cells = np.ma.getdata(values).astype(object)
    cells[np.ma.getmaskarray(values)] = None
    return number(cells)


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"source has the number {word}, which JSON doesn't allow")


def _with_each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    different([key for key, _ in pairs], "source must have each key once in one place")
    return dict(pairs)


def _check_keys(what: str, content: Mapping[str, Any], keys: Sequence[str]) -> None:
    for key in keys:
        if key not in content:
            raise ValueError(f"'{key}' of {what} is missing")
    for key in content:
        if key not in keys:
            raise ValueError(f"{what} has '{key}', which isn't known: there are {', '.join(keys)}")


def _query(content: Any, coords: Mapping[str, tuple[Any, ...]]) -> Query:
    is_a(content, dict, "a query is written as a dict")
    name = text(content.get("name"), "the name of a query")
    _check_keys(f"query {name!r}", content, ("name", "dims", "values", "mechanism"))
    mechanism = mechanism_from_dict(name, content["mechanism"])
    dims = content["dims"]
    is_a(dims, list, f"'{name}': dims must be a list")
    own = {dim: coords[dim] for dim in dims if isinstance(dim, str) and dim in coords}
    return Query(name, _values(name, content["values"]), mechanism, dims, own)


def _values(name: str, written: Any) -> np.ndarray:
    """Make an array from nested lists of numbers; nulls are masked."""
    try:
        cells = np.array(written, dtype=object)
        flat = [as_given(each) for each in cells.flat]
        hidden = np.array([each is None for each in flat], dtype=bool)
        if any(isinstance(each, bool | str | list) for each in flat):
            raise ValueError
        # Whole numbers stay exact, beyond 2^53, too.
        values = np.array([0 if each is None else each for each in flat])
    except ValueError:
        raise ValueError(
            f"'{name}': values must be numbers, or lists of them of equal lengths, with null where "
            "they were suppressed"
        ) from None
    values = values.reshape(cells.shape)
    return np.ma.masked_array(values, hidden.reshape(cells.shape)) if hidden.any() else values


def _check_dims(queries: Sequence[Query]) -> None:
    """Check that a dim is the same in all queries."""
    seen: dict[str, tuple[str, int, Any]] = {}
    for query in queries:
        for dim, length in zip(query.dims, np.shape(query.values), strict=True):
            if dim is None:
                continue
            labels = query.coords.get(dim)
            first, first_length, first_labels = seen.setdefault(dim, (query.name, length, labels))
            if length != first_length or labels != first_labels:
                same = labels and first_labels and set(labels) == set(first_labels)
                told = "its labels in another order" if same else "other labels, or another length,"
                raise ValueError(
                    f"'{query.name}': dim '{dim}' has {told} than in '{first}'. Put labels and "
                    "values in one order, and give dims that differ different names"
                )


def _check_budget(budget: Budget, total: Budget | None, queries: Sequence[Query]) -> None:
    """Refuse a stated budget that contradicts those of the queries' mechanisms.

    Approximate budgets are compared one by one only: the smallest epsilon that holds for all of
    them together is far below their sum.
    """
    for query in queries:
        own = query.mechanism.budget
        if own is None:
            continue
        if own.neighbours != budget.neighbours:
            raise ValueError(
                f"budget: {budget} is for other neighbours than that of '{query.name}', {own}. "
                "Give both the same neighbours=, or leave budget= out and have the queries' "
                "budgets added up"
            )
        if is_below(budget, own):
            raise ValueError(f"budget: {budget} is below that of '{query.name}' alone, {own}")
    if total is not None and not isinstance(total, ApproxDP) and is_below(budget, total):
        raise ValueError(
            f"budget: {budget} is below what the queries spend together, {total}. If each person "
            "is in one query only, the largest of them holds. Then give mechanisms by their scale, "
            "as in LaplaceMechanism(4): they have no budget to add up"
        )


def _added_up(budgets: Sequence[Budget | None]) -> Budget | None:
    told = [budget for budget in budgets if budget is not None]
    if len(told) < len(budgets) or len({type(budget) for budget in told}) > 1:
        return None
    try:
        return compose(*told)
    except ValueError:  # deltas that add up to 1 promise nothing
        return None


def _row(query: Query) -> tuple[str, ...]:
    shape = np.shape(query.values)
    return (
        query.name,
        ", ".join(dim or "-" for dim in query.dims) or "-",
        " x ".join(map(str, shape)) or "-",
        _shown(query.values),
        repr(query.mechanism),
    )


def _shown(values: Any) -> str:
    hidden = np.ma.getmaskarray(values)
    if values.size <= MOST_VALUES:
        cells = zip(np.ma.getdata(values).flat, hidden.flat, strict=True)
        return ", ".join("suppressed" if is_hidden else f"{x:.6g}" for x, is_hidden in cells)
    told = f"{np.min(values):.6g} to {np.max(values):.6g}"
    return told + (f", {np.count_nonzero(hidden)} suppressed" if hidden.any() else "")
