"""The table of a release: its cells, and the cells that each released value sums."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from pymc_dapper.checks import has_shape, known, options
from pymc_dapper.releases.margins import Within, margin
from pymc_dapper.releases.query import Query

DRAW = "draw"
"""Name of the draws' dim."""
BY_CELL = np.ndarray | list | tuple | pd.Series
"""Objects that may have a number for each cell."""


@dataclass(frozen=True)
class Table:
    """A table of true values; the queries are its margins.

    Attributes
    ----------
    name : str
        Name of the table.
    dims : tuple of str
        Names of its axes.
    shape : tuple of int
        Their lengths.
    coords : dict
        Labels along dims, and the groups from ``within``.
    queries : tuple of Query
        The released margins.
    groups : tuple of ndarray
        For each query, the number of the released value that each cell belongs to: int64, shape
        (cells,).
    """

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coords: dict[str, Any]
    queries: tuple[Query, ...]
    groups: tuple[np.ndarray, ...]

    @property
    def size(self) -> int:
        """Number of cells."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def of_cells(self) -> list[Query]:
        """The queries of each cell by itself."""
        pairs = zip(self.queries, self.groups, strict=True)
        return [query for query, of in pairs if np.array_equal(of, np.arange(self.size))]

    def as_array(self, values: np.ndarray) -> xr.DataArray:
        """Label values of cells, of shape (cells,) or (cells, draws)."""
        dims = (*self.dims, *([DRAW] if values.ndim > 1 else []))
        shaped = values.reshape((*self.shape, *values.shape[1:]))
        return xr.DataArray(shaped, dims=dims, coords=self.coords, name=self.name)

    def released(self) -> xr.DataArray | None:
        """Released values of the cells themselves; nan where they were suppressed."""
        if len(self.of_cells) != 1:
            return None
        values = np.ma.filled(np.ma.asarray(self.of_cells[0].values, dtype=float), np.nan)
        return self.as_array(values.reshape(-1))


def table_of_query(query: Query) -> Table:
    """Return the table of a query that isn't a margin of another table."""
    shape = np.shape(query.values)
    axes = enumerate(query.dims)
    dims = tuple(dim or ("row" if len(shape) == 1 else f"axis_{k}") for k, dim in axes)
    _check_dims(dims)
    coords = {dim: list(labels) for dim, labels in query.coords.items()}
    own = np.arange(int(np.prod(shape, dtype=int)))
    return Table(query.name, dims, shape, coords, (query,), (own,))


def joint_table(queries: Sequence[Query], within: Within | None) -> Table:
    """Return the table whose margins the queries are.

    Raises
    ------
    TypeError, ValueError
        If an axis of a query has no name, or if ``within`` doesn't fit.
    """
    within = options(within, "within", "(dim, labels) by dim")
    for query in queries:
        if None in query.dims:
            raise ValueError(f"'{query.name}': margins need a name for each axis of the query")
    lengths: dict[str, int] = {}
    coords: dict[str, Any] = {}
    for query in queries:
        lengths |= dict(zip(query.dims, np.shape(query.values), strict=True))
        coords |= {dim: list(labels) for dim, labels in query.coords.items()}
    dims = tuple(dim for dim in lengths if dim not in within)
    _check_dims(dims)
    shape = tuple(lengths[dim] for dim in dims)
    empty = np.zeros(shape)
    for query in queries:
        margin(query, empty, dims, within)  # refuses what doesn't fit
    groups = tuple(_groups(query, dims, shape, within) for query in queries)
    _check_cells_again(queries, groups)
    labels = {dim: coords[dim] for dim in dims if dim in coords}
    for dim, (fine, of) in within.items():
        if fine in dims and dim in lengths:
            labels[dim] = (fine, list(of))
    return Table("table", dims, shape, labels, tuple(queries), groups)


def _check_cells_again(queries: Sequence[Query], groups: Sequence[np.ndarray]) -> None:
    """Check that no cell is in two releases with the same noise."""
    again = [k for k, q in enumerate(queries) if getattr(q.mechanism, "changes_again", False)]
    for k, j in combinations(again, 2):
        both, one, other = _overlaps(groups[k], groups[j])
        if np.any((both == one) & (both == other)):
            raise ValueError(
                f"'{queries[k].name}' and '{queries[j].name}' have cells in common. "
                f"{type(queries[k].mechanism).__name__} changes a cell in the same way each time, "
                "so they are one observation. Leave one of them out"
            )


def _check_dims(dims: Sequence[str]) -> None:
    if DRAW in dims:
        raise ValueError(f"a dim is called '{DRAW}', as draws are: give it another name")


def _groups(query: Query, dims: Sequence[str], shape: Sequence[int], within: Within) -> np.ndarray:
    """Return the number of the released value that each cell of a table belongs to."""
    values = np.asarray(query.values)
    numbers = xr.DataArray(np.arange(values.size).reshape(values.shape), dims=query.dims)
    for dim in set(query.dims).difference(dims):
        fine, of = within[dim]
        at = [query.coords[dim].index(label) for label in of]
        numbers = numbers.isel({dim: xr.DataArray(at, dims=fine)})
    return spread(numbers, dims, shape)


def spread(sums: xr.DataArray, dims: Sequence[str], shape: Sequence[int]) -> np.ndarray:
    """Give each cell of a table the entry of the sum that it belongs to, as a vector."""
    table = xr.DataArray(np.empty(shape), dims=dims)
    return sums.broadcast_like(table).transpose(*dims).values.reshape(-1)


def numbers_by_cell(numbers: Any, dims: Sequence[str], shape: tuple[int, ...]) -> Any:
    """Give an array with a number for each cell the cells' dims; other numbers stay unchanged."""
    if not isinstance(numbers, BY_CELL):
        return numbers
    if isinstance(numbers, pd.Series):
        known(numbers.index.names, dims, "the index of the Series: the answer has no dim")
        return numbers.to_xarray()
    array = np.asarray(numbers)
    why = ", one for each cell (a DataArray, whose dims have names, may be another table)"
    has_shape(array, "an array of numbers", (), shape, why=why)
    return xr.DataArray(array, dims=dims if array.ndim else ())


def are_nested(groups: Sequence[np.ndarray]) -> bool:
    """Whether any two sums are of disjoint cells, or one is part of the other: a tree."""
    overlaps = (_overlaps(*each) for each in combinations(groups, 2))
    return all(np.array_equal(both, np.minimum(*sizes)) for both, *sizes in overlaps)


def _overlaps(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for sums with cells in common, how many these are, and how many each sum has."""
    pairs = one * (other.max() + 1) + other
    _, first, both = np.unique(pairs, return_index=True, return_counts=True)
    return both, np.bincount(one)[one[first]], np.bincount(other)[other[first]]
