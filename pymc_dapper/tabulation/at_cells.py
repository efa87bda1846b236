"""Graphs with a row for each record, rewritten with a row for each cell of a table.

A cell is a distinct row of a record's public data (covariates, groups, answers) together with
values of its variables. Arrays with a row for each record are never computed.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import Alloc, ARange, Join, MakeVector
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.reshape import JoinDims
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    Subtensor,
    indices_from_subtensor,
)
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs import ops
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.naming import describe
from pymc_dapper.records.reading.roles import Rows
from pymc_dapper.records.reading.rows_of_others import for_others, not_separate
from pymc_dapper.tabulation.errors import TabulationError

Leaf = Callable[[TensorVariable, int], TensorVariable]
"""``leaf(x, axis)``: the variable for a public array with an entry for each record along an
axis."""


class AtCells:
    """Rewrites graphs of records, given the values of their variables in each cell.

    ``records`` maps record variables, of shape (n,), to their values in each of ``n_cells``.
    """

    def __init__(self, n: int, n_cells: int, records: Mapping[Variable, Variable], leaf: Leaf):
        self._n, self._n_cells = n, n_cells
        self._records = dict(records)
        self._leaf = leaf
        self._public: dict[tuple[Variable, int], TensorVariable] = {}

    def rewrite(self, graph: TensorVariable) -> TensorVariable:
        """Rewrite a graph with an entry for each record along its first axis, public or not."""
        if set(self._records).isdisjoint(ancestors([graph])):
            return self._rows(graph, 0)
        role, new = for_others(graph, self._records, self._inputs)
        if role.axis != 0:
            raise TabulationError(f"{graph} has no entry for each record along its first axis")
        return new

    # -- graphs that depend on records -------------------------------------------------------------

    def _inputs(self, node: Apply, role: Rows, new: Sequence[Variable | None]) -> list[Variable]:
        """Return the inputs for cells."""
        op, pairs = node.op, list(zip(node.inputs, new, strict=True))
        first = [x if y is None else y for x, y in pairs]
        if isinstance(op, Alloc):
            return [first[0], *self._lengths(first[1:], role.axis)]
        if isinstance(op, Reshape) and role.axis == 0:
            shape = pt.as_tensor(first[1])
            return [first[0], pt.set_subtensor(shape[0], self._n_cells)]
        if isinstance(op, Reshape | RandomVariable):
            raise not_separate(node)
        if isinstance(op, AdvancedSubtensor | AdvancedIncSubtensor):
            return self._look_up(node, role, new)
        match ops.action_of(op, node):
            case ops.Moves(inputs=[_, _, *_]) if not isinstance(op, Join | MakeVector):
                # Filled into others: a public array instead of the first has the same axes.
                others = [self._is_same_for_all(x) for x, y in pairs[1:] if y is None]
                if all(others):
                    buffer, new_buffer = pairs[0]
                    filled = self._aligned(buffer, role.axis) if new_buffer is None else new_buffer
                    return [filled, *first[1:]]
            case ops.Maps(inputs=None) | ops.Moves(inputs=[_, _, *_]):
                ndim = node.outputs[0].type.ndim
                return [
                    self._aligned(x, role.axis + x.type.ndim - ndim) if y is None else y
                    for x, y in pairs
                ]
            case ops.Keeps():
                return first
            case ops.Maps() | ops.Moves() | ops.Multiplies() | ops.AlongAxes():
                known = all(y is not None or self._is_same_for_all(x) for x, y in pairs)
                if known or isinstance(ops.action_of(op, node), ops.Multiplies):
                    return first
        raise not_separate(node)

    def _aligned(self, x: Variable, axis: int) -> Variable:
        """Return a public input at the cells, if it has an entry for each record."""
        if axis < 0 or x.type.shape[axis] == 1:
            return x
        return self._rows(x, axis)

    def _is_same_for_all(self, x: Variable) -> bool:
        return self._n not in getattr(x.type, "shape", ())

    def _lengths(self, shape: Sequence[Variable], axis: int) -> list[Variable]:
        return [pt.constant(self._n_cells) if k == axis else s for k, s in enumerate(shape)]

    def _look_up(self, node: Apply, role: Rows, new: Sequence[Variable | None]) -> list[Variable]:
        """Look up, or fill in, if indices or values depend on records."""
        fills = isinstance(node.op, AdvancedIncSubtensor)
        n_arrays = 2 if fills else 1
        arrays, index_inputs = node.inputs[:n_arrays], node.inputs[n_arrays:]
        indices = indices_from_subtensor(index_inputs, node.op.idx_list)
        at = {x: y for x, y in zip(node.inputs, new, strict=True) if y is not None}
        advanced = [k for k, index in enumerate(indices) if isinstance(index, TensorVariable)]
        ndim = max(indices[k].type.ndim for k in advanced)
        adjacent = advanced[-1] - advanced[0] == len(advanced) - 1
        start = advanced[0] if adjacent else 0
        found: dict[Variable, Variable] = {}
        picks_records, table = False, at.get(arrays[0], arrays[0])
        for k in advanced:
            index = indices[k]
            axis = role.axis - start - ndim + index.type.ndim
            if fills:
                axis = index.type.ndim - 1 if index.type.shape[-1:] == (self._n,) else 0
            if index in at:
                found[index] = at[index]
            elif not 0 <= axis < index.type.ndim or index.type.shape[axis] == 1:
                found[index] = index
            elif self._is_identity(index, axis) and arrays[0].type.shape[k] == self._n:
                # Each record's own entry: 0, 1, ..., n - 1.
                picks_records = True
                if arrays[0] not in at:
                    table = self._rows(arrays[0], k)
                shape = [1] * index.type.ndim
                shape[axis] = self._n_cells
                found[index] = pt.constant(np.arange(self._n_cells).reshape(shape))
            elif arrays[0] in at and arrays[0].type.shape[k] == self._n:
                raise not_separate(node)  # records picked by a public index
            else:
                found[index] = self._rows(index, axis)
        made = [table]
        if fills:
            values = arrays[1]
            if not picks_records:
                raise not_separate(node)
            made.append(at.get(values, self._aligned(values, 0) if values.type.ndim else values))
        return [*made, *(found.get(x, x) for x in index_inputs)]

    def _is_identity(self, index: TensorVariable, axis: int) -> bool:
        value = known_value(index)
        return (
            value is not None
            and value.size == self._n
            and bool(np.array_equal(value.ravel(), np.arange(self._n)))
        )

    # -- public graphs ----------------------------------------------------------------------------

    def _rows(self, x: Variable, axis: int) -> TensorVariable:
        """Return a public graph at the cells, from the arrays that it is computed from."""
        key = (x, axis)
        if key not in self._public:
            self._public[key] = self._public_rows(x, axis)
        return self._public[key]

    def _public_rows(self, x: Variable, axis: int) -> TensorVariable:
        node = x.owner
        if x.type.shape[axis] != self._n:
            raise TabulationError(f"{x} has no entry for each record along its axis {axis}")
        if node is None:
            return self._leaf(x, axis)
        if isinstance(node.op, ARange):
            raise TabulationError("records are told apart by their numbers")
        inputs = self._picked(node, axis) or self._treated(node, axis)
        if inputs is not None:
            made = node.clone_with_new_inputs(list(inputs), strict=False)
            return made.outputs[node.outputs.index(x)]
        if isinstance(ops.action_of(node.op, node), ops.Keeps):
            return self._rows(node.inputs[0], axis)
        if known_value(x) is not None:
            return self._leaf(x, axis)
        raise TabulationError(
            f"{_shown(x)} may mix records: the operation {describe(node)} isn't known to "
            "treat each record by itself"
        )

    def _picked(self, node: Apply, axis: int) -> Sequence[Variable] | None:
        """Return inputs at the cells, if an operation repeats, orders, or picks entries."""
        op, inputs = node.op, list(node.inputs)
        if isinstance(op, Alloc):
            inner = axis + inputs[0].type.ndim - node.out.type.ndim
            value = inputs[0] if inner < 0 else self._aligned(inputs[0], inner)
            return [value, *self._lengths(inputs[1:], axis)]
        if isinstance(op, DimShuffle):
            return [self._rows(inputs[0], op.new_order[axis])]
        if isinstance(op, Subtensor):
            indices = indices_from_subtensor(inputs[1:], op.idx_list)
            # The axis of the array that this axis of the slice is.
            kept = [
                k
                for k in range(inputs[0].type.ndim)
                if k >= len(indices) or isinstance(indices[k], slice)
            ]
            if kept[axis] >= len(indices) or indices[kept[axis]] == slice(None):
                return [self._rows(inputs[0], kept[axis]), *inputs[1:]]
        if isinstance(op, AdvancedSubtensor):
            indices = indices_from_subtensor(inputs[1:], op.idx_list)
            leading = all(
                isinstance(index, TensorVariable) and index.type.ndim <= 1 for index in indices
            )
            if leading and axis == 0:
                return [inputs[0], *(self._aligned(i, 0) if i.type.ndim else i for i in inputs[1:])]
        if isinstance(op, Reshape) and axis == 0 and inputs[0].type.shape[0] == self._n:
            shape = pt.set_subtensor(pt.as_tensor(inputs[1])[0], self._n_cells)
            return [self._rows(inputs[0], 0), shape]
        return None

    def _treated(self, node: Apply, axis: int) -> Sequence[Variable] | None:
        """Return inputs at the cells, if an operation is known to treat each record by itself."""
        inputs = list(node.inputs)
        match ops.action_of(node.op, node):
            case ops.Multiplies() if node.out.type.ndim == 2:
                inputs[axis] = self._rows(inputs[axis], axis)
                return inputs
            case ops.Maps(inputs=None):
                ndim = node.outputs[0].type.ndim
                return [self._aligned(i, axis + i.type.ndim - ndim) for i in inputs]
            case ops.Moves(inputs=[_, _, *_]) if not isinstance(node.op, JoinDims) and hasattr(
                node.op, "axis"
            ):
                if node.op.axis % node.out.type.ndim != axis:
                    return [self._aligned(i, axis) for i in inputs]
            case ops.AlongAxes(axes=axes, dropped=dropped) if len(inputs) == 1:
                inner = axis
                for k in sorted(axes) if dropped else ():
                    inner += k <= inner
                if inner not in axes:
                    return [self._rows(inputs[0], inner)]
        return None


def _shown(x: Variable) -> str:
    return f"'{x.name}'" if x.name else "what they follow"
