"""Finished cells on disk, one Parquet file each."""

import json
import os
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from pymc_dapper.studies.cell import CellResult
from pymc_dapper.studies.fields import (
    NUMBER_FIELDS,
    PARAMETER_FIELDS,
    STATISTICS,
    STATUS_FIELDS,
)
from pymc_dapper.studies.grid import REPLICATE_DIM, Cell

IDENTITY = "_study.json"
"""Begins with an underscore: what reads a directory of Parquet files passes over it."""


class Store:
    """A directory of finished cells. All files together are one table.

    Parameters
    ----------
    path : Path
        The directory. Made if it isn't there.

    Raises
    ------
    ImportError
        If pyarrow isn't installed.
    OSError
        If the directory can't be made or written to.
    """

    def __init__(self, path: Path):
        self.path = path
        self._arrow, self._parquet = _import_arrow()
        self._unwritten: dict[Cell, CellResult] = {}
        try:
            path.mkdir(parents=True, exist_ok=True)
            probe = path / f".probe-{os.getpid()}"
            _write(probe, b"writable")
            probe.unlink()
        except OSError as error:
            raise type(error)(
                error.errno, f"store={str(path)!r} can't be written to: {error.strerror}"
            ) from error

    def seed(self) -> int | None:
        """Return the seed of the study that the store holds; None if it holds none."""
        identity = self._identity()
        return None if identity is None else int(identity["seed"])

    def claim(self, identity: Mapping[str, Any]) -> None:
        """Take the store for a study, or check that it is this study's already.

        Parameters
        ----------
        identity : dict
            All settings that results depend on.

        Raises
        ------
        ValueError
            If the store holds results of other settings.
        """
        mine = json.loads(json.dumps(identity, default=_plain))
        found = self._identity()
        if found is None:
            _write(self.path / IDENTITY, json.dumps(mine, indent=2).encode())
        elif found != mine:
            names = [name for name in mine if mine[name] != found.get(name)]
            listed = "; ".join(f"{k} was {found.get(k)}, is now {mine[k]}" for k in names)
            raise ValueError(
                f"store={str(self.path)!r} holds results of a study with other settings: {listed}. "
                "Results of both don't belong in one study: give another store, or the old settings"
            )

    def _identity(self) -> dict[str, Any] | None:
        try:
            return dict(json.loads((self.path / IDENTITY).read_text(encoding="utf-8")))
        except FileNotFoundError:
            if any(self.path.glob("*.parquet")):
                raise ValueError(
                    f"store={str(self.path)!r} has Parquet files but no {IDENTITY}: it is no store "
                    "of a study, or has lost a part"
                ) from None
            return None

    def read(self, cells: Iterable[Cell]) -> dict[Cell, CellResult]:
        """Read what is there of some cells.

        Parameters
        ----------
        cells : iterable of Cell
            The cells.

        Returns
        -------
        dict of Cell to CellResult
            Those that are there.

        Warns
        -----
        UserWarning
            If a file can't be read: its cell is taken as missing.
        """
        there = {path.name for path in self.path.iterdir()}
        found = {}
        for cell in cells:
            file = _file(cell)
            if file not in there:
                continue
            try:
                rows = self._parquet.read_table(self.path / file).to_pylist()
                found[cell] = _from_rows(rows)
            except Exception as error:  # whatever a broken file makes a reader say
                warnings.warn(
                    f"{file} in store={str(self.path)!r} can't be read, so the cell {cell} is run "
                    f"again: {error}",
                    UserWarning,
                    stacklevel=4,
                )
        return found

    def write(self, cell: Cell, result: CellResult) -> None:
        """Write a finished cell, and those that couldn't be written before.

        A file is there as a whole or not at all.

        Warns
        -----
        UserWarning
            If it can't be written, at the first time. The result is kept in memory, to be written
            with the next one.
        """
        had_failed = bool(self._unwritten)
        self._unwritten[cell] = result
        error = self.flush()
        if error is not None and not had_failed:
            warnings.warn(
                f"store={str(self.path)!r} can't be written to any more: {error}. The study goes "
                "on; results from here on are kept in memory, and written when that is possible "
                "again",
                UserWarning,
                stacklevel=3,
            )

    def flush(self) -> OSError | None:
        """Write what couldn't be written before; return what prevents it."""
        for cell, result in list(self._unwritten.items()):
            try:
                self._write_cell(cell, result)
            except OSError as error:
                return error
            del self._unwritten[cell]
        return None

    @property
    def n_unwritten(self) -> int:
        """Number of cells that couldn't be written."""
        return len(self._unwritten)

    def _write_cell(self, cell: Cell, result: CellResult) -> None:
        table = self._arrow.Table.from_pylist(_to_rows(cell, result), schema=self._schema(cell))
        buffer = self._arrow.BufferOutputStream()
        self._parquet.write_table(table, buffer)
        _write(self.path / _file(cell), buffer.getvalue().to_pybytes())

    def _schema(self, cell: Cell) -> Any:
        text, number = self._arrow.string(), self._arrow.float64()
        # Whole numbers as floats, too: a grid may grow by others, and all files are one table.
        types = {bool: self._arrow.bool_(), int: number, float: number, str: text}
        settings = {name: types[type(value)] for name, value in cell.settings.items()}
        texts = dict.fromkeys((*STATUS_FIELDS, "parameter", "entry"), text)
        numbers = dict.fromkeys((*NUMBER_FIELDS, *STATISTICS), number)
        replicate = {REPLICATE_DIM: self._arrow.int64()}
        return self._arrow.schema({**settings, **replicate, **texts, **numbers})


def _file(cell: Cell) -> str:
    return f"{cell.name}.parquet"


def _to_rows(cell: Cell, result: CellResult) -> list[dict[str, Any]]:
    """One row for each entry of each parameter; one row for a cell that has none."""
    first = {
        **{k: v if isinstance(v, bool | str) else float(v) for k, v in cell.settings.items()},
        REPLICATE_DIM: cell.replicate,
        "status": result.status,
        "message": result.message,
        **result.numbers,
    }
    return [{**first, **entry} for entry in result.parameters or [{}]]


def _from_rows(rows: list[dict[str, Any]]) -> CellResult:
    numbers = {name: rows[0][name] for name in NUMBER_FIELDS if rows[0][name] is not None}
    parameters = [
        {name: row[name] for name in PARAMETER_FIELDS}
        for row in rows
        if row["parameter"] is not None
    ]
    return CellResult(rows[0]["status"], rows[0]["message"], numbers, parameters)


def _plain(value: Any) -> Any:
    """Make of a setting what JSON can hold, and what is the same in each process."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return re.sub(" at 0x[0-9a-fA-F]+", "", repr(value))


def _write(path: Path, content: bytes) -> None:
    """Write a file that is there as a whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _import_arrow() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow  # type: ignore[import-untyped]
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "store= needs pyarrow, which isn't installed: pip install 'pymc-dapper[studies]', or "
            "leave store out"
        ) from error
    return pyarrow, parquet
