"""Rows of noisy measurement files, some at a time, as columns of NumPy: from memory or files.

The Census Bureau's directories hold one of each level, `County.parquet`, with the noisy counts in
`DPQuery` and what is exact in `Constraint`, both in parts by state. Only wanted rows are kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pymc_dapper.checks import as_array, known, pyarrow, shown
from pymc_dapper.releases.frames import column, columns_of

COLUMNS = ("geocode", "query_name", "query_shape", "value", "variance")
"""What each row has."""
BATCH = 2**12
"""Rows at a time: of the largest query of the redistricting data, 64 MiB."""


class Lists(NamedTuple):
    """A column of lists, one after the other."""

    flat: np.ndarray
    length: np.ndarray
    """Of each list; -1 if it isn't a list of numbers."""

    def take(self, at: np.ndarray) -> np.ndarray | None:
        """Return some lists as rows of an array; None if their lengths differ."""
        size = int(self.length[at[0]])
        if size < 0 or np.any(self.length[at] != size):
            return None
        start = np.cumsum(np.maximum(self.length, 0)) - size
        return self.flat[start[at][:, None] + np.arange(size)]


class Rows(NamedTuple):
    """Some rows, of one level if `level` has a name."""

    level: str | None
    geocode: np.ndarray
    query: np.ndarray
    shape: Lists
    value: Lists
    variance: np.ndarray
    """Nan if it isn't a number."""
    texts: dict[str, np.ndarray]
    """By attribute, the classes of it that a query tells apart, if the file has them; "sign"."""


class Wanted(NamedTuple):
    """What is read."""

    levels: tuple[str, ...]
    """Of a directory that has one of each level."""
    attributes: tuple[str, ...]
    """Names of columns that may say how a query classifies an attribute."""
    geocodes: tuple[str, ...] | None
    """With what geocodes begin."""
    kind: str
    """The directories to read: "DPQuery" or "Constraint"."""


def rows_of(rows: Any, wanted: Wanted, storage_options: Mapping[str, Any]) -> Iterator[Rows]:
    """Read rows, as of `read_census`, some at a time."""
    optional = (*wanted.attributes, "sign")
    if isinstance(rows, str | PathLike) and (found := _files(str(rows), storage_options)):
        system, files = found
        for level, own in _by_level(files, wanted).items():
            for batch in _batches(system, own, wanted, optional):
                yield _of_arrow(level, batch)
        return
    if hasattr(rows, "to_batches") and set(COLUMNS) <= set(rows.column_names):
        kept = [name for name in rows.column_names if name in {*COLUMNS, *optional}]
        for batch in rows.select(kept).to_batches(BATCH):
            yield _of_arrow(None, batch)
        return
    table = columns_of(rows, "rows")
    codes, queries, shapes, values, variances = (column(table, each, "rows") for each in COLUMNS)
    texts = {name: _texts(table[name]) for name in optional if name in table}
    yield Rows(
        None,
        _texts(codes),
        _texts(queries),
        _of_lists(shapes),
        _of_lists(values),
        np.array([each if _is_number(each) else np.nan for each in variances], dtype=float),
        texts,
    )


def _texts(values: Sequence[Any]) -> np.ndarray:
    wrong = [each for each in values if not isinstance(each, str)]
    if wrong:
        raise TypeError(f"rows: geocodes and names must be strings, got {shown(wrong[0])}")
    return np.array(values, dtype=np.str_)


def _is_number(value: Any) -> bool:
    number = as_array(value)
    return number.dtype.kind in "iuf" and not number.ndim


def _of_lists(values: Sequence[Any]) -> Lists:
    parts = [as_array(each) for each in values]
    length = np.array([each.size if each.dtype.kind in "iuf" else -1 for each in parts])
    flat = [part.ravel() for part, size in zip(parts, length, strict=True) if size > 0]
    return Lists(np.concatenate(flat) if flat else np.zeros(0, dtype=int), length)


def _of_arrow(level: str | None, batch: Any) -> Rows:
    """Take a record batch of pyarrow apart."""
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    def lists(name: str) -> Lists:
        values = batch.column(name)
        if not hasattr(values.type, "value_type"):
            raise TypeError(f"rows: {name!r} must have lists of numbers, got {values.type}")
        length = pc.list_value_length(values).fill_null(-1).to_numpy(zero_copy_only=False)
        return Lists(values.flatten().to_numpy(zero_copy_only=False), length.astype(np.int64))

    geocode, query, shape, value, variance = COLUMNS
    others = [name for name in batch.schema.names if name not in COLUMNS]
    return Rows(
        level,
        _texts(batch.column(geocode).to_pylist()),
        _texts(batch.column(query).to_pylist()),
        lists(shape),
        lists(value),
        np.array(batch.column(variance).to_pylist(), dtype=float),
        {name: _texts(batch.column(name).fill_null("").to_pylist()) for name in others},
    )


def _files(path: str, storage_options: Mapping[str, Any]) -> tuple[Any, list[str]] | None:
    """Return the file system and its Parquet files; None if another kind of file is meant."""
    remote = "://" in path
    if not remote and not Path(path).is_dir() and Path(path).suffix != ".parquet":
        return None
    pyarrow(f"rows={path!r}")
    from pyarrow import fs

    system, root = fs.LocalFileSystem(), str(Path(path))
    if remote:
        try:
            from fsspec.core import url_to_fs  # type: ignore[import-untyped]

            remote_system, root = url_to_fs(path, **storage_options)
        except ImportError as error:
            raise ImportError(
                f"rows: to read {path}, install fsspec and its file system for this kind of path, "
                f"such as s3fs for s3://: {error}"
            ) from None
        system = fs.PyFileSystem(fs.FSSpecHandler(remote_system))
    elif storage_options:
        raise ValueError("storage_options are those of fsspec, for paths such as s3://...")
    if system.get_file_info(root).type == fs.FileType.Directory:
        found = system.get_file_info(fs.FileSelector(root, recursive=True))
    else:
        found = [system.get_file_info(root)]
    files = [each.path for each in found if each.is_file and each.path.endswith(".parquet")]
    if not files:
        raise ValueError(f"rows: there is no Parquet file at {path!r}")
    return system, sorted(files)


def _by_level(files: Sequence[str], wanted: Wanted) -> dict[str | None, list[str]]:
    """Return wanted files by level; by None those that may have rows of any."""
    kept: dict[str | None, list[str]] = {}
    for file in files:
        *folders, _ = file.split("/")
        of = {folder.lower(): k for k, folder in enumerate(folders) if folder.endswith(".parquet")}
        level = next((each for each in wanted.levels if f"{each.lower()}.parquet" in of), None)
        kinds = {"DPQuery", "Constraint"} & set(folders)
        if (of and level is None) or (kinds and wanted.kind not in kinds):
            continue
        state = next((each.removeprefix("State=") for each in folders if "State=" in each), "")
        states = set().union(*map(_states, wanted.geocodes or ()))
        if not state.isdigit() or not states or int(state) in states:
            kept.setdefault(level, []).append(file)
    return kept


def _states(geocode: str) -> set[int]:
    """Return the states that a geocode may be of: it may begin with a digit for tribal areas."""
    is_told = len(geocode) > 2 and geocode[:3].isdigit()
    return {int(geocode[:2]), int(geocode[:3]), int(geocode[1:3])} if is_told else set(range(1000))


def _batches(
    system: Any, files: list[str], wanted: Wanted, optional: Sequence[str]
) -> Iterator[Any]:
    """Read wanted columns and rows of files whose columns may be of different widths."""
    import pyarrow as pa
    from pyarrow import dataset, parquet

    schema = parquet.read_schema(files[0], filesystem=system)
    # Constraints may have no variances.
    needed = COLUMNS if wanted.kind == "DPQuery" else COLUMNS[:-1]
    known(needed, schema.names, "rows: there is no column")
    fields = {name: schema.field(name).type for name in needed}
    for name, kind in fields.items():
        if hasattr(kind, "value_type") and pa.types.is_integer(kind.value_type):
            fields[name] = pa.list_(pa.int64())
    fields = {COLUMNS[-1]: pa.float64(), **fields} | dict.fromkeys(optional, pa.string())
    read = dataset.dataset(files, schema=pa.schema(fields), format="parquet", filesystem=system)
    chosen = None
    for each in wanted.geocodes or ():
        place = dataset.field(COLUMNS[0])
        within = (place >= each) & (place < each + chr(0x10FFFF))
        chosen = within if chosen is None else chosen | within
    yield from read.to_batches(
        filter=chosen, batch_size=BATCH, batch_readahead=1, fragment_readahead=1
    )
