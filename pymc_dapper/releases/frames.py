"""Columns of a table, whichever library it is of."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from pymc_dapper.checks import different, known, pyarrow, shown

Columns = dict[str, list[Any]]


def columns_of(frame: Any, name: str = "frame", *, text_columns: Sequence[str] = ()) -> Columns:
    """Return the columns of a table as lists; missing values are None or nan.

    Parameters
    ----------
    frame : path, DataFrame, table or mapping
        The path of a CSV or Parquet file; a pandas, Polars or Spark data frame, lazy or not; a
        table of pyarrow; or a dict of columns. Named levels of a pandas index are columns, too.
    name : str
        Name of the table, for messages.
    text_columns : sequence of str
        Columns of a CSV file that hold labels: "007" stays text.

    Returns
    -------
    dict of str to list

    Raises
    ------
    TypeError
        If it is something else.
    ImportError
        If the file needs a package that isn't installed: the message names it.
    """
    if isinstance(frame, str | PathLike):
        frame = _of_file(Path(frame), name, text_columns)
    if isinstance(frame, Mapping):
        return _checked(name, {str(key): list(column) for key, column in frame.items()})
    for to_memory in ("toPandas", "collect"):  # a Spark frame has both, and the second gives rows
        if hasattr(frame, to_memory):
            frame = getattr(frame, to_memory)()
    if hasattr(frame, "column_names") and hasattr(frame, "column"):
        return _checked(name, {key: frame.column(key).to_pylist() for key in frame.column_names})
    if not (hasattr(frame, "columns") and hasattr(frame, "__getitem__")):
        raise TypeError(
            f"{name} must be the path of a CSV or Parquet file, a data frame of pandas or Polars, "
            f"an xarray or a dict of columns, got {shown(frame)}"
        )
    index = getattr(frame, "index", None)
    if any(each is not None for each in getattr(index, "names", [])):
        frame = frame.reset_index()
    names = [each for each in frame.columns if isinstance(each, str)]
    if len(set(names)) != len(list(frame.columns)):
        raise ValueError(f"{name} must have columns of different names, got {list(frame.columns)}")
    return _checked(name, {each: _listed(frame[each]) for each in names})


def column(columns: Columns, name: str, what: str) -> list[Any]:
    """Return a column, or raise a ValueError that lists the columns."""
    known([name], columns, f"{what}: there is no column")
    return columns[name]


def _listed(values: Any) -> list[Any]:
    """Make a list of a column; pandas' missing values become None or stay nan."""
    return [None if type(x).__name__ == "NAType" else x for x in values.to_list()]


def _checked(name: str, columns: Columns) -> Columns:
    lengths = {len(values) for values in columns.values()}
    if not columns or 0 in lengths:
        raise ValueError(f"{name} must have rows and columns, but it is empty")
    if len(lengths) > 1:
        raise ValueError(f"{name} must have columns of one length, got {sorted(lengths)}")
    return columns


CSV_FILES = "In a CSV file, a comma is between columns, and a point before decimals"
BY_PANDAS = "Read others by pandas: pd.read_csv(path, sep=';', decimal=',')"


def _of_file(path: Path, name: str, text_columns: Sequence[str]) -> Any:
    import pandas as pd

    kind = path.suffix.lower()
    if kind not in (".csv", ".parquet"):
        raise ValueError(
            f"{name} must be the path of a file that ends in .csv or .parquet, got {str(path)!r}"
        )
    if kind == ".parquet":
        read_file: Any = pyarrow(f"{name}={path.name!r}").parquet.read_table
    else:
        read_file = partial(pd.read_csv, header=None, dtype="object", keep_default_na=False)
    try:
        read = read_file(path)
        if kind == ".csv" and read.shape[1] == 1 and not {*";\t"}.isdisjoint(read.iat[0, 0]):
            raise ValueError(f"its one column is {read.iat[0, 0]!r}")
    except ValueError as error:  # an encoding, a row of another length, another format
        told = f". {CSV_FILES}. {BY_PANDAS}" if kind == ".csv" else ""
        raise ValueError(f"{name}: {path.name} can't be read: {str(error).strip()}{told}") from None
    if kind == ".parquet":
        return read
    names, *rows = read.to_numpy().tolist()
    different(names, f"{name} must have columns of different names")
    return {
        each: (_as_labels if each in text_columns else _as_numbers)([row[k] for row in rows])
        for k, each in enumerate(names)
    }


NO_VALUE = ("", "NA", "NaN", "nan", "null")
"""Words in a file that mean a missing number."""


def _as_numbers(cells: list[str]) -> list[Any]:
    """Convert cells that are numbers; empty cells become None."""
    return [None if cell.strip() in NO_VALUE else _as_number(cell) for cell in cells]


def _as_number(cell: str) -> Any:
    for kind in (int, float):
        with suppress(ValueError):
            return cell if "_" in cell else kind(cell)
    return cell


def _as_labels(cells: list[str]) -> list[Any]:
    """Convert labels that are written as whole numbers; empty ones become None."""
    try:
        numbers = [int(cell) for cell in cells]
    except ValueError:
        return [cell or None for cell in cells]
    return numbers if [str(each) for each in numbers] == cells else cells
