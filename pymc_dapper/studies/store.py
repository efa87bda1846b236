"""Finished cells on disk, one Parquet file each."""

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pymc_dapper.checks import pyarrow, whole_number
from pymc_dapper.runs import claim, claimed, whole
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
        self._there = f"store={str(path)!r} has results"
        self._arrow = pyarrow("store=")
        self._is_writable = True
        try:
            path.mkdir(parents=True, exist_ok=True)
            with whole(path / ".writable") as probe:
                probe.write_bytes(b"yes")
            (path / ".writable").unlink(missing_ok=True)
        except OSError as error:
            raise type(error)(
                error.errno, f"store={str(path)!r} can't be written to: {error.strerror}"
            ) from error
        if any(path.glob("*.parquet")) and not (path / IDENTITY).exists():
            raise ValueError(
                f"{self._there} in Parquet files, but no {IDENTITY}: it is no store of a study, or "
                "has lost a part"
            )

    def seed(self) -> int | None:
        """Return the seed of the study that the store holds; None if it holds none."""
        found = claimed(self.path / IDENTITY, self._there)
        if found is None:
            return None
        return whole_number(found.get("seed"), f"the seed in {IDENTITY}", at_least=0)

    def take_over(self, identity: Mapping[str, Any]) -> None:
        """Take the store for a study, or check that it is this study's already.

        The identity has all settings that results depend on. Raises ValueError if the store holds
        results of other ones, or if its own can't be read.
        """
        mine = json.loads(json.dumps(identity, default=_plain))
        self._study = _digest(claim(self.path / IDENTITY, mine, self._there))

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
            with whole(self.path / _file(cell)) as beside:
                beside.write_bytes(buffer.getvalue().to_pybytes())
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
