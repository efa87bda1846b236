"""Distinct rows of the records' public data."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class DistinctRows:
    """The distinct rows of arrays with an entry for each record along their first axis."""

    first: np.ndarray
    """Shape (number of rows,): a record with each."""
    sizes: np.ndarray
    """Shape (number of rows,): how many records have it."""
    own: np.ndarray | None
    """Shape (number of records,): which row each has; None if there is but one."""

    def __len__(self) -> int:
        return len(self.first)


def distinct_rows(arrays: Sequence[np.ndarray], n: int) -> DistinctRows:
    """Find the distinct rows of arrays of length ``n``, in the order of their values.

    Without arrays, all records are alike, and nothing of length ``n`` is made.
    """
    columns = [column for array in arrays for column in array.reshape(n, -1).T]
    if not columns:
        return DistinctRows(np.zeros(1, dtype=np.int64), np.array([n], dtype=np.int64), None)
    frame = pd.DataFrame(dict(enumerate(columns)))
    own = frame.groupby(list(frame), dropna=False).ngroup().to_numpy()
    _, first, sizes = np.unique(own, return_index=True, return_counts=True)
    return DistinctRows(first, sizes, own if len(first) > 1 else None)
