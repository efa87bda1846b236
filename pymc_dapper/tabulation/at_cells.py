"""Graphs with a row for each record, rewritten with a row for each cell of a table.

A cell is a distinct row of a record's public data (covariates, groups, answers) together with
values of its variables. Arrays with a row for each record are never computed.
"""

from collections.abc import Callable, Mapping, Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import Alloc, ARange
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.reshape import JoinDims
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import (
    AdvancedSubtensor,
    Subtensor,
    indices_from_subtensor,
)
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs import ops
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.naming import describe
from pymc_dapper.records.reading.rows_of_others import for_others, with_length
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
        role, new = for_others(graph, self._records, self._rows)
        if role.axis != 0:
            raise TabulationError(f"{graph} has no entry for each record along its first axis")
        return new

    def _aligned(self, x: Variable, axis: int) -> Variable:
        """Return a public input at the cells, if it has an entry for each record."""
        if axis < 0 or x.type.shape[axis] == 1:
            return x
        return self._rows(x, axis)

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
            return [value, *with_length(inputs[1:], axis, self._n_cells)]
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
