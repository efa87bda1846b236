"""Rules for indexing: the effect of look-ups, selections and assignments on the record axis."""

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Apply, Variable
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
    indices_from_subtensor,
)
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.known import known_value
from pymc_dapper.records.reading.roles import Fixed, Role, Rows, SumOverRecords
from pymc_dapper.records.reading.rules import (
    common_rows,
    follow_records,
    mixes,
    order_of,
    single_record,
)


@follow_records.register(Subtensor)
def _slice(op: Subtensor, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    x, *index_inputs = node.inputs
    rows = roles[0]
    if not isinstance(rows, Rows) or any(isinstance(role, Rows) for role in roles[1:]):
        raise mixes(node, "takes a slice whose place depends on a record")
    indices = indices_from_subtensor(index_inputs, op.idx_list)
    axis = rows.axis - sum(not isinstance(index, slice) for index in indices[: rows.axis])
    if rows.axis >= len(indices) or indices[rows.axis] == slice(None):
        return [Rows(axis, rows.records)]
    if not isinstance(indices[rows.axis], slice):
        return [single_record(node.outputs[0], order_of(x, rows)[indices[rows.axis]])]
    return [Rows(axis, order_of(x, rows)[indices[rows.axis]])]


@follow_records.register(AdvancedSubtensor)
def _look_up(op: AdvancedSubtensor, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    table, *index_inputs = node.inputs
    indices = indices_from_subtensor(index_inputs, op.idx_list)
    role_of = dict(zip(node.inputs, roles, strict=True))
    advanced, ndim, start = index_axes(indices)
    by_index = _rows_of_indices(node, indices, advanced, role_of)

    rows = role_of[table]
    if not isinstance(rows, Rows):
        # A public table looked up by records.
        assert by_index is not None
        return [Rows(start + by_index.axis, by_index.records)]
    if rows.axis >= len(indices) or indices[rows.axis] == slice(None):
        # The same columns of each record.
        if by_index is not None:
            raise mixes(node, "looks up all records by the value of each")
        kept_before = sum(k not in advanced for k in range(rows.axis))
        return [Rows(kept_before + (ndim if start <= kept_before else 0), rows.records)]
    if rows.axis not in advanced or isinstance(role_of.get(indices[rows.axis], Fixed()), Rows):
        raise mixes(node, "looks up one record by the value of another")
    # Records picked by a public index; where it is 0, 1, ..., n - 1, each record's own entry.
    picked = _pick(node, order_of(table, rows), indices[rows.axis], ndim)
    if by_index is not None:
        picked = common_rows(node, [picked, by_index])
    return [Rows(start + picked.axis, picked.records)]


@follow_records.register(IncSubtensor)
def _fill_slice(op: IncSubtensor, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    buffer, values, *index_inputs = node.inputs
    if any(isinstance(role, Rows) for role in roles[2:]):
        raise mixes(node, "fills in a slice whose place depends on a record")
    indices = indices_from_subtensor(index_inputs, op.idx_list)
    buffer_role, value_role = roles[:2]
    if isinstance(value_role, Rows):
        # Where the values' record axis lies in the buffer.
        dropped = [k for k, index in enumerate(indices) if not isinstance(index, slice)]
        axes = [k for k in range(buffer.type.ndim) if k not in dropped]
        axis = axes[value_role.axis - values.type.ndim]
        value_role = Rows(axis, value_role.records)
    rows = common_rows(node, [buffer_role, value_role])
    if rows.axis < len(indices) and indices[rows.axis] != slice(None):
        raise mixes(node, "fills in some of the records")
    return [rows]


@follow_records.register(AdvancedIncSubtensor)
def _fill(op: AdvancedIncSubtensor, node: Apply, roles: Sequence[Role]) -> Sequence[Role]:
    buffer, values, *index_inputs = node.inputs
    indices = indices_from_subtensor(index_inputs, op.idx_list)
    role_of = dict(zip(node.inputs, roles, strict=True))
    advanced, ndim, _ = index_axes(indices)
    buffer_role, value_role = role_of[buffer], role_of[values]
    by_index = _rows_of_indices(node, indices, advanced, role_of)
    if isinstance(value_role, Rows):
        # Values have the last axes of what the indices pick.
        before = ndim + buffer.type.ndim - len(advanced) - values.type.ndim
        value_role = Rows(before + value_role.axis, value_role.records)
    found: list[Role] = [value_role, *([by_index] if by_index else [])]

    # buffer[0, 1, ..., n - 1 | columns chosen by each record] = values
    identity = [
        k
        for k in advanced
        if isinstance(role_of.get(indices[k], Fixed()), Fixed)
        and (length := buffer.type.shape[k]) is not None
        and _is_identity(indices[k], length)
    ]
    if not identity and len(advanced) == len(indices) and isinstance(buffer_role, Fixed):
        return [_accumulate(op, node, indices, found)]
    if len(identity) != 1 or len(advanced) != len(indices) or advanced[0] != 0:
        raise mixes(node, "fills in some of the records")
    [axis] = identity
    found.append(_pick(node, pt.arange(buffer.type.shape[axis]), indices[axis], 1))
    if isinstance(buffer_role, Rows):
        found.append(Rows(buffer_role.axis - axis, buffer_role.records))
    return [Rows(axis, common_rows(node, found).records)]


def _accumulate(
    op: AdvancedIncSubtensor, node: Apply, indices: Sequence[TensorVariable], found: Sequence[Role]
) -> SumOverRecords:
    """Add each record's value to the entry of the buffer at its indices."""
    buffer, values, *_ = node.inputs
    n_indices, ndim = len(indices), buffer.type.ndim
    values = pt.atleast_Nd(values, n=1 + ndim - n_indices)
    rows = common_rows(node, found)
    once = op.set_instead_of_inc or op.ignore_duplicates
    if once or any(index.type.ndim != 1 for index in indices) or rows.axis != 0:
        raise mixes(node, "fills in some of the records")
    of_each = [*indices, values] if isinstance(found[0], Rows) else indices
    if len({x.type.shape[0] == 1 for x in of_each}) > 1:
        raise mixes(node, "repeats the only record")
    at = []
    for k, index in enumerate(indices):
        length = buffer.type.shape[k]
        entries = pt.arange(buffer.shape[k]) if length is None else pt.constant(np.arange(length))
        counted = pt.switch(index < 0, index + buffer.shape[k], index)  # -1 is the last
        axes = [0, *(1 if axis == k else "x" for axis in range(ndim))]
        at.append(pt.eq(counted[:, None], entries).dimshuffle(axes))
    # Entry by entry, so that a block of records can be computed.
    each = pt.expand_dims(values, tuple(range(1, 1 + n_indices)))
    nothing = pt.zeros(buffer.shape[n_indices:], dtype=values.dtype)
    terms = pt.switch(reduce(pt.and_, at), each, nothing).astype(node.outputs[0].dtype)
    before = known_value(buffer)
    offset = None if before is not None and not before.any() else buffer
    return SumOverRecords(terms, rows.records, offset=offset)


def index_axes(indices: Sequence) -> tuple[list[int], int, int]:
    """Say which indices are arrays, how many axes these have, and where NumPy puts them.

    In place if the arrays are adjacent, else first.
    """
    advanced = [k for k, index in enumerate(indices) if isinstance(index, TensorVariable)]
    adjacent = advanced[-1] - advanced[0] == len(advanced) - 1
    ndim = max(indices[k].type.ndim for k in advanced)
    return advanced, ndim, advanced[0] if adjacent else 0


def _rows_of_indices(
    node: Apply, indices: Sequence, advanced: Sequence[int], role_of: Mapping[Variable, Role]
) -> Rows | None:
    """Find the record axis among the (broadcast) axes of index arrays that depend on records."""
    _, ndim, _ = index_axes(indices)
    rows: list[Role] = [
        Rows(role.axis + ndim - indices[k].type.ndim, role.records)
        for k in advanced
        if isinstance(role := role_of.get(indices[k], Fixed()), Rows)
    ]
    return common_rows(node, rows) if rows else None


def _is_identity(index: TensorVariable, length: int) -> bool:
    value = known_value(index)
    return value is not None and np.array_equal(value.ravel(), np.arange(length))


def _pick(node: Apply, order: TensorVariable, index: TensorVariable, ndim: int) -> Rows:
    """Return rows selected by a public index array, which must vary along one axis only."""
    long = [k for k, size in enumerate(index.type.shape) if size != 1]
    if len(long) != 1:
        raise mixes(node, "picks records by an index of several dimensions")
    axis = long[0] + ndim - index.type.ndim
    records = order[index.flatten()]
    length = known_value(order.shape[0])
    if length is not None and _is_identity(records, int(length)):
        return Rows(axis)
    return Rows(axis, records)
