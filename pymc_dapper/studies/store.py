"""Finished cells on disk, one Parquet file each."""

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from pymc_dapper.checks import pyarrow
from pymc_dapper.studies import fields
from pymc_dapper.studies.cell import CellResult
from pymc_dapper.studies.fingerprint import differences, plain
from pymc_dapper.studies.grid import REPLICATE_DIM, Cell

IDENTITY = "_study.json"
"""Begins with an underscore: readers of a directory of Parquet files skip such files."""


class Store:
    """A directory of finished cells, which several processes may fill. All files are one table.

    The directory is created if necessary. For cells that were read, ``changed`` has the differences
    between the code or versions that made them and the present ones. Raises ImportError if pyarrow
    isn't installed, OSError if the directory can't be created or written.
    """

    def __init__(self, path: Path, fingerprint: Mapping[str, Any]):
        self.path = path
        self.changed: dict[Cell, list[str]] = {}
        self._fingerprint = fingerprint
        self._study = ""
        self._arrow = pyarrow("store=")
        self._is_writable = True
        try:
            path.mkdir(parents=True, exist_ok=True)
            probe = path / f".probe-{uuid4().hex}"
            _write(probe, b"writable")
            probe.unlink()
        except OSError as error:
            raise type(error)(
                error.errno, f"store={str(path)!r} can't be written to: {error.strerror}"
            ) from error

    def seed(self) -> int | None:
        """Return the seed of the study that the store holds; None if it holds none."""
        identity = self._identity()
        return None if identity is None else identity["seed"]

    def take_over(self, identity: Mapping[str, Any]) -> None:
        """Take the store for a study, or check that it is this study's already.

        The identity has all settings that results depend on. Raises ValueError if the store holds
        results of other ones, or if its own can't be read.
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
        # As they were written: equal settings may be in other words (0 for False).
        self._study = _digest(mine if found is None else found)

    def _identity(self) -> dict[str, Any] | None:
        file = self.path / IDENTITY
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if any(self.path.glob("*.parquet")):
                raise ValueError(
                    f"store={str(self.path)!r} has Parquet files but no {IDENTITY}: it is no store "
                    "of a study, or has lost a part"
                ) from None
            return None
        except (OSError, ValueError) as error:
            raise self._damaged(f"it can't be read ({type(error).__name__})") from error
        if not isinstance(found, dict):
            raise self._damaged("it doesn't hold a study's settings")
        if not isinstance(found.get("seed"), int) or isinstance(found["seed"], bool):
            raise self._damaged("it has no seed")
        return found

    def _damaged(self, how: str) -> ValueError:
        return ValueError(
            f"the file {IDENTITY} in store={str(self.path)!r}, which says what study the store is "
            f"of, is damaged: {how}. Put back a copy of it, or give another store"
        )

    def read(self, cells: Iterable[Cell]) -> dict[Cell, CellResult]:
        """Read the stored results of some cells.

        Warns if a file can't be read, or isn't what this study wrote; its cell then counts as
        missing.
        """
        there = {path.name for path in self.path.iterdir()}
        read = ((cell, self._read(cell)) for cell in cells if _file(cell) in there)
        return {cell: result for cell, result in read if result is not None}

    def _read(self, cell: Cell) -> CellResult | None:
        path = self.path / _file(cell)
        try:
            rows = self._arrow.parquet.read_table(path, page_checksum_verification=True).to_pylist()
            result, made_with = _from_rows(cell, rows, self._study)
        except MemoryError:
            raise
        except Exception as error:  # any error that a broken file causes
            warnings.warn(
                f"{path.name} in store={str(self.path)!r} can't be read, so the cell {cell} is run "
                f"again: {error}",
                stacklevel=5,
            )
            return None
        if changes := differences(made_with, self._fingerprint):
            self.changed[cell] = changes
        return result

    def write(self, cell: Cell, result: CellResult) -> None:
        """Write a finished cell, completely or not at all; warns the first time that it can't."""
        made_with = {"study": self._study, **self._fingerprint}
        try:
            rows = _to_rows(cell, result, json.dumps(made_with, sort_keys=True))
            table = self._arrow.Table.from_pylist(rows, schema=self._schema(cell))
            digest = [_digest([cell.name, *table.to_pylist()])] * len(table)
            table = table.append_column(fields.DIGEST, [digest])
            buffer = self._arrow.BufferOutputStream()
            self._arrow.parquet.write_table(table, buffer, write_page_checksum=True)
            _write(self.path / _file(cell), buffer.getvalue().to_pybytes())
        except (OSError, TypeError, ValueError) as error:  # of the disk, or of Arrow
            if self._is_writable:
                warnings.warn(
                    f"a cell can't be written to store={str(self.path)!r}: {error}, for "
                    f"{_file(cell)}. The study goes on, and what it returns has all cells: save "
                    "it elsewhere",
                    stacklevel=3,
                )
            self._is_writable = False

    def _schema(self, cell: Cell) -> Any:
        text, number = self._arrow.string(), self._arrow.float64()
        # Whole numbers as floats, too: a grid may grow by others, and all files are one table.
        types = {bool: self._arrow.bool_(), int: number, float: number, str: text}
        settings = {name: types[type(value)] for name, value in cell.settings.items()}
        texts = dict.fromkeys((*fields.STATUS_FIELDS, "parameter", "entry", fields.MADE_WITH), text)
        numbers = dict.fromkeys((*fields.NUMBER_FIELDS, *fields.STATISTICS), number)
        replicate = {REPLICATE_DIM: self._arrow.int64()}
        return self._arrow.schema({**settings, **replicate, **texts, **numbers})


def _file(cell: Cell) -> str:
    return f"{cell.name}.parquet"


def _settings(cell: Cell) -> dict[str, Any]:
    """Return the settings in a cell's file."""
    settings = {k: v if isinstance(v, bool | str) else float(v) for k, v in cell.settings.items()}
    return {**settings, REPLICATE_DIM: cell.replicate}


def _to_rows(cell: Cell, result: CellResult, made_with: str) -> list[dict[str, Any]]:
    """One row for each entry of each parameter; one row for a cell that has none."""
    first = {
        **_settings(cell),
        "status": result.status,
        "message": result.message,
        **result.numbers,
        fields.MADE_WITH: made_with,
    }
    return [{**first, **entry} for entry in result.parameters or [{}]]


def _from_rows(
    cell: Cell, rows: list[dict[str, Any]], study: str
) -> tuple[CellResult, dict[str, Any]]:
    """Return the result in a file's rows, with the code and versions behind it.

    Raises ValueError if the rows belong to another cell or study, or were damaged.
    """
    settings = _settings(cell)
    if any({name: row[name] for name in settings} != settings for row in rows):
        raise ValueError("it holds other settings than the cell's, and may be a copy of another")
    if {row.pop(fields.DIGEST) for row in rows} != {_digest([cell.name, *rows])}:
        raise ValueError("its content isn't what was written (its digest differs)")
    made_with = json.loads(rows[0][fields.MADE_WITH])
    if made_with["study"] != study:
        raise ValueError("it is from a study with other settings")
    numbers = {name: rows[0][name] for name in fields.NUMBER_FIELDS if rows[0][name] is not None}
    parameters = [
        {name: row[name] for name in fields.PARAMETER_FIELDS}
        for row in rows
        if row["parameter"] is not None
    ]
    return CellResult(rows[0]["status"], rows[0]["message"], numbers, parameters), made_with


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Convert a setting to a JSON value that is the same in each process."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else plain(value)


def _write(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    # Processes of several machines, which have the same numbers, may write at the same time.
    unfinished = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
