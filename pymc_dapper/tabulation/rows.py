"""Distinct rows of the records' public data."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FEW = 1 << 16
"""Numbers up to this one are counted one by one; larger ranges are sorted."""
AT_ONCE = 1 << 20
"""Records that are processed together, to save memory."""


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

    Without arrays, all records are alike, and nothing of length ``n`` is made. Whole numbers in a
    small range, such as answers and indices, are numbered without sorting.
    """
    codes, n_codes = None, 1
    for array in arrays:
        for column in array.reshape(n, -1).T:
            own, n_values = _numbered(column)
            if n_values == 1:
                continue
            if codes is None:
                codes, n_codes = own, n_values
                continue
            if n_codes * n_values > FEW:
                first, _, codes = _rows(codes, n_codes)
                n_codes = len(first)
            n_codes *= n_values
            codes = codes.astype(np.min_scalar_type(n_codes - 1))
            codes *= n_values
            codes += own
    if codes is None:
        return DistinctRows(np.zeros(1, dtype=np.int64), np.array([n], dtype=np.int64), None)
    first, sizes, own = _rows(codes, n_codes)
    return DistinctRows(first, sizes, own if len(first) > 1 else None)


def _numbered(column: np.ndarray) -> tuple[np.ndarray, int]:
    """Give values numbers, in their order; some numbers may belong to no value."""
    if column.dtype.kind == "b":
        column = column.view(np.uint8)
    if column.dtype.kind in "iu":
        low, high = int(column.min()), int(column.max())
        if high - low < FEW:
            codes = np.empty(len(column), dtype=np.min_scalar_type(high - low))
            for start in range(0, len(column), AT_ONCE):
                part = slice(start, start + AT_ONCE)
                codes[part] = column[part] - low
            return codes, high - low + 1
    values, own = np.unique(column, return_inverse=True)
    return own.astype(np.min_scalar_type(len(values) - 1)), len(values)


def _rows(codes: np.ndarray, n_codes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a place with each number that there is, how many there are, and numbers of these."""
    if n_codes > FEW:
        _, first, own, sizes = np.unique(
            codes, return_index=True, return_inverse=True, return_counts=True
        )
        return first, sizes, own
    sizes = np.zeros(n_codes, dtype=np.int64)
    first = np.zeros(n_codes, dtype=np.int64)
    parts = [slice(start, start + AT_ONCE) for start in range(0, len(codes), AT_ONCE)]
    for part in reversed(parts):  # the first of all is written last
        numbers = codes[part]
        sizes += np.bincount(numbers, minlength=n_codes)
        first[numbers[::-1]] = np.arange(part.start, part.start + len(numbers))[::-1]
    there = sizes > 0
    row_of = (np.cumsum(there) - 1).astype(np.min_scalar_type(np.count_nonzero(there)))
    own = np.empty(len(codes), dtype=row_of.dtype)
    for part in parts:
        own[part] = row_of[codes[part]]
    return first[there], sizes[there], own
