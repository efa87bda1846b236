"""How PyTensor operations act on the record axis: one small rule per operation.

A rule is called only for nodes with an input that has one slice per record (``Rows``); it returns
the roles of the node's outputs. A sum over the record axis is the boundary between contributions of
records and the mechanism.
"""

from collections.abc import Sequence
from functools import singledispatch

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph import Apply, Constant, Op, Variable
from pytensor.graph.basic import equal_computations
from pytensor.sparse.basic import dense_from_sparse
from pytensor.sparse.type import SparseTensorType
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.reshape import JoinDims
from pytensor.tensor.shape import Reshape
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs import ops
from pymc_dapper.graphs.errors import NotAdditiveError, UnknownOperationError
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.naming import describe, how_to_teach
from pymc_dapper.records.reading.roles import Fixed, Role, Rows, SumOverRecords


@singledispatch
def follow_records(op: Op, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    """Return how the outputs of an operation depend on the records.

    Dispatched on the type of ``op``. To teach all samplers an operation of your own, use
    :func:`pymc_dapper.action_of`. If an action isn't enough, such as for an operation that sums
    over records in its own way, register a rule: ``@follow_records.register(MyOp)``.

    Parameters
    ----------
    op : Op
        The operation.
    node : Apply
        Its application; ``node.inputs`` are the variables it acts on.
    roles : sequence of Role
        The role of each input, ``Fixed`` or ``Rows``; at least one is ``Rows``.

    Returns
    -------
    sequence of Role
        The role of each output: ``Fixed``, ``Rows`` or ``SumOverRecords``.

    Raises
    ------
    NotAdditiveError
        If the operation mixes records otherwise than by a sum.
    UnknownOperationError
        If there is no rule for the operation.
    """
    match ops.action_of(op, node):
        case ops.Maps(inputs=mapped):
            return _mapped(node, roles, mapped)
        case ops.Keeps():
            return _mapped(node, roles, (0,))
        case ops.Moves(inputs=moved):
            return [_moved(node, roles, moved)]
        case ops.Multiplies():
            return [_product(node, roles)]
        case ops.AlongAxes() as action:
            return _along_axes(node, roles, action)
    raise UnknownOperationError(
        f"no rule says what the operation {describe(node)} does to the record axis. Write the "
        f"statistic with other operations, or {how_to_teach(node)}, or DapperStep alone with "
        f"`pymc_dapper.follow_records.register({type(op).__name__})`"
    )


def mixes(node: Apply, how: str) -> NotAdditiveError:
    """Make the error for an operation that mixes records otherwise than by a sum."""
    return NotAdditiveError(f"the operation {describe(node)} {how}")


def common_rows(node: Apply, roles: Sequence[Role]) -> Rows:
    """Refuse inputs whose slices per record are on other axes, or in another order."""
    first, *others = (role for role in roles if isinstance(role, Rows))
    for other in others:
        if other.axis != first.axis or not _same_order(first.records, other.records):
            raise mixes(node, "combines different records with each other")
    return first


def single_record(value: TensorVariable, record: TensorVariable) -> SumOverRecords:
    """Write a function of a single record as a sum over all, to which others add nothing."""
    return SumOverRecords(value[None], record[None])


def order_of(x: TensorVariable, rows: Rows) -> TensorVariable:
    """Return the record on which each slice of ``x`` depends."""
    return pt.arange(x.shape[rows.axis]) if rows.records is None else rows.records


def _same_order(a: TensorVariable | None, b: TensorVariable | None) -> bool:
    if a is None or b is None:
        return a is b
    return equal_computations([a], [b])


def _mapped(node: Apply, roles: Sequence[Role], mapped: Sequence[int] | None) -> Sequence[Role]:
    """Map entries in the same place, which must belong to the same record."""
    entrywise = range(len(roles)) if mapped is None else mapped
    if any(isinstance(role, Rows) for k, role in enumerate(roles) if k not in entrywise):
        raise mixes(node, "depends on all records at once")
    rows = common_rows(node, roles)
    # An input without the record axis has length 1 there, or is a single number.
    shapes = [node.inputs[k].type.shape for k in entrywise]
    lengths = [shape[rows.axis] for shape in shapes if len(shape) > rows.axis]
    of_records = [node.inputs[k].type.shape for k in entrywise if isinstance(roles[k], Rows)]
    if any(shape[rows.axis] == 1 for shape in of_records) and any(n != 1 for n in lengths):
        raise mixes(node, "repeats the only record")
    return [rows] * len(node.outputs)


def _moved(node: Apply, roles: Sequence[Role], moved: Sequence[int]) -> Role:
    """Find an axis along which entries belong to different records, in any order."""
    if any(isinstance(role, Rows) for k, role in enumerate(roles) if k not in moved):
        raise mixes(node, "moves entries to places that depend on a record")
    rows = common_rows(node, roles)
    shapes = [getattr(x.type, "shape", ()) for x in node.inputs]
    origins = ops.find_origins(node, shapes, known_value)
    if origins is None or origins.numbers.size == 0:
        raise mixes(node, "moves records to places that aren't known beforehand")
    # The slice, and so the record, of each entry; -1 for none.
    of_inputs = [
        np.indices(node.inputs[k].type.shape)[rows.axis].ravel()
        if isinstance(roles[k], Rows)
        else np.full(np.prod([n or 0 for n in node.inputs[k].type.shape], dtype=int), -1)
        for k in origins.inputs
    ]
    slices = np.concatenate(of_inputs)[origins.numbers]
    length = max(int(numbers.max(initial=-1)) for numbers in of_inputs) + 1
    order = pt.arange(length) if rows.records is None else rows.records
    found = _lines_of_one(slices)
    in_order = [axis for axis, own in found.items() if np.array_equal(own, np.arange(length))]
    if in_order:
        return Rows(rows.axis if rows.axis in in_order else in_order[0], rows.records)
    if length == 1 or slices.ndim == 0:
        return single_record(node.outputs[0], order[slices.max()])
    if not found:
        raise mixes(node, "moves entries of different records to one place")
    axis, own = next(iter(found.items()))
    return Rows(axis, order[pt.constant(own)])


def _lines_of_one(slices: np.ndarray) -> dict[int, np.ndarray]:
    """Find axes whose places have entries of one slice only, and the slice of each place."""
    found = {}
    for axis in range(slices.ndim):
        lines = np.moveaxis(slices, axis, 0).reshape(slices.shape[axis], -1)
        own = lines.max(axis=1)
        if own.min() >= 0 and np.all((lines == own[:, None]) | (lines == -1)):
            found[axis] = own
    return found


def _along_axes(node: Apply, roles: Sequence[Role], action: ops.AlongAxes) -> Sequence[Role]:
    rows = common_rows(node, roles)
    if rows.axis not in action.axes:
        n_dropped = sum(axis < rows.axis for axis in action.axes) if action.dropped else 0
        return [Rows(rows.axis - n_dropped, rows.records)] * len(node.outputs)
    if not isinstance(action, ops.Reduces):
        raise mixes(node, "orders or accumulates the records")
    if not isinstance(action.by, ps.Add):
        largest = isinstance(action.by, ps.ScalarMaximum)
        why = ", as pt.bincount does if values, or pm.Data, may pass minlength=" if largest else ""
        raise mixes(node, f"reduces the record axis by something else than a sum{why}")
    # A record's contribution: the same sum over the other axes only, in the dtype of the total.
    [x], [total] = node.inputs, node.outputs
    others = [axis + (axis < rows.axis) for axis in action.axes if axis != rows.axis]
    contributions = pt.moveaxis(x, rows.axis, 0)
    if others:
        contributions = contributions.sum(axis=others)
    return [SumOverRecords(contributions.astype(total.dtype), rows.records)]


def _product(node: Apply, roles: Sequence[Role]) -> Role:
    """Product of two matrices: keeps the record axis, or sums over it."""
    pairs = list(zip(node.inputs, roles, strict=True))
    if any(isinstance(role, Rows) and _is_sparse(x) for x, role in pairs):
        raise mixes(node, "takes records as a sparse matrix")
    left, right = (_dense(x) if _is_sparse(x) else x for x in node.inputs)
    left_axis, right_axis = (role.axis if isinstance(role, Rows) else None for role in roles)
    match left_axis, right_axis:
        case (1, 0) | (1, None) | (None, 0):
            contracted = [Rows(0, role.records) for role in roles if isinstance(role, Rows)]
            terms = (left.T[:, :, None] * right[:, None, :]).astype(node.outputs[0].dtype)
            return SumOverRecords(terms, common_rows(node, contracted).records)
        case (0, None):
            return roles[0]
        case (None, 1):
            return roles[1]
    raise mixes(node, "multiplies different records with each other")


def _is_sparse(x: Variable) -> bool:
    return isinstance(x.type, SparseTensorType)


def _dense(x: Variable) -> TensorVariable:
    return pt.constant(x.data.toarray()) if isinstance(x, Constant) else dense_from_sparse(x)


@follow_records.register(DimShuffle)
def _dimshuffle(op: DimShuffle, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    rows = common_rows(node, roles)
    if rows.axis not in op.new_order:
        return [single_record(node.outputs[0], order_of(node.inputs[0], rows)[0])]
    return [Rows(op.new_order.index(rows.axis), rows.records)]


@follow_records.register(Blockwise)
def _blockwise(op: Blockwise, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    batch_ndim = op.batch_ndim(node)
    if batch_ndim == 0:
        return follow_records(op.core_op, node, roles)
    rows = common_rows(node, roles)
    if rows.axis < batch_ndim:
        return [rows] * len(node.outputs)
    action = ops.action_of(op, node)
    if isinstance(action, ops.Moves):
        return [_moved(node, roles, action.inputs)]
    raise mixes(node, "applies a function of matrices across the record axis")


@follow_records.register(Join)
def _join(op: Join, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    rows = common_rows(node, roles)
    if op.axis % node.outputs[0].type.ndim == rows.axis:
        raise mixes(node, "joins arrays along the record axis")
    return [rows]


@follow_records.register(Reshape)
def _reshape(op: Reshape, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    x, rows = node.inputs[0], common_rows(node, roles)
    length, kept = x.type.shape[rows.axis], node.outputs[0].type.shape[:1]
    if rows.axis == 0 and length is not None and kept == (length,):
        return [rows]  # for any lengths of other axes
    return [_moved(node, roles, (0,))]


@follow_records.register(JoinDims)
def _join_dims(op: JoinDims, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    rows = common_rows(node, roles)
    first, last = op.start_axis, op.start_axis + op.n_axes
    if rows.axis < first:
        return [rows]
    if rows.axis >= last:
        return [Rows(rows.axis - op.n_axes + 1, rows.records)]
    return [_moved(node, roles, (0,))]


@follow_records.register(Alloc)
def _alloc(op: Alloc, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    value, *shape = node.inputs
    rows = roles[0]
    if not isinstance(rows, Rows):
        raise mixes(node, "makes an array whose shape depends on a record")
    axis = rows.axis + len(shape) - value.type.ndim
    if value.type.shape[rows.axis] == 1 != node.outputs[0].type.shape[axis]:
        raise mixes(node, "repeats the only record")
    return [Rows(axis, rows.records)]


@follow_records.register(RandomVariable)
def _draw(op: RandomVariable, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    # Inside a distribution made of others, such as the components of a mixture.
    _, draw = node.outputs
    batch_ndim = draw.type.ndim - op.ndim_supp
    batch_roles: list[Role] = []
    for x, role, core_ndim in zip(op.dist_params(node), roles[2:], op.ndims_params, strict=True):
        if isinstance(role, Rows):
            batch_roles.append(Rows(role.axis + batch_ndim - x.type.ndim + core_ndim, role.records))
    rows = common_rows(node, batch_roles)
    if rows.axis >= batch_ndim:
        raise mixes(node, "draws different records together")
    return [Fixed(), rows]
