"""The cells of a study, and the seed of each."""

import hashlib
import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from pymc_dapper.checks import as_array, whole_number
from pymc_dapper.studies import fields

type Value = bool | int | float | str

TABLE_DIM = "cell"
REPLICATE_DIM = "replicate"


@dataclass(frozen=True, eq=False)
class Cell:
    """One simulated release and its analysis.

    ``simulate`` and ``build`` are called with the settings. The index is the cell's place in arrays
    with the dims of the grid and of replicates.
    """

    settings: dict[str, Value]
    replicate: int
    index: tuple[int, ...]

    @property
    def name(self) -> str:
        """The cell's name in a store: a hash of its settings, and the replicate."""
        return f"{self._digest():032x}-{self.replicate:05d}"

    def seeds(self, seed: int) -> np.random.SeedSequence:
        """Return the seed of the cell.

        It depends on the study's seed, the settings' names and values, and the replicate. So it is
        the same on every worker and in every order, and stays the same when a grid grows.
        """
        return np.random.SeedSequence([seed, self._digest(), self.replicate])

    def __str__(self) -> str:
        """Show the settings."""
        listed = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"{listed}, replicate {self.replicate}"

    def _digest(self) -> int:
        """Hash the settings; equal numbers of different types hash alike."""
        text = json.dumps({k: _plain(v) for k, v in self.settings.items()}, sort_keys=True)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")


def _plain(value: Value) -> Value:
    return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclass(frozen=True)
class Grid:
    """The cells of a study, as arrays will hold their results.

    ``coords`` has the settings' dims, or the dim ``cell`` if not all combinations are in the study,
    and the replicates, whose dim is the last. Cells of equal settings are adjacent.
    """

    names: tuple[str, ...]
    coords: dict[str, Any]
    dims: dict[str, int]
    cells: tuple[Cell, ...]


def read_grid(grid: Any, replicates: int) -> Grid:
    """Read the user's grid: all combinations of lists' values, or a table.

    Raises TypeError or ValueError if the grid isn't of such a form, is empty or repeats a setting;
    if a name can't be that of an argument or means something else in the result; if a value isn't a
    number, a bool or a string; if there are no replicates.
    """
    replicates = whole_number(replicates, "replicates", at_least=1)
    if hasattr(grid, "to_dict") and hasattr(grid, "columns"):
        grid = grid.to_dict(orient="records")
    if isinstance(grid, Mapping):
        levels = {name: _levels(name, values) for name, values in _named(grid).items()}
        rows = [dict(zip(levels, values, strict=True)) for values in product(*levels.values())]
    else:
        rows = _rows(grid)
        levels = {name: list(dict.fromkeys(row[name] for row in rows)) for name in rows[0]}
    names = tuple(levels)
    replicate = {REPLICATE_DIM: list(range(replicates))}
    if len(rows) == math.prod(map(len, levels.values())):
        coords: dict[str, Any] = {**levels, **replicate}
        dims = {name: len(values) for name, values in coords.items()}
        places = [tuple(levels[name].index(row[name]) for name in names) for row in rows]
    else:
        columns = {name: (TABLE_DIM, [row[name] for row in rows]) for name in names}
        coords = {**columns, **replicate}
        dims = {TABLE_DIM: len(rows), REPLICATE_DIM: replicates}
        places = [(k,) for k in range(len(rows))]
    pairs = zip(rows, places, strict=True)
    cells = tuple(Cell(row, k, (*at, k)) for row, at in pairs for k in range(replicates))
    return Grid(names, coords, dims, cells)


def _named(grid: Mapping[Any, Any]) -> Mapping[str, Any]:
    """Check the names of settings."""
    if not grid:
        raise ValueError("the grid is empty: give at least one setting, as in {'epsilon': [1.0]}")
    taken = {TABLE_DIM, REPLICATE_DIM, fields.MADE_WITH, fields.DIGEST, "released", "rng"}
    taken.update(fields.CELL_FIELDS, fields.PARAMETER_FIELDS, fields.OVER_REPLICATES)
    for name in grid:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(
                f"the grid's name {name!r} can't be that of an argument: simulate and build are "
                "called with the settings by name"
            )
        if name in taken:
            raise ValueError(
                f"the grid can't have the name '{name}': it means something else in a study. "
                "Call it another name"
            )
    return grid


def _levels(name: str, values: Any) -> list[Value]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"grid['{name}'] must be a list of values, got {values!r}")
    levels = _labels(name, values)
    if not levels:
        raise ValueError(f"grid['{name}'] is empty: give at least one value")
    if len(set(levels)) < len(levels):
        raise ValueError(f"grid['{name}'] has a value twice. For repetitions, use replicates=")
    return levels


def _rows(table: Any) -> list[dict[str, Value]]:
    if not isinstance(table, Sequence) or not all(isinstance(row, Mapping) for row in table):
        raise TypeError(
            "grid must be a mapping of names to lists, a DataFrame, or a list of dicts with one "
            f"dict for each cell, got {table!r:.200}"
        )
    if not table:
        raise ValueError("the grid has no cells")
    names = list(_named(table[0]))
    for row in table:
        if set(row) != set(names):
            raise ValueError(f"all cells of the grid must have the names {names}, got {list(row)}")
    columns = {name: _labels(name, [row[name] for row in table]) for name in names}
    rows = [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    seen: set[Hashable] = set()
    for row in rows:
        if tuple(row.values()) in seen:
            raise ValueError(f"the grid has the cell {row} twice. For repetitions, use replicates=")
        seen.add(tuple(row.values()))
    return rows


def _labels(name: str, values: Iterable[Any]) -> list[Value]:
    """Make plain Python of the values of a setting, which label an array of the result."""
    given = list(values)
    for value in given:
        # Halves of characters can't be encoded, and a zero byte ends a text in an array.
        if isinstance(value, str) and not value.isprintable():
            raise ValueError(f"grid['{name}']: {value!r} can't be printed: give another text")
    found = as_array(given)
    if found.dtype.kind == "f":
        found = found.astype(float)
    kinds = {as_array(value).dtype.kind for value in given}
    of_one = any(kinds <= set(kind) for kind in ("b", "iuf", "U")) and found.ndim == 1
    # A whole number may be rounded, a nan isn't itself, and a masked value is nothing.
    if not of_one or found.tolist() != given:
        raise TypeError(
            f"grid['{name}']: values must be all numbers that an array has room for, all bools or "
            f"all strings, got {given!r:.200}. For anything else give a string, and look up in "
            "simulate and build what it stands for"
        )
    return found.tolist()
