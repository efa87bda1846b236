"""Rows of noisy measurement files, as data frames: from memory or files.

The Census Bureau's directories hold one of each level, `County.parquet`, with the noisy counts in
`DPQuery` and what is exact in `Constraint`, both in parts by state. Only wanted rows are read.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pymc_dapper.checks import as_array, known, pyarrow, shown
from pymc_dapper.releases.frames import columns_of

COLUMNS = ("geocode", "query_name", "query_shape", "value", "variance")
"""What each row has."""
BATCH = 2**12
"""Rows at a time: of the largest query of the redistricting data, 64 MiB."""


class Wanted(NamedTuple):
    """What is read."""

    levels: Mapping[str, int | None]
    """Lengths of geocodes; None if directories tell levels apart."""
    texts: tuple[str, ...]
    """Names of columns of text that may be there."""
    geocodes: tuple[str, ...] | None
    """With what geocodes begin."""
    kind: str
    """The directories to read: "DPQuery" or "Constraint"."""
    queries: tuple[str, ...] | None = None
    """Plain names of queries; None for all."""

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that must be there: constraints may have no variances."""
        return COLUMNS if self.kind == "DPQuery" else COLUMNS[:-1]

    def has(self, query: Any) -> bool:
        """Whether a query is read."""
        if self.kind == "Constraint":
            return True
        name = plain_name(query)
        return not name.endswith("_con") and (self.queries is None or name in self.queries)


def plain_name(query: str) -> str:
    """Return a query's name without the suffix and with uniform spacing."""
    factors = re.split(r"\s*\*\s*", query.removesuffix("_dpq").strip())
    return " * ".join(factors)


def rows_of(
    rows: Any, wanted: Wanted, storage_options: Mapping[str, Any]
) -> dict[str, pd.DataFrame]:
    """Read the wanted rows of each level, as of `read_census`.

    Names of queries are plain, and a text that isn't there is empty.
    """
    frames: dict[str | None, pd.DataFrame] = {}
    if isinstance(rows, str | PathLike) and (found := _files(str(rows), storage_options)):
        system, files = found
        for level, own in _by_level(files, wanted).items():
            frames[level] = _checked(_read(system, own, wanted), wanted)
    elif hasattr(rows, "column_names") and hasattr(rows, "to_pandas"):  # a table of Arrow
        frames[None] = _checked(rows.to_pandas(ignore_metadata=True), wanted)
    else:
        frames[None] = _checked(pd.DataFrame(columns_of(rows, "rows")), wanted)
    return {level: _of_level(level, frames, wanted) for level in wanted.levels}


def _checked(frame: pd.DataFrame, wanted: Wanted) -> pd.DataFrame:
    """Return wanted rows, once all texts are strings."""
    known(wanted.needed, frame, "rows: there is no column")
    frame = frame.reindex(columns=list(dict.fromkeys([*COLUMNS, *wanted.texts])))
    for name in ("geocode", "query_name", *wanted.texts):
        texts = frame[name].astype(object)
        frame[name] = texts = texts.fillna("") if name in wanted.texts else texts
        if wrong := [each for each in texts if not isinstance(each, str)]:
            raise TypeError(f"rows: geocodes and names must be strings, got {shown(wrong[0])}")
    plain = {name: plain_name(name) for name in frame["query_name"].unique() if wanted.has(name)}
    chosen = frame["query_name"].isin(plain)
    if wanted.geocodes is not None:
        chosen &= frame["geocode"].str.startswith(wanted.geocodes)
    return frame[chosen].replace({"query_name": plain})


def _of_level(
    level: str, frames: Mapping[str | None, pd.DataFrame], wanted: Wanted
) -> pd.DataFrame:
    """Return the rows of a level."""
    length = wanted.levels[level]
    if None in frames and length is None:
        raise ValueError(
            f"levels: the files have no directory {level}.parquet. Give the lengths of "
            'geocodes, as in levels={"county": 5}'
        )
    own = [frame for of, frame in frames.items() if of in (level, None)]
    frame = pd.concat(own) if own else pd.DataFrame(columns=[*COLUMNS, *wanted.texts])
    return frame if length is None else frame[frame["geocode"].str.len() == length]


def numbers_of(lists: Iterable[Any]) -> np.ndarray | None:
    """Return lists of numbers as rows of an array; None if they differ in length."""
    rows = [as_array(each) for each in lists]
    if len({row.size for row in rows}) > 1 or not {row.dtype.kind for row in rows} <= {*"iuf"}:
        return None
    return np.concatenate(rows, axis=None).reshape(len(rows), -1)


def _files(path: str, storage_options: Mapping[str, Any]) -> tuple[Any, list[str]] | None:
    """Return the file system and its Parquet files; None if another kind of file is meant."""
    remote = "://" in path
    if not remote and not Path(path).is_dir() and Path(path).suffix != ".parquet":
        return None
    pyarrow(f"rows={path!r}")
    from pyarrow import fs  # type: ignore[import-untyped]

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


def _read(system: Any, files: list[str], wanted: Wanted) -> pd.DataFrame:
    """Read wanted columns and rows of files whose columns may be of different widths."""
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped]
    from pyarrow import dataset, parquet

    schema = parquet.read_schema(files[0], filesystem=system)
    known(wanted.needed, schema.names, "rows: there is no column")
    fields = {name: schema.field(name).type for name in wanted.needed}
    for name, kind in fields.items():
        if hasattr(kind, "value_type") and pa.types.is_integer(kind.value_type):
            fields[name] = pa.list_(pa.int64())
    fields |= dict.fromkeys(wanted.texts, pa.string())
    read = dataset.dataset(files, schema=pa.schema(fields), format="parquet", filesystem=system)
    geocode, query = dataset.field("geocode"), dataset.field("query_name")
    chosen = pc.scalar(wanted.geocodes is None)
    for each in wanted.geocodes or ():
        chosen |= (geocode >= each) & (geocode < each + chr(0x10FFFF))
    if wanted.queries is not None:
        there = read.to_table(columns=["query_name"], filter=chosen)["query_name"].unique()
        kept = [not isinstance(each, str) or wanted.has(each) for each in there.to_pylist()]
        chosen &= query.isin(there.filter(pa.array(kept, pa.bool_())))
    some = read.to_batches(filter=chosen, batch_size=BATCH, batch_readahead=1, fragment_readahead=1)
    # Of each batch alone, lists are not copied.
    return pd.concat([part.to_pandas() for part in (read.schema.empty_table(), *some)])
