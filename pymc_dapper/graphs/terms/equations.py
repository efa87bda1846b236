"""What a factor requires exactly: linear sums of counts that are zero, or else it is -inf."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor import scalar as ps
from pytensor.graph.basic import Apply, Variable

from pymc_dapper.graphs import ops
from pymc_dapper.graphs.terms import linear
from pymc_dapper.graphs.terms.roles import (
    Entrywise,
    Fixed,
    Linear,
    LinearEntries,
    Mixed,
    Part,
    Reduced,
    Role,
)


def equality(
    node: Apply, roles: Sequence[Role], shape: tuple[int, ...]
) -> tuple[LinearEntries, bool] | None:
    """Return linear sums, and whether a condition holds where they are zero, or elsewhere."""
    scalar_op = ops.scalar_of(node)
    if isinstance(scalar_op, ps.EQ | ps.NEQ) and all(
        isinstance(role, Fixed | Linear) for role in roles
    ):
        a, b = node.inputs
        difference = (a.astype("float64") - b.astype("float64")).owner
        in_float = [
            Linear(role.shape, role.matrix, role.offset.astype("float64"))
            if isinstance(role, Linear)
            else role
            for role in roles
        ]
        role = linear.elemwise(difference, in_float, shape)
        assert isinstance(role, Linear)
        return LinearEntries(role.matrix, role.offset.ravel()), isinstance(scalar_op, ps.EQ)
    if isinstance(roles[0], Entrywise) and roles[0].equality is not None:
        rows, if_zero = roles[0].equality
        if isinstance(scalar_op, ps.Cast | ps.Identity):
            return rows, if_zero
        if isinstance(scalar_op, ps.Invert):
            return rows, not if_zero
        if isinstance(scalar_op, ps.Switch) and _is_indicator(node):
            return rows, if_zero
    return None


def required(node: Apply, entries: Sequence[Role]) -> tuple[LinearEntries, ...]:
    """Return what must be zero, or else an operation's result has an entry of -inf."""
    match ops.scalar_of(node):
        case ps.Add() | ps.Cast() | ps.Identity():
            return tuple(rows for each in entries for rows in requires(each))
        case ps.Sub():
            return requires(entries[0])
        case ps.Log():
            return _equalities(entries[0], if_true=True)
        case ps.Mul() | ps.TrueDiv():
            for k, each in enumerate(entries):
                if is_positive_scaling(node, k):
                    return requires(each)
        case ps.Switch():
            impossible = [is_minus_infinity(branch) for branch in node.inputs[1:]]
            if sum(impossible) == 1:
                where = impossible.index(True)
                conditions = _equalities(entries[0], if_true=where == 1)
                return (*conditions, *requires(entries[2 - where]))
    return ()


def still_required(node: Apply, roles: Sequence[Role]) -> tuple[LinearEntries, ...]:
    """Return the same for an operation whose result can't be split into terms."""
    match ops.action_of(node.op, node):
        case _ if ops.scalar_of(node) is not None:
            return required(node, roles)
        case ops.Keeps() | ops.Moves(all=True, inputs=[0]) | ops.Reduces(by=ps.Add()):
            return requires(roles[0])
    return ()


def requires(role: Role) -> tuple[LinearEntries, ...]:
    """Return what must be zero, or else the sum of a variable is -inf."""
    if isinstance(role, Entrywise | Mixed):
        return role.requires
    if isinstance(role, Reduced) and role.kind == "add":
        return tuple(rows for part in role.parts for rows in part.terms.requires)
    return ()


def _equalities(condition: Role, *, if_true: bool) -> tuple[LinearEntries, ...]:
    """Return what is zero if a condition is true everywhere, or false everywhere."""
    if isinstance(condition, Entrywise):
        terms = [condition]
    elif isinstance(condition, Reduced) and condition.kind == ("and" if if_true else "or"):
        terms = [part.terms for part in condition.parts]
    else:
        return ()
    known = [each.equality for each in terms if each.equality is not None]
    return tuple(rows for rows, if_zero in known if if_zero == if_true)


def _is_indicator(node: Apply) -> bool:
    """Whether an operation chooses between a positive number and zero."""
    yes, no = (linear.constant_value(branch) for branch in node.inputs[1:])
    return yes is not None and no is not None and bool(np.all(yes > 0) and not np.any(no))


def is_positive_scaling(node: Apply, place: int) -> bool:
    """Whether an operation multiplies one of its inputs by positive constants."""
    if isinstance(ops.scalar_of(node), ps.TrueDiv) and place != 0:
        return False
    others = [linear.constant_value(x) for k, x in enumerate(node.inputs) if k != place]
    return all(value is not None and bool(np.all(value > 0)) for value in others)


def says_only_what_is_required(terms: Entrywise) -> bool:
    """Whether terms are zero wherever they aren't -inf."""
    node = terms.function.owner
    if len(terms.requires) != 1 or node is None:
        return False
    return isinstance(ops.scalar_of(node), ps.Switch) and all(
        linear.constant_value(branch) is not None for branch in node.inputs[1:]
    )


def is_minus_infinity(x: Variable) -> bool:
    """Whether a variable is minus infinity for all counts."""
    value = linear.constant_value(x)
    return value is not None and bool(np.all(np.isneginf(value)))


def hard(part: Part, *, impossible_if: bool) -> Part:
    """Turn a condition into terms that are 0 or -inf."""
    terms = part.terms
    zero, minus_infinity = np.asarray(0.0), np.asarray(-np.inf)
    branches = (minus_infinity, zero) if impossible_if else (zero, minus_infinity)
    function = pt.switch(terms.function, *branches)
    requires: tuple[LinearEntries, ...] = ()
    if terms.equality is not None and terms.equality[1] != impossible_if:
        requires = (terms.equality[0],)
    both = Entrywise(terms.shape, function, terms.linear, terms.fixed, requires=requires)
    return Part(both, part.targets)
