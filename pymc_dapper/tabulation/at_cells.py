"""Graphs with a row for each record, rewritten with a row for each cell of a table.

A cell is a distinct row of a record's public data (covariates, groups, answers) together with
values of its variables. Arrays with a row for each record are never computed.
"""

from collections.abc import Callable, Mapping

import pytensor.tensor as pt
from pytensor.graph import Variable, ancestors
from pytensor.tensor.basic import Alloc, ARange
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.errors import NotAdditiveError, UnknownOperationError
from pymc_dapper.graphs.known import known_value
from pymc_dapper.records.reading.rows_of_others import for_others, not_separate, with_length
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
        key = (x, axis)
        if key not in self._public:
            self._public[key] = self._public_rows(x, axis)
        return self._public[key]

    def _public_rows(self, x: Variable, axis: int) -> TensorVariable:
        node, n = x.owner, self._n
        if x.type.shape[axis] != n:
            raise TabulationError(f"{x} has no entry for each record along its axis {axis}")
        if node is None:
            return self._leaf(x, axis)
        if isinstance(node.op, ARange):
            raise TabulationError("records are told apart by their numbers")
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
