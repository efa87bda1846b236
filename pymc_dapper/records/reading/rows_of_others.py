"""Graphs written for other records: one with each value or in each cell, or a block."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Apply, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.basic import Alloc, Join, MakeVector
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    indices_from_subtensor,
)
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs import ops
from pymc_dapper.graphs.errors import NotAdditiveError, UnknownOperationError
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.naming import describe
from pymc_dapper.graphs.rebuild import dependent_variables
from pymc_dapper.records.reading.indexing import index_axes
from pymc_dapper.records.reading.roles import Fixed, Role, Rows
from pymc_dapper.records.reading.rules import follow_records

Public = Callable[[TensorVariable, int], Variable | None]
"""``public(x, axis)``: what other records have in place of a variable that isn't a record, but has
an entry for each along an axis; None if that isn't known."""


def rows_of_others(
    contributions: TensorVariable, at: Mapping[Variable, Variable], public: Public
) -> TensorVariable | None:
    """Write contributions of other records in place of the model's; their number may differ.

    ``at`` replaces each record variable, with a row for each of the others. Returns None if an
    operation isn't known to treat records separately.
    """
    try:
        _, written = for_others(contributions, at, public)
    except (NotAdditiveError, UnknownOperationError):
        return None
    return written if isinstance(written, TensorVariable) else None


def for_others(
    graph: TensorVariable,
    at: Mapping[Variable, Variable],
    public: Public,
    axes: Mapping[Variable, int] | None = None,
) -> tuple[Rows, Variable]:
    """Write a graph for other records; returns its role, too.

    ``axes`` are the axes of records of the variables that are replaced, if not the first.

    Raises NotAdditiveError or UnknownOperationError if it isn't known to treat records separately.
    """
    dependent = dependent_variables(at, [graph])
    roles: dict[Variable, Rows] = {x: Rows((axes or {}).get(x, 0)) for x in at}
    lengths = (y.type.shape[roles[x].axis] for x, other in at.items() for y in (x, other))
    others = _Others(next(lengths, 0), next(lengths, 0), public)
    new = dict(at)
    for node in io_toposort(list(at), [graph]):
        if dependent.isdisjoint(node.outputs):
            continue
        given = [roles.get(x, Fixed()) for x in node.inputs]
        rows = _only_rows(node, given)
        inputs = others.inputs(node, rows, [new.get(x) for x in node.inputs])
        of_others = node.clone_with_new_inputs(inputs, strict=False)
        # Check that it acts in the same way on the others, whatever their number.
        if _only_rows(of_others, given).axis != rows.axis:
            raise not_separate(node)
        roles[node.outputs[0]] = rows
        new[node.outputs[0]] = _of_known_shape(of_others)
    if graph not in new:
        raise NotAdditiveError(f"{graph} doesn't depend on records")
    return roles[graph], new[graph]


def not_separate(node: Apply) -> NotAdditiveError:
    """Make the error for an operation that may mix records."""
    return NotAdditiveError(
        f"the operation {describe(node)} isn't known to treat each record by itself"
    )


def _only_rows(node: Apply, roles: Sequence[Role]) -> Rows:
    """Return the role of the only output, whose slice i must depend on record i."""
    role, *others = follow_records(node.op, node, roles)
    if others or not isinstance(role, Rows) or role.records is not None:
        raise not_separate(node)
    return role


def _of_known_shape(node: Apply) -> TensorVariable:
    """Return the only output, with its shape if that follows from the operation."""
    [output], on_entries = node.outputs, ops.scalar_of(node)
    if None not in output.type.shape or on_entries is None:
        return output
    shape = Elemwise(on_entries)(*node.inputs).type.shape
    return output if shape == output.type.shape else pt.specify_shape(output, shape)


class _Others(NamedTuple):
    """Inputs of operations for other records."""

    n: int
    n_others: int | None
    """How many records there are, and others; None if that isn't known beforehand."""
    public: Public

    def inputs(self, node: Apply, role: Rows, new: Sequence[Variable | None]) -> list[Variable]:
        """Return an operation's inputs, given those that depend on records; None for others."""
        op, pairs = node.op, list(zip(node.inputs, new, strict=True))
        first = [x if y is None else y for x, y in pairs]
        if isinstance(op, Alloc) and self.n_others is not None:
            return [first[0], *with_length(first[1:], role.axis, self.n_others)]
        if isinstance(op, Reshape) and role.axis == 0 and self.n_others is not None:
            return [first[0], pt.set_subtensor(pt.as_tensor(first[1])[0], self.n_others)]
        if isinstance(op, Alloc | Reshape | RandomVariable):
            raise not_separate(node)
        if isinstance(op, AdvancedSubtensor | AdvancedIncSubtensor):
            return self._looked_up(node, role, new)
        match ops.action_of(op, node):
            case ops.Moves(inputs=[_, _, *_]) if not isinstance(op, Join | MakeVector):
                # Filled into others: a public array instead of the first has the same axes.
                if all(self._is_same_for_all(x) for x, y in pairs[1:] if y is None):
                    x, y = pairs[0]
                    return [self._aligned(node, x, role.axis) if y is None else y, *first[1:]]
            case ops.Maps(inputs=None) | ops.Moves(inputs=[_, _, *_]):
                ndim = node.outputs[0].type.ndim
                return [
                    self._aligned(node, x, role.axis + x.type.ndim - ndim) if y is None else y
                    for x, y in pairs
                ]
            case ops.Multiplies() if self.n_others is not None:
                return first
            case ops.Keeps():
                return first
            case ops.Maps() | ops.Moves() | ops.AlongAxes():
                if all(y is not None or self._is_same_for_all(x) for x, y in pairs):
                    return first
        raise not_separate(node)

    def _aligned(self, node: Apply, x: Variable, axis: int) -> Variable:
        """Return a public input for others, if it has an entry for each record."""
        if axis < 0 or x.type.shape[axis] == 1:
            return x
        found = self.public(x, axis)
        if found is None:
            raise not_separate(node)
        return found

    def _is_same_for_all(self, x: Variable) -> bool:
        return self.n not in getattr(x.type, "shape", ())

    def _looked_up(self, node: Apply, role: Rows, new: Sequence[Variable | None]) -> list[Variable]:
        """Look up, or fill in, if indices or values depend on records."""
        fills = isinstance(node.op, AdvancedIncSubtensor)
        n_arrays = 2 if fills else 1
        arrays, index_inputs = node.inputs[:n_arrays], node.inputs[n_arrays:]
        indices = indices_from_subtensor(index_inputs, node.op.idx_list)
        at = {x: y for x, y in zip(node.inputs, new, strict=True) if y is not None}
        advanced, ndim, start = index_axes(indices)
        found: dict[Variable, Variable] = {}
        picks_records, table = False, at.get(arrays[0], arrays[0])
        for k in advanced:
            index = indices[k]
            axis = role.axis - start - ndim + index.type.ndim
            if fills:
                axis = index.type.ndim - 1 if index.type.shape[-1:] == (self.n,) else 0
            if index in at:
                found[index] = at[index]
            elif not 0 <= axis < index.type.ndim or index.type.shape[axis] == 1:
                found[index] = index
            elif self._is_identity(index) and arrays[0].type.shape[k] == self.n:
                # Each record's own entry: 0, 1, ..., n - 1.
                picks_records = True
                if arrays[0] not in at:
                    table = self._aligned(node, arrays[0], k)
                shape = [1] * index.type.ndim
                shape[axis] = self.n_others or 0
                found[index] = pt.constant(np.arange(shape[axis]).reshape(shape))
            elif arrays[0] in at and arrays[0].type.shape[k] == self.n:
                raise not_separate(node)  # records picked by a public index
            else:
                found[index] = self._aligned(node, index, axis)
        made = [table]
        if fills:
            values = arrays[1]
            if not picks_records:
                raise not_separate(node)
            if values not in at and values.type.ndim:
                at[values] = self._aligned(node, values, 0)
            made.append(at.get(values, values))
        return [*made, *(found.get(x, x) for x in index_inputs)]

    def _is_identity(self, index: TensorVariable) -> bool:
        value = known_value(index) if self.n_others is not None else None
        return value is not None and np.array_equal(value.ravel(), np.arange(self.n))


def with_length(shape: Sequence[Variable], axis: int, length: int) -> list[Variable]:
    """Replace a length in a shape."""
    return [pt.constant(length) if k == axis else x for k, x in enumerate(shape)]
