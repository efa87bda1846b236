"""Columns of a table, whichever library it is of."""

from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from pymc_dapper.checks import shown

Columns = dict[str, list[Any]]


def columns_of(frame: Any, name: str = "frame", *, text_columns: Sequence[str] = ()) -> Columns:
    """Take the columns of a table as lists, with None or nan where there is nothing.

    Parameters
    ----------
    frame : path, DataFrame, table or mapping
        The path of a CSV or Parquet file; a pandas, Polars or Spark data frame, lazy or not; a
        table of pyarrow; or columns by name. Levels of a pandas index that have names are columns.
    name : str
        What the table is called, for messages.
    text_columns : sequence of str
        Columns of a CSV file that hold labels: "007" stays what it is.

    Returns
    -------
    dict of str to list

    Raises
    ------
    TypeError
        If it is something else.
    ImportError
        If a file can't be read without a package: the message says which.
    """
    if isinstance(frame, str | PathLike):
        frame = _of_file(Path(frame), name, text_columns)
    if isinstance(frame, Mapping):
        return _checked(name, {str(key): list(column) for key, column in frame.items()})
    for to_memory in ("collect", "toPandas"):
        # A Spark frame has both, and the first gives rows.
        if hasattr(frame, to_memory) and not (
            to_memory == "collect" and hasattr(frame, "toPandas")
        ):
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
    """Return a column; a ValueError that lists what there is if it isn't there."""
    if name not in columns:
        raise ValueError(f"{what}: there is no column {name!r}, but {', '.join(columns)}")
    return columns[name]


def _listed(values: Any) -> list[Any]:
    """Make a list of a column: what pandas has for nothing in it, where it isn't nan, is None."""
    return [None if type(x).__name__ == "NAType" else x for x in values.to_list()]


def _checked(name: str, columns: Columns) -> Columns:
    lengths = {len(values) for values in columns.values()}
    if not columns or 0 in lengths:
        raise ValueError(f"{name} must have rows and columns, but it is empty")
    if len(lengths) > 1:
        raise ValueError(f"{name} must have columns of one length, got {sorted(lengths)}")
    return columns


def _of_file(path: Path, name: str, text_columns: Sequence[str]) -> Any:
    import pandas as pd

    kind = path.suffix.lower()
    if kind not in (".csv", ".parquet"):
        raise ValueError(
            f"{name} must be the path of a file that ends in .csv or .parquet, got {str(path)!r}"
        )
    if kind == ".parquet":
        try:
            from pyarrow import parquet  # type: ignore[import-untyped]
        except ImportError:
            raise ImportError(
                f"{name}: to read {path.name}, install pyarrow: pip install pyarrow"
            ) from None
        read_file: Any = parquet.read_table
    else:
        read_file = partial(pd.read_csv, header=None, dtype="object", keep_default_na=False)
    try:
        read = read_file(path)
    except ValueError as error:  # an encoding, a row of another length, another format
        raise ValueError(f"{name}: {path.name} can't be read: {error}") from None
    if kind == ".parquet":
        return read
    names, *rows = read.to_numpy().tolist()
    if len(set(names)) != len(names):
        raise ValueError(f"{name} must have columns of different names, got {names}")
    return {
        each: (_as_labels if each in text_columns else _as_numbers)([row[k] for row in rows])
        for k, each in enumerate(names)
    }


NO_VALUE = ("", "NA", "NaN", "nan", "null")
"""What stands for no number in a file."""


def _as_numbers(cells: list[str]) -> list[Any]:
    """Make numbers of cells, where they are numbers; None where there is nothing."""
    return [None if cell.strip() in NO_VALUE else _as_number(cell) for cell in cells]


def _as_number(cell: str) -> Any:
    for kind in (int, float):
        try:
            return cell if "_" in cell else kind(cell)
        except ValueError:
            pass
    return cell


def _as_labels(cells: list[str]) -> list[Any]:
    """Make numbers of labels that are whole numbers, written as such; None of empty ones."""
    try:
        numbers = [int(cell) for cell in cells]
    except ValueError:
        return [cell or None for cell in cells]
    return numbers if [str(each) for each in numbers] == cells else cells
