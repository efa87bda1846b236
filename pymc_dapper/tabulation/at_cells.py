"""Graphs with a row for each record, rewritten with a row for each cell of a table.

Sums over some of the records are first written as sums over all: ``x[where].sum()`` has a term for
each selected record. A table needs a term for each record, which is zero for the others.

A cell is a distinct row of a record's public data (covariates, groups, answers) together with
values of its variables. Arrays with a row for each record are never computed.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Variable, ancestors
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.basic import Alloc, ARange
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor, Subtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.errors import NotAdditiveError, UnknownOperationError
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import dependent_variables
from pymc_dapper.records.reading.roles import Fixed, Role, Rows
from pymc_dapper.records.reading.rows_of_others import for_others, not_separate, with_length
from pymc_dapper.records.reading.rules import follow_records
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

    def _rows(self, x: Variable, axis: int) -> TensorVariable:
        """Return a public graph at the cells, from the arrays that it is computed from."""
        if (x, axis) not in self._public:
            self._public[x, axis] = self._public_rows(x, axis)
        return self._public[x, axis]

    def _public_rows(self, x: Variable, axis: int) -> TensorVariable:
        node, n = x.owner, self._n
        if x.type.shape[axis] != n:
            raise TabulationError(f"{x} has no entry for each record along its axis {axis}")
        if node is None:
            return self._leaf(x, axis)
        if isinstance(node.op, ARange):
            raise TabulationError("records are distinguished by their row numbers")
        if isinstance(node.op, Alloc) and n not in node.inputs[0].type.shape:
            return pt.alloc(node.inputs[0], *with_length(node.inputs[1:], axis, self._n_cells))
        of_each = [y for y in node.inputs if n in getattr(y.type, "shape", ())]
        axes = {y: y.type.shape.index(n) for y in of_each}
        try:
            # This comes before the arrays are followed further: they may be refused there.
            role, _ = for_others(x, {y: y for y in axes}, lambda *_: None, axes)
            if role.axis != axis:
                raise not_separate(node)
        except (NotAdditiveError, UnknownOperationError) as error:
            if known_value(x) is None:
                raise TabulationError(f"{_shown(x)} may mix records: {error}") from None
            return self._leaf(x, axis)
        at = {y: self._rows(y, k) for y, k in axes.items()}
        return for_others(x, at, lambda *_: None, axes)[1]


def _shown(x: Variable) -> str:
    return f"'{x.name}'" if x.name else "what they follow"


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
