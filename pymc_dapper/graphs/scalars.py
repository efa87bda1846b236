"""Small arrays entry by entry: what a record contributes, as scalars in terms of its values.

Compiled as operations on arrays, a record's contributions are written out and read again by one
operation after the other. As scalars they stay in the processor's registers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.basic import Join
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import dependent_variables

MOST_STEPS = 256
"""Scalars to compile, intermediate ones included, at most: with more, arrays are better."""

Index = tuple[int, ...]


@dataclass(frozen=True)
class Entries:
    """The entries of an array, as functions of those of other arrays.

    Attributes
    ----------
    entries : list of TensorVariable, each of shape ()
        The entries, the last index running fastest.
    scalars : dict
        Stand for the entries that they are computed from: by the array, and the index there.
    context : dict
        What they are computed from besides, a variable of shape (), and the scalar that stands for
        it.
    """

    entries: list[TensorVariable]
    scalars: dict[tuple[Variable, Index], Variable]
    context: dict[TensorVariable, Variable]


class _UnknownEntryError(Exception):
    """There are many, or it isn't known which entries of its inputs an operation makes one of."""


def read_entries(array: TensorVariable, arrays: Sequence[Variable]) -> Entries | None:
    """Write the entries of an array as functions of those of others.

    Parameters
    ----------
    array : TensorVariable
        The array, of known shape.
    arrays : sequence of Variable
        The others, of known shapes.

    Returns
    -------
    Entries or None
        None if that takes many scalars, or if an operation isn't known to act on them.
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
        if x.owner is None or None in x.type.shape:
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
        match node.op:
            case Elemwise():
                operands = [self.entry(x, _broadcast(x, index)) for x in node.inputs]
                return node.op(*operands)
            case DimShuffle(new_order=new_order):
                place = dict(zip(new_order, index, strict=True))
                return self.entry(first, tuple(place.get(k, 0) for k in range(first.type.ndim)))
            case CAReduce(scalar_op=scalar_op):
                [output] = node.outputs
                across = range(first.type.ndim) if node.op.axis is None else node.op.axis
                operands = [
                    self.entry(first, k).astype(node.op.acc_dtype or output.dtype)
                    for k in _along(first, across, index)
                ]
                return reduce(Elemwise(scalar_op), operands)
            case Join():
                return self._joined(node, index)
            case Subtensor():
                return self.entry(
                    first, _index_at(_places(first)[_constant_indices(node)][index], first)
                )
            case Reshape():
                shape = node.outputs[0].type.shape
                if None in shape:
                    raise _UnknownEntryError
                return self.entry(first, _index_at(_places(first).reshape(shape)[index], first))
            case SpecifyShape():
                return self.entry(first, index)
            case _:
                raise _UnknownEntryError

    def _joined(self, node: Apply, index: Index) -> TensorVariable:
        axis, place = node.op.axis % len(index), list(index)
        for x in node.inputs:
            length = x.type.shape[axis]
            if length is None:
                break
            if place[axis] < length:
                return self.entry(x, tuple(place))
            place[axis] -= length
        raise _UnknownEntryError


def _broadcast(x: Variable, index: Index) -> Index:
    return tuple(0 if length == 1 else k for length, k in zip(x.type.shape, index, strict=True))


def _along(x: Variable, across: Sequence[int], index: Index) -> list[Index]:
    """List the indices of the entries that a reduction across axes makes one of."""
    if None in x.type.shape or 0 in x.type.shape:
        raise _UnknownEntryError
    rest = iter(index)
    ranges = [range(n) if k in across else (next(rest),) for k, n in enumerate(x.type.shape)]
    return list(product(*ranges))


def _constant_indices(node: Apply) -> tuple[slice | int, ...]:
    """Return the indices of a Subtensor, as numbers."""
    if not all(isinstance(x, Constant) for x in node.inputs[1:]):
        raise _UnknownEntryError
    values = [int(x.data) for x in node.inputs[1:]]
    return tuple(indices_from_subtensor(values, node.op.idx_list))


def _places(x: Variable) -> np.ndarray:
    """Return the numbers of a variable's entries, in an array of its shape."""
    if None in x.type.shape:
        raise _UnknownEntryError
    return np.arange(prod(x.type.shape)).reshape(x.type.shape)


def _index_at(place: int, x: Variable) -> Index:
    """Return the index of the entry with a number."""
    return tuple(int(k) for k in np.unravel_index(place, x.type.shape))
