"""Sums over some of the records, written as sums over all.

``x[where].sum()`` has a term for each selected record. A table needs a term for each record, which
is zero for the others.
"""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.basic import Alloc
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor, Subtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.errors import NotAdditiveError, UnknownOperationError
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import dependent_variables
from pymc_dapper.records.reading.roles import Fixed, Role, Rows
from pymc_dapper.records.reading.rows_of_others import for_others
from pymc_dapper.records.reading.rules import follow_records


def of_all_records(graph: TensorVariable, records: Sequence[TensorVariable]) -> TensorVariable:
    """Write contributions of selected records as contributions of all records.

    Parameters
    ----------
    graph : TensorVariable, shape (n, ...)
        Contributions in the form of :class:`RecordWalk`.
    records : sequence of TensorVariable, shape (n,)
        The records.

    Returns
    -------
    TensorVariable, shape (n, ...)
        The same without selections; unchanged if it has none, or other ones.
    """
    scattered = _scattered(graph)
    if scattered is None:
        return graph
    terms, order = scattered
    n = records[0].type.shape[0]
    times = np.bincount(order, minlength=n)
    times = times.astype(np.min_scalar_type(times.max()))
    picks = _picks(terms, records, order)
    unpicked = dependent_variables(records, [terms]) - dependent_variables(picks, [terms])
    if any(not unpicked.isdisjoint(x.inputs) for x in io_toposort(list(picks), [terms])):
        return graph
    try:
        role, new = for_others(terms, picks, lambda x, axis: _spread(x, axis, order, times))
    except (NotAdditiveError, UnknownOperationError):
        return graph
    if role.axis != 0 or new.type.shape[0] not in (n, None):
        return graph
    weight = pt.constant(times.reshape((n, *(1,) * (new.type.ndim - 1))))
    # A term that isn't a number at others must not matter.
    return pt.switch(pt.gt(weight, 0), weight * new, 0).astype(graph.dtype)


def _scattered(graph: TensorVariable) -> tuple[TensorVariable, np.ndarray] | None:
    """Return terms and which record each is of, if they are added up so."""
    node = graph.owner
    if node is None or not isinstance(node.op, AdvancedIncSubtensor) or len(node.inputs) != 3:
        return None
    zeros, terms, index = node.inputs
    is_zero = zeros.owner is not None and isinstance(zeros.owner.op, Alloc)
    order = known_value(index)
    if not is_zero or node.op.set_instead_of_inc or order is None or order.ndim != 1:
        return None
    start = known_value(zeros.owner.inputs[0])
    if start is None or np.any(start != 0) or not order.size:
        return None
    return terms, order


def _picks(
    terms: TensorVariable, records: Sequence[TensorVariable], order: np.ndarray
) -> dict[Variable, Variable]:
    """Find selections of the wanted records, and the arrays that they are selected from."""
    dependent = dependent_variables(records, [terms])
    roles: dict[Variable, Role] = {x: Rows(0) for x in records}
    found: dict[Variable, Variable] = {}
    for node in io_toposort([], [terms]):
        of_records = [roles.get(x) for x in node.inputs if x in dependent]
        if not of_records or not all(isinstance(role, Rows) for role in of_records):
            continue
        given = [roles.get(x, Fixed()) for x in node.inputs]
        try:
            made = follow_records(node.op, node, given)
        except (NotAdditiveError, UnknownOperationError):
            continue
        selects = isinstance(node.op, AdvancedSubtensor | Subtensor) and len(node.op.idx_list) == 1
        if selects and _in_order(given[0]) and _has_order(made[0], order):
            found[node.outputs[0]] = node.inputs[0]
        else:
            roles.update(zip(node.outputs, made, strict=True))
    return found


def _in_order(role: Role) -> bool:
    return isinstance(role, Rows) and role.axis == 0 and role.records is None


def _has_order(role: Role, order: np.ndarray) -> bool:
    if not isinstance(role, Rows) or role.axis != 0 or role.records is None:
        return False
    records = known_value(role.records)
    return records is not None and np.array_equal(records, order)


def _spread(x: Variable, axis: int, order: np.ndarray, times: np.ndarray) -> Variable | None:
    """Extend public data of selected records to all, by zeros; not if one was picked twice."""
    values = known_value(x)
    if values is None or times.max() > 1:
        return None
    of_all = np.zeros((*values.shape[:axis], times.size, *values.shape[axis + 1 :]), values.dtype)
    of_all[(slice(None),) * axis + (order,)] = values
    return pt.constant(of_all)
