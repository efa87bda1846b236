"""Distinct rows of what is public of records."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class DistinctRows:
    """The distinct rows of arrays with an entry for each record along their first axis."""

    first: NDArray[np.int64]
    """Shape (number of rows,): a record with each."""
    sizes: NDArray[np.int64]
    """Shape (number of rows,): how many records have it."""
    own: NDArray[np.int64] | None
    """Shape (number of records,): which row each has; None if there is but one."""

    def __len__(self) -> int:
        return len(self.first)


def distinct_rows(arrays: Sequence[np.ndarray], n: int) -> DistinctRows:
    """Find the distinct rows of arrays of length ``n``, in the order of their values.

    Without any array, all records are alike; nothing of length ``n`` is made then.
    """
    first, sizes = np.zeros(1, dtype=np.int64), np.array([n], dtype=np.int64)
    codes = None
    for array in arrays:
        for column in array.reshape(n, -1).T:
            values, own = np.unique(column, return_inverse=True)
            if len(values) == 1:
                continue
            codes = own if codes is None else codes * len(values) + own
            _, first, codes, sizes = np.unique(
                codes, return_index=True, return_inverse=True, return_counts=True
            )
    return DistinctRows(first, sizes, codes)
