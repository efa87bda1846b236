"""What records contribute at each of few values, where it depends on nothing else of theirs."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.basic import Join
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.subtensor import AdvancedSubtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.reading.errors import NotAdditiveError, UnknownOperationError
from pymc_dapper.reading.graphs import dependent_variables
from pymc_dapper.reading.operations import follow_records, known_value
from pymc_dapper.reading.roles import Fixed, Role, Rows


def rows_by_value(
    contributions: TensorVariable, records: Sequence[TensorVariable], values: np.ndarray
) -> TensorVariable | None:
    """Evaluate what records contribute with a record at each value, in the place of all records.

    Parameters
    ----------
    contributions : TensorVariable, shape (n, ...)
        What each record contributes to a sum.
    records : sequence of TensorVariable
        Value variables of the records, each of shape (n,).
    values : ndarray of int, shape (k, number of variables)
        All values that a record can take.

    Returns
    -------
    TensorVariable, shape (k, ...), or None
        None if records of the same value may contribute differently, as with a covariate.
    """
    dependent = dependent_variables(records, [contributions])
    roles: dict[Variable, Role] = {record: Rows(0) for record in records}
    at: dict[Variable, Variable] = {
        record: pt.constant(column.astype(record.dtype))
        for record, column in zip(records, values.T, strict=True)
    }
    for node in io_toposort([], [contributions]):
        if dependent.isdisjoint(node.outputs):
            continue
        inputs = [roles.get(x, Fixed()) for x in node.inputs]
        try:
            role, *others = follow_records(node.op, node, inputs)
        except (NotAdditiveError, UnknownOperationError):
            return None
        if others or not _by_value_only(node, role, inputs):
            return None
        roles[node.outputs[0]] = role
        new = node.clone_with_new_inputs([at.get(x, x) for x in node.inputs], strict=False)
        at[node.outputs[0]] = new.outputs[0]
    rows = at.get(contributions)
    known = isinstance(rows, TensorVariable) and None not in rows.type.shape
    return rows if known else None


def _by_value_only(node: Apply, role: Role, inputs: Sequence[Role]) -> bool:
    """Whether an operation does the same to all records, whatever their number."""
    if not isinstance(role, Rows) or role.records is not None:
        return False
    others = [x for x, given in zip(node.inputs, inputs, strict=True) if isinstance(given, Fixed)]
    match node.op:
        case Elemwise():
            return all(x.type.shape[role.axis] == 1 for x in others)
        case DimShuffle() | CAReduce():
            return True
        case Join():
            return not others
        case AdvancedSubtensor():
            # A public table that is looked up by records, and by nothing else.
            return others == node.inputs[:1]
    return False


def value_index(records: Sequence[TensorVariable], values: np.ndarray) -> TensorVariable:
    """Say which of the values each record has.

    Parameters
    ----------
    records : sequence of TensorVariable of int, each of shape (n,)
        The records.
    values : ndarray of int, shape (k, number of variables)
        All values that a record can take: a product of ranges, the last running fastest.

    Returns
    -------
    TensorVariable of uint8, shape (n,)
        The index of each record's value, and k where it isn't among them.
    """
    index: TensorVariable = pt.constant(0)
    outside: list[TensorVariable] = []
    for record, low, high in zip(records, values[0], values[-1], strict=True):
        index = index * (high - low + 1) + (record - low)
        outside += [pt.lt(record, low), pt.gt(record, high)]
    return pt.switch(reduce(pt.or_, outside), len(values), index).astype("uint8")


def differing_columns(table: TensorVariable) -> TensorVariable:
    """Say in which columns each row of a table may differ from each other row.

    Parameters
    ----------
    table : TensorVariable, shape (k, d)
        The table. Where it isn't constant, all columns of different rows may differ.

    Returns
    -------
    TensorVariable of unsigned int, shape (k * k, width)
        As :class:`pymc_dapper.kernels.rows.Changes` has it.
    """
    n_rows, n_columns = table.type.shape
    known = known_value(table)
    if known is None:
        differ = np.repeat(~np.eye(n_rows, dtype=bool)[:, :, None], n_columns, axis=2)
    else:
        differ = known[:, None] != known[None]
    columns = np.zeros((n_rows, n_rows, 1 + n_columns), dtype="uint32")
    columns[:, :, 0] = differ.sum(axis=2)
    # A stable sort puts the columns that differ first, in their order.
    columns[:, :, 1:] = np.argsort(~differ, axis=2, kind="stable")
    width = 1 + columns[:, :, 0].max()
    return pt.constant(columns[:, :, :width].reshape(n_rows**2, width))
