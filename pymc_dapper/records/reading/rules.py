"""How PyTensor operations act on the record axis: one small rule per operation.

A rule is asked only about nodes with an input that has one slice per record (``Rows``); it says
what the node's outputs are. A sum over the record axis is the boundary between what each record
contributes and what the mechanism does with the total.
"""

from collections.abc import Sequence
from functools import singledispatch
from math import prod

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable, equal_computations
from pytensor.graph.op import Op
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import Add
from pytensor.sparse.basic import dense_from_sparse
from pytensor.sparse.math import Dot as SparseDot
from pytensor.sparse.math import StructuredDot
from pytensor.sparse.type import SparseTensorType
from pytensor.tensor.basic import Alloc, Join, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.extra_ops import CumOp, SearchsortedOp
from pytensor.tensor.math import Argmax, Dot
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.reshape import JoinDims
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.sort import ArgSortOp, SortOp
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.errors import NotAdditiveError, UnknownOperationError
from pymc_dapper.graphs.known import known_size, known_value
from pymc_dapper.graphs.naming import describe
from pymc_dapper.records.reading.roles import Fixed, Role, Rows, SumOverRecords


@singledispatch
def follow_records(op: Op, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    """Say how the outputs of an operation depend on the records.

    Dispatched on the type of ``op``. To teach the reader an operation of your own, register a rule
    for it: ``@follow_records.register(MyOp)``.

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
        If the operation mixes records in another way than by a sum.
    UnknownOperationError
        If there is no rule for the operation.
    """
    raise UnknownOperationError(
        f"no rule says what the operation {describe(node)} does to the record axis. Write the "
        "statistic with other operations, or teach the reader this one with "
        f"`pymc_dapper.reading.follow_records.register({type(op).__name__})`"
    )


def mixes(node: Apply, how: str) -> NotAdditiveError:
    """Say that an operation mixes records in another way than by a sum."""
    return NotAdditiveError(f"the operation {describe(node)} {how}")


def common_rows(node: Apply, roles: Sequence[Role]) -> Rows:
    """Check that all inputs with a slice per record have them on the same axis, in the same order.

    Raises
    ------
    NotAdditiveError
        If they haven't.
    """
    first, *others = (role for role in roles if isinstance(role, Rows))
    for other in others:
        if other.axis != first.axis or not _same_order(first.records, other.records):
            raise mixes(node, "combines different records with each other")
    return first


def single_record(value: TensorVariable, record: TensorVariable) -> SumOverRecords:
    """Take what depends on a single record as a sum over all, to which others add nothing."""
    return SumOverRecords(value[None], record[None])


def _check_not_repeated(node: Apply, length: int | None, axis: int) -> None:
    """Check that a single record isn't broadcast to many entries."""
    if length == 1 and node.outputs[0].type.shape[axis] != 1:
        raise mixes(node, "repeats the only record")


def _same_order(a: TensorVariable | None, b: TensorVariable | None) -> bool:
    if a is None or b is None:
        return a is b
    return equal_computations([a], [b])


@follow_records.register(Elemwise)
def _elemwise(op: Elemwise, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    # All inputs have as many axes as the output; one without the record axis has length 1 there.
    rows = common_rows(node, roles)
    for x, role in zip(node.inputs, roles, strict=True):
        if isinstance(role, Rows):
            _check_not_repeated(node, x.type.shape[rows.axis], rows.axis)
    return [rows] * len(node.outputs)


@follow_records.register(DimShuffle)
def _dimshuffle(op: DimShuffle, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    rows = common_rows(node, roles)
    if rows.axis not in op.new_order:
        return [
            single_record(
                node.outputs[0], (pt.arange(1) if rows.records is None else rows.records)[0]
            )
        ]
    return [Rows(op.new_order.index(rows.axis), rows.records)]


@follow_records.register(CAReduce)
def _reduction(op: CAReduce, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    [x], rows = node.inputs, common_rows(node, roles)
    axes = tuple(range(x.type.ndim)) if op.axis is None else op.axis
    if rows.axis not in axes:
        return [Rows(rows.axis - sum(axis < rows.axis for axis in axes), rows.records)]
    if not isinstance(op.scalar_op, Add):
        raise mixes(node, "reduces the record axis by something else than a sum")
    # What one record adds: the same sum over the other axes only, in the dtype of the total.
    [total] = node.outputs
    others = [axis + (axis < rows.axis) for axis in axes if axis != rows.axis]
    contributions = pt.moveaxis(x, rows.axis, 0)
    if others:
        contributions = contributions.sum(axis=others)
    return [SumOverRecords(contributions.astype(total.dtype), rows.records)]


@follow_records.register(Dot)
def _dot(op: Dot, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    """Matrix product of two matrices: keeps the record axis, or sums over it."""
    left, right = node.inputs
    left_axis, right_axis = (role.axis if isinstance(role, Rows) else None for role in roles)
    match left_axis, right_axis:
        case (1, 0) | (1, None) | (None, 0):
            contracted = [Rows(0, role.records) for role in roles if isinstance(role, Rows)]
            terms = (left.T[:, :, None] * right[:, None, :]).astype(node.outputs[0].dtype)
            return [SumOverRecords(terms, common_rows(node, contracted).records)]
        case (0, None):
            return [roles[0]]
        case (None, 1):
            return [roles[1]]
    raise mixes(node, "multiplies different records with each other")


@follow_records.register(StructuredDot)
@follow_records.register(SparseDot)
def _sparse_dot(op: Op, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    """Product with a sparse public matrix: as with a dense one."""
    pairs = zip(node.inputs, roles, strict=True)
    if any(isinstance(role, Rows) and _is_sparse(x) for x, role in pairs):
        raise mixes(node, "takes records as a sparse matrix")
    product = pt.dot(*(_dense(x) if _is_sparse(x) else x for x in node.inputs)).owner
    return follow_records(product.op, product, roles)


def _is_sparse(x: Variable) -> bool:
    return isinstance(x.type, SparseTensorType)


def _dense(x: Variable) -> TensorVariable:
    return pt.constant(x.data.toarray()) if isinstance(x, Constant) else dense_from_sparse(x)


@follow_records.register(Blockwise)
def _blockwise(op: Blockwise, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    batch_ndim = op.batch_ndim(node)
    if batch_ndim == 0:
        return follow_records(op.core_op, node, roles)
    rows = common_rows(node, roles)
    if rows.axis < batch_ndim:
        return [rows] * len(node.outputs)
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
    length = x.type.shape[rows.axis]
    kept = node.outputs[0].type.shape
    if rows.axis != 0 or length is None:
        raise mixes(node, "reshapes the record axis")
    if kept and kept[0] == length:
        return [rows]
    if length == 1 and rows.records is None:
        return [single_record(node.outputs[0], pt.constant(0))]
    size = known_size(x)
    if kept == (size,) and size is not None:  # flattened: each record has several entries in a row
        order = pt.arange(length) if rows.records is None else rows.records
        return [Rows(0, pt.repeat(order, size // length))]
    raise mixes(node, "reshapes the record axis")


@follow_records.register(JoinDims)
def _join_dims(op: JoinDims, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    x, rows = node.inputs[0], common_rows(node, roles)
    first, last = op.start_axis, op.start_axis + op.n_axes
    if rows.axis < first:
        return [rows]
    if rows.axis >= last:
        return [Rows(rows.axis - op.n_axes + 1, rows.records)]
    length, inner = x.type.shape[rows.axis], x.type.shape[rows.axis + 1 : last]
    if rows.axis != first or length is None or None in inner:
        raise mixes(node, "reshapes the record axis")
    order = pt.arange(length) if rows.records is None else rows.records
    return [Rows(first, pt.repeat(order, prod(inner)))]


@follow_records.register(Alloc)
def _alloc(op: Alloc, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    value, *shape = node.inputs
    rows = roles[0]
    if not isinstance(rows, Rows):
        raise mixes(node, "makes an array whose shape depends on a record")
    axis = rows.axis + len(shape) - value.type.ndim
    _check_not_repeated(node, value.type.shape[rows.axis], axis)
    return [Rows(axis, rows.records)]


@follow_records.register(SearchsortedOp)
def _searchsorted(op: SearchsortedOp, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    if not all(isinstance(role, Fixed) for k, role in enumerate(roles) if k != 1):
        raise mixes(node, "sorts values in between records")
    return [roles[1]]


@follow_records.register(CumOp)
@follow_records.register(Argmax)
@follow_records.register(SortOp)
@follow_records.register(ArgSortOp)
def _along_an_axis(op: Op, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    ndim, rows = node.inputs[0].type.ndim, common_rows(node, roles)
    axis = known_value(node.inputs[1]) if len(node.inputs) > 1 else op.axis
    axes = range(ndim) if axis is None else [int(k) % ndim for k in np.atleast_1d(axis)]
    if rows.axis in axes:
        raise mixes(node, "orders or accumulates the records")
    dropped = sum(k < rows.axis for k in axes) if isinstance(op, Argmax) else 0
    return [Rows(rows.axis - dropped, rows.records)] * len(node.outputs)


@follow_records.register(SpecifyShape)
@follow_records.register(TensorFromScalar)
@follow_records.register(ScalarFromTensor)
@follow_records.register(CheckAndRaise)
def _same(op: Op, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    value, *others = roles
    if not all(isinstance(role, Fixed) for role in others):
        raise mixes(node, "checks a condition over all records at once")
    return [value]


@follow_records.register(RandomVariable)
def _draw(op: RandomVariable, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    # Within a distribution made of others, such as the components of a mixture.
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
