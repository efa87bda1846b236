"""How PyTensor operations act on the record axis: one small rule per operation.

A rule is asked only about nodes with an input that has one slice per record (``Rows``); it says
what the node's outputs are. A sum over the record axis is the boundary between what each record
contributes and what the mechanism does with the total.
"""

from collections.abc import Callable, Sequence
from functools import singledispatch

import pytensor.tensor as pt
from pymc.logprob.utils import CheckParameterValue
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import Add
from pytensor.tensor.basic import Alloc, Join, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import (
    AdvancedSubtensor,
    Subtensor,
    indices_from_subtensor,
)
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.reading.errors import NotAdditiveError, UnknownOperationError
from pymc_dapper.reading.roles import Fixed, Role, Rows, SumOverRecords

Rule = Callable[[Op, Apply, Sequence[Role]], Sequence[Role]]


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


def describe(node: Apply) -> str:
    """Name an operation as a user would recognise it."""
    named = [f"'{variable.name}'" for variable in (*node.outputs, *node.inputs) if variable.name]
    return f"{node.op} (at {named[0]})" if named else str(node.op)


def _mixes(node: Apply, how: str) -> NotAdditiveError:
    return NotAdditiveError(f"the operation {describe(node)} {how}")


def _normalised(axis: int, ndim: int) -> int:
    return axis + ndim if axis < 0 else axis


@follow_records.register(Elemwise)
def _elemwise(op: Elemwise, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    # All inputs have as many axes as the output; one without the record axis has length 1 there.
    axes = {role.axis for role in roles if isinstance(role, Rows)}
    if len(axes) > 1:
        raise _mixes(node, "compares records with each other")
    return [Rows(*axes)] * len(node.outputs)


@follow_records.register(DimShuffle)
def _dimshuffle(op: DimShuffle, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    [role] = roles
    assert isinstance(role, Rows)
    if role.axis not in op.new_order:
        raise _mixes(node, "drops the record axis")
    return [Rows(op.new_order.index(role.axis))]


@follow_records.register(CAReduce)
def _reduction(op: CAReduce, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    [x] = node.inputs
    [role] = roles
    assert isinstance(role, Rows)
    axes = tuple(range(x.type.ndim)) if op.axis is None else op.axis
    if role.axis not in axes:
        return [Rows(role.axis - sum(axis < role.axis for axis in axes))]
    if not isinstance(op.scalar_op, Add):
        raise _mixes(node, "reduces the record axis by something else than a sum")
    # What one record adds: the same sum over the other axes only, in the dtype of the total.
    [total] = node.outputs
    first = pt.moveaxis(x, role.axis, 0)
    others = [axis + (axis < role.axis) for axis in axes if axis != role.axis]
    contributions = first.sum(axis=others) if others else first
    return [SumOverRecords(contributions.astype(total.dtype))]


@follow_records.register(Subtensor)
def _slice(op: Subtensor, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    role = roles[0]
    if not isinstance(role, Rows) or any(isinstance(index, Rows) for index in roles[1:]):
        raise _mixes(node, "takes a slice whose place depends on a record")
    indices = indices_from_subtensor(node.inputs[1:], op.idx_list)
    if role.axis < len(indices) and indices[role.axis] != slice(None):
        raise _mixes(node, "picks some of the records")
    dropped = sum(not isinstance(index, slice) for index in indices[: role.axis])
    return [Rows(role.axis - dropped)]


@follow_records.register(AdvancedSubtensor)
def _look_up(op: AdvancedSubtensor, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    table, *index_inputs = node.inputs
    indices = indices_from_subtensor(index_inputs, op.idx_list)
    role_of = dict(zip(node.inputs, roles, strict=True))
    advanced = [k for k, index in enumerate(indices) if isinstance(index, TensorVariable)]
    ndim = max(indices[k].type.ndim for k in advanced)
    table_role = role_of[table]
    if isinstance(table_role, Rows):
        return [_look_up_in_rows(node, table_role, indices, advanced, ndim, role_of)]

    # A public table looked up by records: where the index arrays' axes land in the result.
    index_axes = {
        role.axis + ndim - indices[k].type.ndim
        for k in advanced
        if isinstance(role := role_of.get(indices[k], Fixed()), Rows)
    }
    if len(index_axes) != 1:
        raise _mixes(node, "looks up something that depends on several records")
    return [Rows(_start_of_index_axes(indices, advanced) + index_axes.pop())]


def _start_of_index_axes(indices: Sequence, advanced: Sequence[int]) -> int:
    """Where NumPy puts the axes of the index arrays: in their place if adjacent, else first."""
    adjacent = advanced[-1] - advanced[0] == len(advanced) - 1
    return advanced[0] if adjacent else 0


def _look_up_in_rows(
    node: Apply,
    role: Rows,
    indices: Sequence,
    advanced: Sequence[int],
    ndim: int,
    role_of: dict,
) -> Rows:
    """Pick columns of an array that has one row per record, the same columns for each."""
    if any(isinstance(role_of.get(indices[k]), Rows) for k in advanced):
        raise _mixes(node, "looks up one record by the value of another")
    if role.axis in advanced or (role.axis < len(indices) and indices[role.axis] != slice(None)):
        raise _mixes(node, "picks some of the records")
    start = _start_of_index_axes(indices, advanced)
    kept_before = sum(k not in advanced for k in range(role.axis))
    return Rows(kept_before + (ndim if start <= kept_before else 0))


@follow_records.register(Join)
def _join(op: Join, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    axis, *parts = node.inputs
    axes = {role.axis for role in roles[1:] if isinstance(role, Rows)}
    if len(axes) > 1 or not isinstance(axis, Constant):
        raise _mixes(node, "joins arrays that have their records on different axes")
    joined = _normalised(int(axis.data), parts[0].type.ndim)
    if joined in axes:
        raise _mixes(node, "joins arrays along the record axis")
    return [Rows(*axes)]


@follow_records.register(Dot)
def _dot(op: Dot, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    left, right = node.inputs
    return [_matrix_product(node, left, right, *roles)]


@follow_records.register(Blockwise)
def _blockwise(op: Blockwise, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    batch_ndim = op.batch_ndim(node)
    core_ndims = [len(core) for core in op.inputs_sig]
    over_batch = {
        role.axis
        for role, variable in zip(roles, node.inputs, strict=True)
        if isinstance(role, Rows)
    }
    if len(over_batch) == 1 and max(over_batch) < batch_ndim:
        return [Rows(*over_batch)] * len(node.outputs)
    if isinstance(op.core_op, Dot) and batch_ndim == 0:
        left, right = node.inputs
        return [_matrix_product(node, left, right, *roles)]
    raise _mixes(
        node, f"applies a function of {core_ndims}-dimensional arrays across the record axis"
    )


def _matrix_product(
    node: Apply, left: TensorVariable, right: TensorVariable, left_role: Role, right_role: Role
) -> Role:
    """Matrix product of two matrices: keeps the record axis, or sums over it."""
    contracted = [
        isinstance(left_role, Rows) and left_role.axis == 1,
        isinstance(right_role, Rows) and right_role.axis == 0,
    ]
    if any(contracted):
        # A kept axis with records beside a contracted one would pair each record with all others.
        if (isinstance(left_role, Rows) and left_role.axis == 0) or (
            isinstance(right_role, Rows) and right_role.axis == 1
        ):
            raise _mixes(node, "multiplies records with each other")
        contributions = left.T[:, :, None] * right[:, None, :]
        return SumOverRecords(contributions.astype(node.outputs[0].dtype))
    if isinstance(left_role, Rows) and isinstance(right_role, Rows):
        raise _mixes(node, "multiplies records with each other")
    return Rows(0) if isinstance(left_role, Rows) else Rows(1)


@follow_records.register(Shape)
@follow_records.register(Shape_i)
def _shape(op: Shape | Shape_i, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    return [Fixed()]  # the number of records is public


@follow_records.register(Alloc)
def _alloc(op: Alloc, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    value, *shape = node.inputs
    role = roles[0]
    if not isinstance(role, Rows):
        raise _mixes(node, "makes an array whose shape depends on a record")
    return [Rows(role.axis + len(shape) - value.type.ndim)]


@follow_records.register(SpecifyShape)
@follow_records.register(TensorFromScalar)
@follow_records.register(ScalarFromTensor)
def _same(op: Op, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    return [roles[0]]


@follow_records.register(CheckAndRaise)
@follow_records.register(CheckParameterValue)
def _check(op: CheckAndRaise, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    value, *conditions = roles
    if any(isinstance(condition, Rows) for condition in conditions):
        raise _mixes(node, "checks a condition over all records at once")
    return [value]
