"""Columns of a table, whichever library it is of."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from pymc_dapper.checks import shown

Columns = dict[str, list[Any]]


def columns_of(frame: Any, *, text_columns: Sequence[str] = ()) -> Columns:
    """Take the columns of a table as lists, with None or nan where there is nothing.

    Parameters
    ----------
    frame : path, DataFrame, table or mapping
        The path of a CSV or Parquet file; a pandas, Polars or Spark data frame, lazy or not; a
        table of pyarrow; or columns by name. Levels of a pandas index that have names are columns.
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
        frame = _of_file(Path(frame), text_columns)
    if isinstance(frame, Mapping):
        return _checked({str(name): list(column) for name, column in frame.items()})
    for to_memory in ("collect", "toPandas"):
        # A Spark frame has both, and the first gives rows.
        if hasattr(frame, to_memory) and not (
            to_memory == "collect" and hasattr(frame, "toPandas")
        ):
            frame = getattr(frame, to_memory)()
    if hasattr(frame, "column_names") and hasattr(frame, "column"):
        return _checked({name: frame.column(name).to_pylist() for name in frame.column_names})
    if not (hasattr(frame, "columns") and hasattr(frame, "__getitem__")):
        raise TypeError(
            "frame must be the path of a CSV or Parquet file, a data frame of pandas or Polars, "
            f"an xarray or a dict of columns, got {shown(frame)}"
        )
    index = getattr(frame, "index", None)
    if any(name is not None for name in getattr(index, "names", [])):
        frame = frame.reset_index()
    names = [name for name in frame.columns if isinstance(name, str)]
    if len(set(names)) != len(list(frame.columns)):
        raise ValueError(f"frame must have columns of different names, got {list(frame.columns)}")
    return _checked({name: frame[name].to_list() for name in names})


def column(columns: Columns, name: str, what: str) -> list[Any]:
    """Return a column; a ValueError that lists what there is if it isn't there."""
    if name not in columns:
        raise ValueError(f"{what}: there is no column {name!r}, but {', '.join(columns)}")
    return columns[name]


def _checked(columns: Columns) -> Columns:
    lengths = {len(values) for values in columns.values()}
    if not columns or 0 in lengths:
        raise ValueError("frame must have rows and columns, but it is empty")
    if len(lengths) > 1:
        raise ValueError(f"frame must have columns of one length, got {sorted(lengths)}")
    return columns


def _of_file(path: Path, text_columns: Sequence[str]) -> Any:
    import pandas as pd  # type: ignore[import-untyped]

    kind = path.suffix.lower()
    if kind not in (".csv", ".parquet"):
        raise ValueError(
            f"frame must be the path of a file that ends in .csv or .parquet, got {str(path)!r}"
        )
    if kind == ".parquet":
        try:
            from pyarrow import parquet  # type: ignore[import-untyped]
        except ImportError:
            raise ImportError(
                f"frame: to read {path.name}, install pyarrow: pip install pyarrow"
            ) from None
        return parquet.read_table(path)
    read = pd.read_csv(path, dtype="object", keep_default_na=False)
    return {
        name: (_as_labels if name in text_columns else _as_numbers)(read[name].to_list())
        for name in read.columns
    }


NO_VALUE = ("", "NA", "NaN", "nan", "null")
"""What stands for no number in a file."""


def _as_numbers(cells: list[str]) -> list[Any]:
    """Make numbers of cells, where they are numbers; None where there is nothing."""
    return [None if cell.strip() in NO_VALUE else _as_number(cell) for cell in cells]


def _as_number(cell: str) -> Any:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            pass
    return cell


def _as_labels(cells: list[str]) -> list[Any]:
    """Make numbers of labels that are whole numbers, written as such."""
    try:
        numbers = [int(cell) for cell in cells]
    except ValueError:
        return cells
    return numbers if [str(each) for each in numbers] == cells else cells
