"""Equations that a factor requires: linear sums of counts that must be zero, or else it is -inf."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor import scalar as ps
from pytensor.graph import Apply, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.variable import TensorVariable
from scipy import sparse

from pymc_dapper.graphs import ops
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.known import known_value
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

Equalities = tuple[tuple[LinearEntries, bool], ...]
COMPARISONS = (ps.EQ, ps.NEQ, ps.LT, ps.LE)


@dataclass(frozen=True, eq=False)
class KnownTotals:
    """Linear functions of counts, or of sums over records, that are known to be zero."""

    factors: tuple[str, ...]
    """For each equation, the name of its factor."""
    matrix: sparse.csr_array
    """Shape (m, d): their coefficients on all cells, or on all sums, flattened and joined."""
    offset: TensorVariable
    """Shape (m,): the constant of each equation, minus the known total."""
    tolerances: np.ndarray
    """Shape (m,): the tolerance of each equation."""

    @classmethod
    def of(cls, found: Sequence[tuple[str, LinearEntries]], n_columns: int) -> "KnownTotals":
        """Join what factors, given by name, require."""
        n_rows = [rows.matrix.shape[0] for _, rows in found]
        matrices = [sparse.csr_array((0, n_columns)), *(rows.matrix for _, rows in found)]
        return cls(
            tuple(name for (name, _), n in zip(found, n_rows, strict=True) for _ in range(n)),
            sparse.vstack(matrices, format="csr"),
            pt.concatenate([pt.zeros(0), *(rows.offset for _, rows in found)]),
            np.repeat([rows.tolerance for _, rows in found], n_rows),
        )

    def only(self, chosen: np.ndarray) -> "KnownTotals":
        """Choose some of them, by a vector of bool."""
        kept = np.flatnonzero(chosen)
        factors = tuple(self.factors[k] for k in kept)
        return KnownTotals(factors, self.matrix[kept], self.offset[kept], self.tolerances[kept])

    def single_sums(self) -> list[int]:
        """Return the sums that are known individually, as columns of the matrix."""
        is_in = self.matrix.toarray() != 0
        return np.flatnonzero(is_in[is_in.sum(axis=1) == 1].any(axis=0)).tolist()

    def in_python(
        self, model: Model, inputs: Sequence[Variable]
    ) -> Callable[[Sequence[np.ndarray]], np.ndarray]:
        """Make a function of parameters and data, evaluated in Python: the known totals."""
        offset = compile_in_python(model, inputs, [self.offset])
        return lambda given: -np.asarray(offset(*given)[0], dtype=np.float64)


def compares(counts: Sequence[Variable], graph: Variable) -> bool:
    """Whether a graph has a comparison. Without one, it requires no equation."""
    nodes = io_toposort(list(counts), [graph])
    return any(isinstance(ops.scalar_of(node), COMPARISONS) for node in nodes)


def equalities(
    node: Apply,
    roles: Sequence[Role],
    entries: Sequence[Entrywise],
    shape: tuple[int, ...],
    *,
    at_least: bool,
) -> Equalities:
    """Return linear sums that are zero where a condition is true, or where it is false.

    With ``at_least``, conditions may say more than that, or less: another condition beside it, or a
    tolerance.
    """
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
        return ((LinearEntries(role.matrix, role.offset.ravel()), isinstance(scalar_op, ps.EQ)),)
    match scalar_op:
        case ps.Cast() | ps.Identity():
            return entries[0].equalities
        case ps.Switch() if _is_indicator(node):
            return entries[0].equalities
        case ps.Invert():
            return tuple((rows, not if_true) for rows, if_true in entries[0].equalities)
        case ps.AND() | ps.OR() if at_least:
            known = (each for x in entries for each in x.equalities)
            return tuple(each for each in known if each[1] == isinstance(scalar_op, ps.AND))
        case ps.LT() | ps.LE() if at_least:
            return _within(node, entries[0])
    return ()


def _within(node: Apply, size: Entrywise) -> Equalities:
    """Return the linear sum whose size is compared with a constant."""
    limit, of = known_value(node.inputs[1]), size.function.owner
    if limit is None or of is None or size.fixed or len(size.linear) != 1:
        return ()
    [(scalar, rows)] = size.linear.items()
    if not isinstance(ops.scalar_of(of), ps.Abs) or of.inputs != [scalar]:
        return ()
    return ((replace(rows, tolerance=float(np.max(limit))), True),)


def required(node: Apply, entries: Sequence[Role]) -> tuple[LinearEntries, ...]:
    """Return sums that must be zero, or else an operation's result has an entry of -inf."""
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
    """Return sums that must be zero, or else the sum of a variable's entries is -inf."""
    if isinstance(role, Entrywise | Mixed):
        return role.requires
    if isinstance(role, Reduced) and role.by == "add":
        return tuple(rows for part in role.parts for rows in part.terms.requires)
    return ()


def _equalities(condition: Role, *, if_true: bool) -> tuple[LinearEntries, ...]:
    """Return sums that are zero if a condition is true everywhere, or false everywhere."""
    if isinstance(condition, Entrywise):
        terms = [condition]
    elif isinstance(condition, Reduced) and condition.by == ("and" if if_true else "or"):
        terms = [part.terms for part in condition.parts]
    else:
        return ()
    return tuple(rows for each in terms for rows, when in each.equalities if when == if_true)


def _is_indicator(node: Apply) -> bool:
    """Whether an operation chooses between a positive number and zero."""
    yes, no = (known_value(branch) for branch in node.inputs[1:])
    return yes is not None and no is not None and bool(np.all(yes > 0) and not np.any(no))


def is_positive_scaling(node: Apply, place: int) -> bool:
    """Whether an operation multiplies one of its inputs by positive constants."""
    if isinstance(ops.scalar_of(node), ps.TrueDiv) and place != 0:
        return False
    others = [known_value(x) for k, x in enumerate(node.inputs) if k != place]
    return all(value is not None and bool(np.all(value > 0)) for value in others)


def says_only_what_is_required(terms: Entrywise) -> bool:
    """Whether terms are zero wherever they aren't -inf."""
    node = terms.function.owner
    if len(terms.requires) != 1 or node is None:
        return False
    return isinstance(ops.scalar_of(node), ps.Switch) and all(
        known_value(branch) is not None for branch in node.inputs[1:]
    )


def is_minus_infinity(x: Variable) -> bool:
    """Whether a variable is minus infinity for all counts."""
    value = known_value(x)
    return value is not None and bool(np.all(np.isneginf(value)))


def hard(part: Part, *, impossible_if: bool) -> Part:
    """Turn a condition into terms that are 0 or -inf."""
    terms = part.terms
    zero, minus_infinity = np.asarray(0.0), np.asarray(-np.inf)
    branches = (minus_infinity, zero) if impossible_if else (zero, minus_infinity)
    function = pt.switch(terms.function, *branches)
    requires = tuple(rows for rows, if_true in terms.equalities if if_true != impossible_if)
    both = Entrywise(terms.shape, function, terms.linear, terms.fixed, requires=requires)
    return Part(both, part.targets)
