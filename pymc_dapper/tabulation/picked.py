"""Sums over some of the records, written as sums over all.

``x[where].sum()`` has a term for each selected record. A table needs a term for each record, which
is zero for the others.
"""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.basic import Alloc
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor, Subtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.errors import NotAdditiveError, UnknownOperationError
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.ops import Keeps, Maps, action_of
from pymc_dapper.graphs.rebuild import dependent_variables, with_inputs
from pymc_dapper.records.reading.roles import Fixed, Role, Rows
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
    spread = _Spread(records, order, n, known=times.max() == 1)
    new = spread.over_all(terms)
    if new is None:
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


class _Spread:
    """Rewrites a graph with a slice for each picked record as one with a slice for each record."""

    def __init__(
        self, records: Sequence[TensorVariable], order: np.ndarray, n: int, *, known: bool
    ):
        self._records, self._order, self._n = records, order, n
        self._known = known  # whether no record was picked twice
        self._roles: dict[Variable, Role] = {x: Rows(0) for x in records}
        self._new: dict[Variable, tuple[TensorVariable, int]] = {}

    def over_all(self, terms: TensorVariable) -> TensorVariable | None:
        """Return the graph, or None if it isn't known to treat records separately."""
        dependent = dependent_variables(list(self._records), [terms])
        for node in io_toposort([], [terms]):
            if dependent.isdisjoint(node.outputs):
                continue
            of_records = [x for x in node.inputs if x in dependent]
            picked = [x in self._new for x in of_records]
            if not any(picked):
                self._follow(node, of_records)
            elif not (all(picked) and self._rewrite(node)):
                return None
        new, axis = self._new.get(terms, (None, 0))
        return new if axis == 0 else None

    def _follow(self, node: Apply, of_records: Sequence[Variable]) -> None:
        """Note roles of variables before the selection; remove selections of the wanted records."""
        if not all(isinstance(self._roles.get(x), Rows) for x in of_records):
            return
        given = [self._roles.get(x, Fixed()) for x in node.inputs]
        try:
            roles = follow_records(node.op, node, given)
        except (NotAdditiveError, UnknownOperationError):
            return
        self._roles.update(zip(node.outputs, roles, strict=True))
        x, role = node.inputs[0], roles[0]
        if not isinstance(node.op, AdvancedSubtensor | Subtensor) or len(node.op.idx_list) != 1:
            return
        whole = given[0]
        if not isinstance(whole, Rows) or whole.axis != 0 or whole.records is not None:
            return
        if isinstance(role, Rows) and role.axis == 0 and role.records is not None:
            records = known_value(role.records)
            if records is not None and np.array_equal(records, self._order):
                self._new[node.outputs[0]] = x, 0

    def _rewrite(self, node: Apply) -> bool:
        given: list[Role] = [
            Rows(self._new[x][1]) if x in self._new else Fixed() for x in node.inputs
        ]
        try:
            roles = follow_records(node.op, node, given)
        except (NotAdditiveError, UnknownOperationError):
            return False
        [output], [role] = node.outputs, roles
        if not isinstance(role, Rows) or role.records is not None:
            return False
        inputs: list[Variable] = []
        for x in node.inputs:
            if x in self._new:
                inputs.append(self._new[x][0])
            elif isinstance(action_of(node.op, node), Maps | Keeps):
                made = self._spread(x, role.axis + x.type.ndim - output.type.ndim)
                if made is None:
                    return False
                inputs.append(made)
            elif len(self._order) in getattr(x.type, "shape", ()):
                return False
            else:
                inputs.append(x)
        [made_output] = with_inputs(node, inputs)
        if made_output.type.shape[role.axis] not in (self._n, None):
            return False
        self._new[output] = made_output, role.axis
        return True

    def _spread(self, x: Variable, axis: int) -> Variable | None:
        """Extend public data of selected records to all, by zeros."""
        if axis < 0 or x.type.shape[axis] == 1:
            return x
        values = known_value(x)
        if values is None or not self._known:
            return None
        of_all = np.zeros((*values.shape[:axis], self._n, *values.shape[axis + 1 :]), values.dtype)
        of_all[(slice(None),) * axis + (self._order,)] = values
        return pt.constant(of_all)
