"""Rows of a table as arrays, with an axis for each column of labels."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from pymc_dapper.checks import as_array, shown
from pymc_dapper.releases.labels import Label, as_label, told

WRITTEN = "Leave suppressed values empty, or nan, and write decimals with a point"


def noisy_counts(what: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Check that a table has one number for each cell, and return them in its shape."""
    counts = as_array(values)
    if counts.dtype.kind not in "iuf" or counts.size != np.prod(shape, dtype=int):
        raise ValueError(f"{what} {np.prod(shape, dtype=int)} noisy counts, got {shown(values)}")
    return counts.reshape(shape)


class Cells:
    """The entry of an array for each row of a table.

    Parameters
    ----------
    name : str
        Name of the query, for messages.
    keys : mapping of str to list
        Columns of labels, by dim.
    coords : mapping of str to sequence
        Labels of a dim, in their order. Labels of other dims are in the order of their first row.

    Attributes
    ----------
    coords : dict of str to tuple
        Labels of each dim.
    shape : tuple of int

    Raises
    ------
    TypeError, ValueError
        If a label is missing or isn't among ``coords``, or if two rows have the same labels.
    """

    def __init__(
        self,
        name: str,
        keys: Mapping[str, Sequence[Any]],
        coords: Mapping[str, Sequence[Label]] | None = None,
    ):
        self.name, self.dims = name, tuple(keys)
        labels = {
            dim: [as_label(f"'{name}': labels of '{dim}'", each) for each in column]
            for dim, column in keys.items()
        }
        given = coords or {}
        self.coords = {
            dim: tuple(given.get(dim, dict.fromkeys(column))) for dim, column in labels.items()
        }
        self.shape = tuple(len(each) for each in self.coords.values())
        places = {
            dim: {label: k for k, label in enumerate(each)} for dim, each in self.coords.items()
        }
        for dim, column in labels.items():
            for label in column:
                if label not in places[dim]:
                    raise ValueError(
                        f"'{name}': {label!r} isn't among the coords of '{dim}': "
                        f"{told(self.coords[dim])}"
                    )
        rows = list(zip(*labels.values(), strict=True))
        self._index: dict[tuple[int, ...], int] = {}
        for k, row in enumerate(rows):
            at = tuple(places[dim][label] for dim, label in zip(self.dims, row, strict=True))
            if at in self._index:
                raise ValueError(
                    f"'{name}': there are two rows of {self._told(at)}. Name the columns that tell "
                    "them apart among dims"
                )
            self._index[at] = k

    def _told(self, at: Sequence[int]) -> str:
        pairs = zip(self.coords.items(), at, strict=True)
        return ", ".join(f"{dim} {labels[k]!r}" for (dim, labels), k in pairs)

    def missing(self) -> str | None:
        """Describe the first entry that has no row; None if all have one."""
        absent = (at for at in product(*map(range, self.shape)) if at not in self._index)
        return next(map(self._told, absent), None)

    def fill(self, values: Sequence[Any]) -> np.ndarray:
        """Put a column into an array; entries without a row or a value are nan."""
        n_rows = len(self._index)
        if n_rows == np.prod(self.shape, dtype=int) and all(
            isinstance(each, int | np.integer) and not isinstance(each, bool) for each in values
        ):
            array = np.zeros(self.shape, dtype=np.int64)
        else:
            array = np.full(self.shape, np.nan)
        for at, k in self._index.items():
            value = values[k]
            try:
                # Words and truth values aren't numbers, although NumPy converts some of them.
                if isinstance(value, str | bytes | bool | np.bool_):
                    raise TypeError
                array[at] = np.nan if value is None else value
            except (TypeError, ValueError):
                raise TypeError(
                    f"'{self.name}': values must be numbers, got {value!r} at {self._told(at)}"
                    + (f". {WRITTEN}" if isinstance(value, str) else "")
                ) from None
            except OverflowError:
                raise ValueError(
                    f"'{self.name}': values must fit into 64 bits, got {value} at {self._told(at)}"
                ) from None
        return array

    def empty(self, array: np.ndarray) -> str | None:
        """Describe the first entry of an array that has no value; None if all have one."""
        at = first_empty(array)
        return None if at is None else self._told(at)


def first_empty(array: np.ndarray) -> tuple[int, ...] | None:
    """Index of the first entry that has no value; None if all have one."""
    empty = np.argwhere(np.isnan(array)).tolist() if array.dtype.kind == "f" else []
    return tuple(empty[0]) if empty else None
