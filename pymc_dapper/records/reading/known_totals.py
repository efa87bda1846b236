"""Exactly known sums over records: if they don't hold, the log-density is minus infinity.

Sums over records are treated like counts, so the walk through a table's factors finds the
equations.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor import scalar as ps
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.rebuild import dependent_variables, rebuild, with_inputs
from pymc_dapper.graphs.terms.equations import is_minus_infinity, requires
from pymc_dapper.graphs.terms.linear import constant_value
from pymc_dapper.graphs.terms.roles import LinearEntries
from pymc_dapper.graphs.terms.walk import CountWalk
from pymc_dapper.records.reading.factors import AdditiveFactor, RecordSum


@dataclass(frozen=True)
class KnownTotals:
    """Linear functions of sums over records that are known to be zero."""

    factors: tuple[str, ...]
    """For each equation, the name of its factor."""
    matrix: np.ndarray
    """Shape (m, d): their coefficients on all sums over records, flattened and joined."""
    offset: TensorVariable
    """Shape (m,): the constant of each equation, minus the known total."""
    tolerances: np.ndarray
    """Shape (m,): the tolerance of each equation."""

    def only(self, chosen: np.ndarray) -> "KnownTotals":
        """Choose some of them, by a vector of bool."""
        factors = tuple(name for name, kept in zip(self.factors, chosen, strict=True) if kept)
        offset = self.offset[np.flatnonzero(chosen)]
        return KnownTotals(factors, self.matrix[chosen], offset, self.tolerances[chosen])

    def single_sums(self) -> list[int]:
        """Return the sums that are known individually, as columns of the matrix."""
        is_in = self.matrix[np.count_nonzero(self.matrix, axis=1) == 1] != 0
        return np.flatnonzero(is_in.any(axis=0)).tolist()


def find_known_totals(
    factors: Sequence[AdditiveFactor], sums: Sequence[RecordSum]
) -> KnownTotals | None:
    """Find all equations on ``sums`` that factors state; None if there are none.

    Conditions that aren't equations are left out.
    """
    totals = [sum_.total for sum_ in sums]
    if any(None in total.type.shape for total in totals):
        return None
    found: list[tuple[str, LinearEntries, float]] = []
    for factor in factors:
        for tolerance in _tolerances(factor.log_density, totals):
            graph = _with_equalities(factor.log_density, totals, tolerance)
            role = CountWalk(totals, {}).follow(graph)
            found += [(factor.name, rows, tolerance) for rows in requires(role)]
    if not found:
        return None
    n_equations = [rows.matrix.shape[0] for _, rows, _ in found]
    names, all_rows, tolerances = zip(*found, strict=True)
    return KnownTotals(
        factors=tuple(np.repeat(names, n_equations).tolist()),
        matrix=np.vstack([rows.matrix.toarray() for rows in all_rows]),
        offset=pt.concatenate([rows.offset for rows in all_rows]),
        tolerances=np.repeat(tolerances, n_equations),
    )


def _tolerances(graph: TensorVariable, totals: Sequence[TensorVariable]) -> list[float]:
    """Return the tolerances with which sums are compared to anything; 0 for equalities."""
    dependent = dependent_variables(totals, [graph])
    compared = (node for node in io_toposort([], [graph]) if node.outputs[0] in dependent)
    found = {_tolerance(node) for node in compared}
    return sorted(tolerance for tolerance in found if tolerance is not None)


def _tolerance(node: Apply) -> float | None:
    """Return the limit of a difference's size, if it is compared with one; 0 for an equality."""
    if isinstance(node.op, Elemwise):
        if isinstance(node.op.scalar_op, ps.EQ | ps.NEQ):
            return 0.0
        if isinstance(node.op.scalar_op, ps.LT | ps.LE):
            size, limit = node.inputs
            most, is_size = constant_value(limit), size.owner
            if most is not None and is_size is not None and isinstance(is_size.op, Elemwise):
                return float(np.max(most)) if isinstance(is_size.op.scalar_op, ps.Abs) else None
    return None


def _with_equalities(
    graph: TensorVariable, totals: Sequence[TensorVariable], tolerance: float
) -> TensorVariable:
    """Write |difference| < tolerance as difference == 0, each condition in its own choice.

    If a tolerance is given, plain equalities are changed: they are found without a tolerance.
    """

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        found = _tolerance(node)
        if found == tolerance > 0:
            [difference] = inputs[0].owner.inputs
            return [pt.eq(difference, 0)]
        if found == 0 and tolerance > 0:
            apart = pt.gt(pt.abs(inputs[0] - inputs[1]), 0)
            return [apart if isinstance(node.op.scalar_op, ps.NEQ) else ~apart]
        if isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, ps.Switch):
            return [_one_by_one(*inputs)]
        return with_inputs(node, inputs)

    return rebuild([graph], {total: total for total in totals}, replace_node)[0]


def _one_by_one(condition: Variable, yes: Variable, no: Variable) -> Variable:
    """Write conditions that must all hold as nested choices."""
    node = condition.owner
    if node is not None and isinstance(node.op, Elemwise):
        for joint, impossible in ((ps.AND, no), (ps.OR, yes)):
            if isinstance(node.op.scalar_op, joint) and is_minus_infinity(impossible):
                possible = yes if joint is ps.AND else no
                for each in node.inputs:
                    branches = (possible, no) if joint is ps.AND else (yes, possible)
                    possible = _one_by_one(each, *branches)
                return possible
    return pt.switch(condition, yes, no)
