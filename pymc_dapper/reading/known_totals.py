"""What a model says of sums over records exactly: without it, the log-density is minus infinity."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor import scalar as ps
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.reading.counts.linear import constant_value
from pymc_dapper.reading.counts.roles import Reduced, Rows
from pymc_dapper.reading.counts.walk import CountWalk
from pymc_dapper.reading.factors import AdditiveFactor, RecordSum

PASSED_ON = (Alloc, CheckAndRaise, DimShuffle, Reshape, SpecifyShape)
"""Operations that aren't finite where their first input isn't."""


@dataclass(frozen=True)
class KnownTotals:
    """Linear functions of sums over records that are known to be zero.

    Attributes
    ----------
    factors : tuple of str
        Name of the factor that says so, for each.
    matrix : ndarray, shape (m, d)
        Their coefficients, for all sums over records that the model has, flattened and joined.
    offset : TensorVariable, shape (m,)
        What is to be added: minus the totals that are known.
    tolerances : ndarray, shape (m,)
        Up to how much they are known.
    """

    factors: tuple[str, ...]
    matrix: np.ndarray
    offset: TensorVariable
    tolerances: np.ndarray

    def only(self, chosen: np.ndarray) -> "KnownTotals":
        """Choose some of them, by a vector of bool."""
        factors = tuple(name for name, kept in zip(self.factors, chosen, strict=True) if kept)
        offset = self.offset[np.flatnonzero(chosen)]
        return KnownTotals(factors, self.matrix[chosen], offset, self.tolerances[chosen])


def find_known_totals(
    factors: Sequence[AdditiveFactor], sums: Sequence[RecordSum]
) -> KnownTotals | None:
    """Find what a model's log-density says of sums over records exactly.

    Parameters
    ----------
    factors : sequence of AdditiveFactor
        The factors that are functions of sums.
    sums : sequence of RecordSum
        All sums that they depend on.

    Returns
    -------
    KnownTotals or None
        All such equations; None if there are none. Conditions of other kinds are left out.
    """
    totals = [sum_.total for sum_ in sums]
    if any(None in total.type.shape for total in totals):
        return None
    found: list[tuple[str, Rows, float]] = []
    for factor in factors:
        for condition in _conditions(factor.log_density):
            if set(ancestors([condition], blockers=totals)).isdisjoint(totals):
                continue
            condition, tolerance = _without_tolerance(condition)
            walk = CountWalk(totals, {})
            hard = pt.switch(condition, np.asarray(0.0), np.asarray(-np.inf)).sum()
            role = walk.follow(hard)
            if not isinstance(role, Reduced) or role.kind != "add":
                continue
            for part in role.parts:
                found += [(factor.name, rows, tolerance) for rows in part.terms.requires]
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


def _conditions(graph: Variable) -> Iterator[TensorVariable]:
    """Go through conditions without which a log-density is minus infinity."""
    node = graph.owner
    if node is None:
        return
    if isinstance(node.op, PASSED_ON) or (
        isinstance(node.op, CAReduce) and isinstance(node.op.scalar_op, ps.Add)
    ):
        yield from _conditions(node.inputs[0])
    elif isinstance(node.op, Elemwise):
        match node.op.scalar_op:
            case ps.Add():
                for x in node.inputs:
                    yield from _conditions(x)
            case ps.Sub() | ps.Cast() | ps.Identity():
                yield from _conditions(node.inputs[0])
            case ps.Second():
                yield from _conditions(node.inputs[1])
            case ps.Mul():
                # Of a constant above zero and a log-density.
                others = [x for x in node.inputs if not _is_positive(x)]
                if len(others) == 1:
                    yield from _conditions(others[0])
            case ps.Log():
                yield from _all_of(_as_condition(node.inputs[0]))
            case ps.Switch():
                condition, yes, no = node.inputs
                if _is_minus_infinity(no):
                    yield from _all_of(condition)
                    yield from _conditions(yes)
                elif _is_minus_infinity(yes):
                    yield from _all_of(pt.invert(condition))
                    yield from _conditions(no)


def _all_of(condition: Variable | None) -> Iterator[TensorVariable]:
    """Take a condition apart into those that all have to hold."""
    node = None if condition is None else condition.owner
    if condition is None or condition.type.dtype != "bool":
        return
    op, inputs = (None, []) if node is None else (node.op, node.inputs)
    if isinstance(op, PASSED_ON):
        yield from _all_of(inputs[0])
    elif isinstance(op, Elemwise | CAReduce) and isinstance(op.scalar_op, ps.AND):
        for x in inputs:
            yield from _all_of(x)
    else:
        yield condition


def _as_condition(x: Variable) -> Variable | None:
    """Return the condition of which this is the indicator, 1 where it holds and 0 elsewhere."""
    while x.type.dtype != "bool":
        node = x.owner
        if node is None or not isinstance(node.op, Elemwise | DimShuffle):
            return None
        if isinstance(node.op, Elemwise):
            scalar_op = node.op.scalar_op
            if isinstance(scalar_op, ps.Switch):
                condition, yes, no = node.inputs
                zero = constant_value(no)
                indicates = zero is not None and not np.any(zero) and _is_positive(yes)
                return condition if indicates else None
            if not isinstance(scalar_op, ps.Cast | ps.Identity):
                return None
        x = node.inputs[0]
    return x


def _without_tolerance(condition: TensorVariable) -> tuple[TensorVariable, float]:
    """Read |difference| < tolerance as difference == 0, and return the tolerance."""
    node = condition.owner
    if node is not None and isinstance(node.op, Elemwise) and len(node.inputs) == 2:
        small, large = node.inputs
        if isinstance(node.op.scalar_op, ps.GT | ps.GE):
            small, large = large, small
        elif not isinstance(node.op.scalar_op, ps.LT | ps.LE):
            return condition, 0.0
        tolerance, absolute = constant_value(large), small.owner
        if (
            tolerance is not None
            and absolute is not None
            and isinstance(absolute.op, Elemwise)
            and isinstance(absolute.op.scalar_op, ps.Abs)
        ):
            return pt.eq(absolute.inputs[0], 0), float(np.max(tolerance))
    return condition, 0.0


def _is_positive(x: Variable) -> bool:
    value = constant_value(x)
    return value is not None and bool(np.all(value > 0))


def _is_minus_infinity(x: Variable) -> bool:
    value = constant_value(x)
    return value is not None and bool(np.all(np.isneginf(value)))
