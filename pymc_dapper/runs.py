"""Directories of results: files that come as a whole, and what the results are of."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4


@contextmanager
def whole(file: Path) -> Iterator[Path]:
    """Give the path at which a file is to be written: it comes completely or not at all.

    Processes may write the same file at the same time. Those of several machines, or containers,
    may have the same numbers.
    """
    beside = file.with_name(f".{file.stem}-{uuid4().hex}{file.suffix}")
    try:
        yield beside
        with beside.open("rb+") as written:
            os.fsync(written.fileno())
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


def claim(file: Path, mine: Mapping[str, Any], there: str) -> Mapping[str, Any]:
    """Write down what a run is made of, or check that the run which is there is the same.

    Parameters
    ----------
    file : Path
        Where it is written.
    mine : mapping
        The contents of the run, by names that the user knows, in JSON's types.
    there : str
        Begins the message: which directory has results.

    Returns
    -------
    mapping
        What is written there. Equal contents may be in other words (0 for False).

    Raises
    ------
    ValueError
        If the run which is there is made of something else, or if its file is damaged.
    """
    theirs = claimed(file, there)
    if theirs is None:
        with whole(file) as beside:
            beside.write_text(json.dumps(mine, indent=2), encoding="utf-8")
        return mine
    different = [name for name in mine if mine[name] != theirs.get(name)]
    if different:
        listed = "; ".join(
            f"{k} was {theirs.get(k)!s:.300}, is now {mine[k]!s:.300}" for k in different
        )
        raise ValueError(
            f"{there} with other settings: {listed}. Results of both don't belong together: give "
            "another directory, or the old settings"
        )
    return theirs


def claimed(file: Path, there: str) -> dict[str, Any] | None:
    """Return what the run which is there is made of; None if there is none."""
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, TypeError, ValueError) as error:
        raise ValueError(
            f"{there}, but the file {file.name}, which says of what, is damaged "
            f"({type(error).__name__}). Put back a copy of it, or give another directory"
        ) from error
