"""Small arrays entry by entry: a record's contributions as scalar functions of its values.

As array operations, a record's contributions are stored and read again after each operation. As
scalars they stay in the processor's registers.
"""

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs import ops
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import dependent_variables

MOST_STEPS = 256
"""Most scalars to compile, including intermediate ones; with more, arrays are better."""

Index = tuple[int, ...]


@dataclass(frozen=True)
class Entries:
    """The entries of an array, as functions of those of other arrays."""

    entries: list[TensorVariable]
    """Each of shape (): the entries, the last index running fastest."""
    scalars: dict[tuple[Variable, Index], Variable]
    """The scalar inputs, by their array and their index in it."""
    context: dict[TensorVariable, Variable]
    """Further inputs: variables of shape (), and the scalars that stand for them."""


class _UnknownEntryError(Exception):
    """There are too many entries, or an operation's entries can't be traced to its inputs."""


def read_entries(array: TensorVariable, arrays: Sequence[Variable]) -> Entries | None:
    """Write the entries of an array as functions of those of others, all of known shapes.

    None if that needs many scalars, or if an operation's effect on entries isn't known.
    """
    shape = array.type.shape
    if None in shape or not 0 < prod(shape) <= MOST_STEPS:
        return None
    reader = _Reader(array, arrays)
    try:
        entries = [reader.entry(array, index) for index in np.ndindex(*shape)]
    except _UnknownEntryError:
        return None
    return Entries(entries, reader.scalars, reader.context)


class _Reader:
    """Follows entries through a graph."""

    def __init__(self, array: TensorVariable, arrays: Sequence[Variable]):
        self.scalars: dict[tuple[Variable, Index], Variable] = {}
        self.context: dict[TensorVariable, Variable] = {}
        self._arrays = set(arrays)
        self._dependent = dependent_variables(arrays, [array])
        self._found: dict[tuple[Variable, Index], TensorVariable] = {}
        self._origins: dict[Apply, ops.Origins | None] = {}

    def entry(self, x: Variable, index: Index) -> TensorVariable:
        """Return an entry of a variable, as a variable of shape ()."""
        if (x, index) not in self._found:
            self._found[x, index] = self._entry(x, index)
            if len(self._found) > MOST_STEPS:
                raise _UnknownEntryError
        return self._found[x, index]

    def _entry(self, x: Variable, index: Index) -> TensorVariable:
        if x in self._arrays:
            scalar = self.scalars[x, index] = ps.get_scalar_type(x.type.dtype)()
            return pt.tensor_from_scalar(scalar)
        if x not in self._dependent:
            return self._fixed(x, index)
        if x.owner is None:
            raise _UnknownEntryError
        return self._computed(x.owner, index).astype(x.type.dtype)

    def _fixed(self, x: Variable, index: Index) -> TensorVariable:
        known = known_value(x)
        if known is not None:
            return pt.constant(known[index], dtype=x.type.dtype)
        entry = x[index]
        scalar = self.context[entry] = ps.get_scalar_type(x.type.dtype)()
        return pt.tensor_from_scalar(scalar)

    def _computed(self, node: Apply, index: Index) -> TensorVariable:
        """Apply an operation to entries."""
        if len(node.outputs) > 1:
            raise _UnknownEntryError
        first = node.inputs[0]
        match ops.action_of(node.op, node):
            case _ if ops.scalar_of(node) is not None:
                return ops.on_entries(
                    node, [self.entry(x, _broadcast(x, index)) for x in node.inputs]
                )
            case ops.Reduces(axes=axes, by=by):
                dtype = getattr(node.op, "acc_dtype", None) or node.outputs[0].dtype
                operands = [self.entry(first, k).astype(dtype) for k in _along(first, axes, index)]
                return reduce(Elemwise(by), operands)
            case ops.Keeps() if all(isinstance(x, Constant) for x in node.inputs[1:]):
                return self.entry(first, index)
            case ops.Moves():
                return self._moved(node, index)
            case _:
                raise _UnknownEntryError

    def _moved(self, node: Apply, index: Index) -> TensorVariable:
        if node not in self._origins:
            self._origins[node] = ops.find_origins(
                node, [_shape(x) for x in node.inputs], known_value
            )
        origins = self._origins[node]
        if origins is None:
            raise _UnknownEntryError
        number = int(origins.numbers[index])
        place = bisect(origins.starts, number) - 1
        x = node.inputs[origins.inputs[place]]
        return self.entry(x, _index_at(number - origins.starts[place], x))


def _broadcast(x: Variable, index: Index) -> Index:
    own = index[len(index) - x.type.ndim :]
    return tuple(0 if length == 1 else k for length, k in zip(x.type.shape, own, strict=True))


def _along(x: Variable, across: Sequence[int], index: Index) -> list[Index]:
    """List the indices of the entries that a reduction across axes combines."""
    if None in x.type.shape or 0 in x.type.shape:
        raise _UnknownEntryError
    rest = iter(index)
    ranges = [range(n) if k in across else (next(rest),) for k, n in enumerate(x.type.shape)]
    return list(product(*ranges))


def _shape(x: Variable) -> tuple[int | None, ...]:
    return getattr(x.type, "shape", ())


def _index_at(place: int, x: Variable) -> Index:
    """Return the index of an entry, given its number."""
    return tuple(int(k) for k in np.unravel_index(place, x.type.shape))
