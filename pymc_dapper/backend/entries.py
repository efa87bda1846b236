"""Operations on arrays that act entry by entry, as operations on numbers."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pytensor
import pytensor.scalar as ps
from pytensor.graph import Apply, Op


class EntryOf(ps.ScalarOp):
    """An operation that acts entry by entry, on numbers.

    Parameters
    ----------
    op : Op
        The operation on arrays.
    types : tuple of TensorType
        Types of its inputs.
    """

    def __init__(self, op: Op, types: tuple):
        self.op, self.types, self.nin = op, types, len(types)
        dtype = self.node.outputs[0].type.dtype
        super().__init__(ps.specific_out(ps.get_scalar_type(dtype)), name=str(op))

    @property
    def node(self) -> Apply:
        """An application of the operation on arrays."""
        return self.op.make_node(*(each() for each in self.types))

    def impl(self, *numbers: float) -> float:
        """Evaluate in Python."""
        pairs = zip(numbers, self.types, strict=True)
        arrays = [np.full((1,) * of.ndim, x, of.dtype) for x, of in pairs]
        return performed(self.node, arrays).item()

    def __eq__(self, other: object) -> bool:
        """Return a key that identifies the operation."""
        same = isinstance(other, EntryOf) and self.op == other.op
        return same and self.types == other.types  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        """Return a hash of the operation."""
        return hash((EntryOf, self.op, self.types))


class LookUp(ps.ScalarOp):
    """An entry of a constant array, by its indices.

    As an operation on numbers it acts entry by entry, which readers of models know. The caller
    keeps indices within the array.

    Parameters
    ----------
    table : ndarray
        The array.
    """

    def __init__(self, table: np.ndarray):
        self.table = np.ascontiguousarray(table)
        self.nin = table.ndim
        super().__init__(ps.specific_out(ps.get_scalar_type(table.dtype)), name="LookUp")

    def impl(self, *indices: float) -> Any:
        """Evaluate in Python."""
        return self.at(*(int(k) for k in indices))

    def at(self, *indices: Any) -> Any:
        """Look up entries at numbers, or at arrays of them."""
        return self.table[indices]

    @cached_property
    def _content(self) -> tuple:
        return self.table.shape, self.table.dtype.str, self.table.tobytes()

    def __eq__(self, other: object) -> bool:
        """Return a key that identifies the array."""
        return type(other) is type(self) and self._content == other._content

    def __hash__(self) -> int:
        """Return a hash of the array."""
        return hash((type(self), self._content))


class CellOf(LookUp):
    """The cell of a number: how many of some cuts aren't above it.

    Parameters
    ----------
    cuts : ndarray of float64, shape (k,)
        Increasing starts of the cells, except the first.
    """

    def __init__(self, cuts: np.ndarray):
        super().__init__(cuts)
        ps.ScalarOp.__init__(self, ps.specific_out(ps.int64), name="CellOf")

    def impl(self, *numbers: float) -> Any:
        """Evaluate in Python."""
        return self.at(*numbers)

    def at(self, *numbers: Any) -> Any:
        """Find the cells of numbers, or of an array of them."""
        return np.searchsorted(self.table, numbers[0], side="right")

    def pullback(self, inputs: Any, outputs: Any, output_gradients: Any) -> list:
        """Return zero: it is constant between cuts."""
        return [inputs[0].zeros_like(dtype=pytensor.config.floatX)]


def performed(node: Apply, values: Sequence[np.ndarray | None]) -> np.ndarray:
    """Evaluate an operation on arrays, in Python."""
    storage: list[list] = [[None] for _ in node.outputs]
    node.op.perform(node, list(values), storage)
    return storage[0][0]
