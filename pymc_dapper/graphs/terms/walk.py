"""Walk from the counts through a factor of the log-density, and split the factor into terms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytensor.tensor as pt
from pytensor import scalar as ps
from pytensor.graph import Apply, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.variable import TensorVariable
from scipy import sparse

from pymc_dapper.graphs import ops
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.naming import describe, how_to_teach
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.terms import linear
from pymc_dapper.graphs.terms.equations import (
    equalities,
    hard,
    is_minus_infinity,
    is_positive_scaling,
    required,
    still_required,
)
from pymc_dapper.graphs.terms.roles import (
    Entrywise,
    Fixed,
    Linear,
    LinearEntries,
    Mixed,
    Part,
    Reduced,
    Reduction,
    Role,
    all_indices,
    part_of,
    shaped,
    size,
    take,
    take_values,
)

MOST_ENTRIES = 10_000_000
"""A sum of several terms isn't repeated for each entry of something, if all of them have more."""
REDUCTIONS: dict[type, Reduction] = {ps.Add: "add", ps.OR: "or", ps.AND: "and"}
"""Reductions that are read, by the operation that joins two terms."""


class CountWalk:
    """A walk through graphs from the counts, which records how each variable depends on them.

    Counts are value variables of static shapes; their cells are numbered in this order. ``data``
    has values of shared data, for data that holds indices or coefficients. With ``keeps_fixed``,
    the walk keeps terms that don't depend on counts, with their checks. With ``at_least``, what is
    required may be part of a condition, or hold within a tolerance.
    """

    def __init__(
        self,
        counts: Sequence[TensorVariable],
        data: Mapping[Variable, np.ndarray],
        *,
        keeps_fixed: bool = False,
        at_least: bool = False,
    ):
        self._data, self._keeps_fixed, self._at_least = data, keeps_fixed, at_least
        self._scalars: dict[tuple[Variable, tuple[int, ...]], Variable] = {}
        self.roles: dict[Variable, Role] = {}  # of all that depends on the counts
        # Data whose values became part of the linear structure.
        self.frozen: dict[Variable, np.ndarray] = {}
        shapes = [count.type.shape for count in counts]
        n_cells = sum(size(shape) for shape in shapes)
        identity = sparse.eye_array(n_cells, format="csr")
        zeros, start = cache(pt.zeros), 0
        for count, shape in zip(counts, shapes, strict=True):
            cells = np.arange(start, start + size(shape))
            self.roles[count] = Linear(shape, identity[cells], zeros(shape, dtype=count.dtype))
            start += size(shape)

    def follow(self, graph: TensorVariable) -> Role:
        """Walk to the end of a graph, and return its role."""
        for node in io_toposort([], [graph]):
            if node.outputs[0] in self.roles:
                continue  # already visited for another factor
            roles = [self.role(variable) for variable in node.inputs]
            if all(isinstance(role, Fixed) for role in roles) or ops.only_measures(node):
                continue
            self.roles.update(dict.fromkeys(node.outputs, self._visit(node, roles)))
        return self.role(graph)

    def role(self, variable: Variable) -> Role:
        """Return the role of a visited variable."""
        return self.roles.get(variable, Fixed())

    def known(self, variable: Variable) -> np.ndarray | None:
        """Value of a constant, or of shared data, which is then held fixed; else None."""
        value = known_value(variable)
        if value is not None:
            return value
        constants = {data: pt.constant(value) for data, value in self._data.items()}
        [at_data] = rebuild([variable], constants)
        value = known_value(at_data)
        if value is not None:
            used = [x for x in self._data if rebuild([variable], {x: x.type()}) != [variable]]
            self.frozen.update({x: self._data[x] for x in used})
        return value

    def _visit(self, node: Apply, roles: Sequence[Role]) -> Role:
        for mixed in (role for role in roles if isinstance(role, Mixed)):
            return Mixed(mixed.reason, still_required(node, roles))
        shape = self._shape(node, roles)
        if shape is None or len(node.outputs) > 1:
            return Mixed(_why_mixed(node, shape))
        role: Role | None = None
        match ops.action_of(node.op, node):
            case _ if ops.scalar_of(node) is not None:
                role = self._elemwise(node, roles, shape)
            case ops.Reduces() as action:
                role = self._reduction(node, roles, shape, action)
            case ops.Keeps() if all(isinstance(each, Fixed) for each in roles[1:]):
                role = self._kept(node, roles[0], shape)
            case ops.Moves():
                role = self._moved(node, roles, shape)
            case _:
                role = linear.transform(node, roles, shape, self.known)
        if role is None:
            return Mixed(_why_mixed(node, shape), still_required(node, roles))
        return role

    def _shape(self, node: Apply, roles: Sequence[Role]) -> tuple[int, ...] | None:
        """Shape of a node's output, if known."""
        output = node.outputs[0]
        shape = getattr(output.type, "shape", ())
        if None not in shape:
            return tuple(shape)
        lengths = known_value(pt.as_tensor(output.shape))
        if lengths is not None:
            return tuple(int(length) for length in lengths)
        # A user's operation may not declare its shape: its action determines it.
        shapes = linear.shapes_of_inputs(node, roles)
        if ops.scalar_of(node) is not None and not any(None in each for each in shapes):
            return np.broadcast_shapes(*shapes)
        moved = ops.find_origins(node, shapes, self.known)
        return None if moved is None else moved.numbers.shape

    def _kept(self, node: Apply, role: Role, shape: tuple[int, ...]) -> Role:
        if not self._keeps_fixed or not isinstance(node.op, CheckAndRaise):
            return role
        checked: list[Part] = []
        for part in as_terms(role, self, node.inputs[0]):
            inside = part.terms.shape
            conditions = [self._entries(x, Fixed(), inside) for x in node.inputs[1:]]
            function = node.op(part.terms.function, *(x.function for x in conditions))
            fixed = {scalar: y for x in conditions for scalar, y in x.fixed.items()}
            terms = replace(part.terms, function=function, fixed={**part.terms.fixed, **fixed})
            checked.append(Part(terms, part.targets))
        if isinstance(role, Reduced):
            return Reduced(shape, role.by, tuple(checked))
        return checked[0].terms

    # Elementwise operations -------------------------------------------------------------------

    def _elemwise(self, node: Apply, roles: Sequence[Role], shape: tuple[int, ...]) -> Role | None:
        if any(isinstance(role, Reduced) for role in roles):
            return self._elemwise_of_sums(node, roles, shape)
        role = linear.elemwise(node, roles, shape)
        return role or self._entrywise(node, roles, shape)

    def _entrywise(self, node: Apply, roles: Sequence[Role], shape: tuple[int, ...]) -> Entrywise:
        pairs = zip(node.inputs, roles, strict=True)
        entries = [self._entries(x, role, shape) for x, role in pairs]
        of_counts: dict[Variable, LinearEntries] = {}
        fixed: dict[Variable, TensorVariable] = {}
        for each in entries:
            of_counts.update(each.linear)
            fixed.update(each.fixed)
        return Entrywise(
            shape,
            ops.on_entries(node, [each.function for each in entries]),
            of_counts,
            fixed,
            equalities(node, roles, entries, shape, at_least=self._at_least),
            required(node, entries),
        )

    def _entries(self, x: Variable, role: Role, shape: tuple[int, ...]) -> Entrywise:
        """Read a variable as a function of its entries, broadcast to a shape."""
        if isinstance(role, Entrywise):
            indices = np.broadcast_to(all_indices(role.shape), shape)
            return take(role, indices, shape)
        constant = linear.single_value(x)
        if constant is not None:
            return Entrywise(shape, constant, {}, {})
        scalar = self._scalars.setdefault((x, shape), pt.scalar(dtype=x.type.dtype))
        if isinstance(role, Linear):
            indices = np.broadcast_to(all_indices(role.shape), shape).ravel()
            rows = LinearEntries(role.matrix[indices], take_values(role.offset.ravel(), indices))
            return Entrywise(shape, scalar, {scalar: rows}, {})
        return Entrywise(shape, scalar, {}, {scalar: shaped(x, shape).ravel()})

    # Sums, and conditions on several entries --------------------------------------------------

    def _reduction(
        self, node: Apply, roles: Sequence[Role], shape: tuple[int, ...], action: ops.Reduces
    ) -> Role | None:
        [x], [role] = node.inputs, roles
        by = REDUCTIONS.get(type(action.by))
        if by is None or (by != "add" and x.type.dtype != "bool"):
            return None
        inside = role.shape  # type: ignore[attr-defined]
        kept = [1 if axis in action.axes else length for axis, length in enumerate(inside)]
        targets = np.broadcast_to(all_indices(tuple(kept)), inside).ravel()
        if isinstance(role, Linear):
            return linear.total(node, role, targets, shape)
        reduced = self._reduced(x, role, inside, by)
        if reduced is None:
            return None
        parts = [Part(part.terms, targets[part.targets]) for part in reduced.parts]
        dtype = node.outputs[0].type.dtype
        if x.type.dtype != dtype:  # of truth values or small integers
            parts = [_mapped(part, lambda f: f.astype(dtype)) for part in parts]
        return Reduced(shape, by, tuple(parts))

    def _reduced(
        self, x: Variable, role: Role, shape: tuple[int, ...], by: Reduction
    ) -> Reduced | None:
        """Read a variable, broadcast to a shape, as a reduction; None for other kinds."""
        if isinstance(role, Reduced):
            if size(shape) > size(role.shape) and size(shape) * _entries_of(role) > MOST_ENTRIES:
                return None
            spread = take(role, np.broadcast_to(all_indices(role.shape), shape), shape)
            return spread if role.by == by else None
        if isinstance(role, Fixed) and not self._keeps_fixed:
            return Reduced(shape, by)
        terms = self._entries(x, role, shape)
        return Reduced(shape, by, (Part(terms, np.arange(size(shape))),))

    def _elemwise_of_sums(
        self, node: Apply, roles: Sequence[Role], shape: tuple[int, ...]
    ) -> Reduced | None:
        match ops.scalar_of(node):
            case ps.Add() | ps.Sub() | ps.Neg():
                return self._sum(node, roles, shape)
            case ps.Mul() | ps.TrueDiv():
                return self._scaled(node, roles, shape)
            case ps.OR() | ps.AND():
                return self._joined(node, roles, shape)
            case ps.Invert():
                return self._inverted(roles[0])
            case ps.Cast() | ps.Identity():
                role, to_float = roles[0], node.outputs[0].dtype.startswith("float")
                if isinstance(role, Reduced) and role.by == "add" and to_float:
                    return role
            case ps.Switch():
                return self._switch(node, roles, shape)
        return None

    def _sum(self, node: Apply, roles: Sequence[Role], shape: tuple[int, ...]) -> Reduced | None:
        parts: list[Part] = []
        dtype, scalar_op = node.outputs[0].type.dtype, ops.scalar_of(node)
        minus = {ps.Neg: 0, ps.Sub: 1}.get(type(scalar_op))
        for k, (x, role) in enumerate(zip(node.inputs, roles, strict=True)):
            reduced = self._reduced(x, role, shape, "add")
            if reduced is None:
                return None
            own = reduced.parts
            parts += [_mapped(x, lambda f: -f.astype(dtype)) for x in own] if k == minus else own
        return Reduced(shape, "add", tuple(parts))

    def _scaled(self, node: Apply, roles: Sequence[Role], shape: tuple[int, ...]) -> Reduced | None:
        of_counts = [k for k, role in enumerate(roles) if not isinstance(role, Fixed)]
        divides = isinstance(ops.scalar_of(node), ps.TrueDiv)
        if len(of_counts) != 1 or (divides and of_counts != [0]):
            return None
        [place] = of_counts
        reduced = self._reduced(node.inputs[place], roles[place], shape, "add")
        if reduced is None:
            return None
        keeps, parts = is_positive_scaling(node, place), []
        for part in reduced.parts:
            function, fixed = part.terms.function, dict(part.terms.fixed)
            arguments: list[Variable] = []
            for k, x in enumerate(node.inputs):
                if k == place:
                    arguments.append(function)
                    continue
                factor = self._entries(x, Fixed(), shape)
                arguments.append(factor.function)
                for scalar, values in factor.fixed.items():
                    # A value per term is another vector than a value per entry.
                    own = scalar.type()
                    arguments[-1] = own
                    fixed[own] = take_values(values, part.targets)
            scaled = Entrywise(
                part.terms.shape,
                ops.on_entries(node, arguments),
                dict(part.terms.linear),
                fixed,
                requires=part.terms.requires if keeps else (),
            )
            parts.append(Part(scaled, part.targets))
        return Reduced(shape, "add", tuple(parts))

    def _joined(self, node: Apply, roles: Sequence[Role], shape: tuple[int, ...]) -> Reduced | None:
        if node.outputs[0].type.dtype != "bool":
            return None
        by = REDUCTIONS[type(ops.scalar_of(node))]
        pairs = zip(node.inputs, roles, strict=True)
        joined = [self._reduced(x, role, shape, by) for x, role in pairs]
        if any(reduced is None for reduced in joined):
            return None
        return Reduced(shape, by, tuple(p for r in joined if r is not None for p in r.parts))

    def _inverted(self, role: Role) -> Reduced | None:
        if not isinstance(role, Reduced) or role.by == "add":
            return None
        parts = tuple(_mapped(part, pt.invert, inverts=True) for part in role.parts)
        return Reduced(role.shape, "and" if role.by == "or" else "or", parts)

    def _switch(self, node: Apply, roles: Sequence[Role], shape: tuple[int, ...]) -> Reduced | None:
        """Choose between -inf and a sum, or by a condition that doesn't depend on the counts."""
        condition, *branches = node.inputs
        if isinstance(roles[0], Fixed):
            return self._masked(node, roles, shape)
        impossible = [is_minus_infinity(branch) for branch in branches]
        if sum(impossible) != 1:
            return None
        where = impossible.index(True)
        role = roles[0]
        # Impossible if any of them holds, or possible only if all hold.
        by: Reduction = "or" if where == 0 else "and"
        conditions = self._reduced(condition, role, shape, by)
        possible = self._reduced(branches[1 - where], roles[2 - where], shape, "add")
        if conditions is None or possible is None:
            return None
        refusing = [hard(part, impossible_if=where == 0) for part in conditions.parts]
        return Reduced(shape, "add", (*possible.parts, *refusing))

    def _masked(self, node: Apply, roles: Sequence[Role], shape: tuple[int, ...]) -> Reduced | None:
        condition, *branches = node.inputs
        parts: list[Part] = []
        mask = shaped(condition, shape).ravel()
        cases = zip((True, False), branches, reversed(branches), roles[1:], strict=True)
        for use, branch, other, role in cases:
            reduced = self._reduced(branch, role, shape, "add")
            if reduced is None:
                return None
            # For a check of parameters, the other cases are impossible anyway.
            impossible = is_minus_infinity(other)
            instead = np.asarray(-np.inf if impossible else 0.0)
            for part in reduced.parts:
                chosen = pt.scalar(dtype=condition.type.dtype)
                terms = part.terms
                f, requires = terms.function, terms.requires if impossible else ()
                function = pt.switch(chosen, f, instead) if use else pt.switch(chosen, instead, f)
                fixed = {**terms.fixed, chosen: take_values(mask, part.targets)}
                new = Entrywise(terms.shape, function, terms.linear, fixed, requires=requires)
                parts.append(Part(new, part.targets))
        return Reduced(shape, "add", tuple(parts))

    # Operations that move entries ---------------------------------------------------------------

    def _moved(self, node: Apply, roles: Sequence[Role], shape: tuple[int, ...]) -> Role | None:
        moved = ops.find_origins(node, linear.shapes_of_inputs(node, roles), self.known)
        if moved is None:
            return None
        of_counts = [k for k in moved.inputs if not isinstance(roles[k], Fixed)]
        if len(moved.inputs) == 1 and len(of_counts) == 1:
            return take(roles[of_counts[0]], moved.numbers, shape)
        joined = linear.joined(node, roles, shape, moved)
        if joined is not None:
            return joined
        by: Reduction = "add" if node.outputs[0].type.dtype != "bool" else "or"
        parts: list[Part] = []
        positions = moved.numbers.ravel()
        for k, start in zip(moved.inputs, moved.starts, strict=True):
            x, role = node.inputs[k], roles[k]
            inside = () if x.type.ndim == 0 else getattr(role, "shape", x.type.shape)
            reduced = self._reduced(x, role, inside, by)
            if reduced is None:
                return None
            here = np.flatnonzero((positions >= start) & (positions < start + size(inside)))
            chosen = take(reduced, positions[here] - start, (len(here),))
            parts += [
                part_of(part, np.arange(len(part.targets)), here[part.targets])
                for part in chosen.parts
            ]
        return Reduced(shape, by, tuple(parts))


def _entries_of(role: Reduced) -> int:
    """Return the number of entries of counts in its terms, for each entry of the result."""
    linear = [rows.matrix.nnz for part in role.parts for rows in part.terms.linear.values()]
    return sum(linear) // max(1, size(role.shape))


def as_terms(role: Role, walk: CountWalk, graph: TensorVariable) -> tuple[Part, ...]:
    """Read the summands of a factor of any shape as terms."""
    if isinstance(role, Reduced):
        return role.parts
    reduced = walk._reduced(graph, role, role.shape, "add")  # type: ignore[attr-defined]
    assert reduced is not None
    return reduced.parts


def _why_mixed(node: Apply, shape: tuple[int, ...] | None) -> str:
    """Say why the result of an operation can't be split into terms."""
    why = "ties entries together"
    if ops.action_of(node.op, node) is None:
        why = f"isn't known: {how_to_teach(node)}"
    elif len(node.outputs) > 1:
        why = "has several outputs"
    elif shape is None:
        why = "has a shape that isn't known beforehand"
    return f"the operation {describe(node)} {why}"


def _mapped(
    part: Part,
    function: Callable[[TensorVariable], TensorVariable],
    *,
    inverts: bool = False,
) -> Part:
    terms = part.terms
    equalities = tuple((rows, not when) for rows, when in terms.equalities if inverts)
    mapped = Entrywise(terms.shape, function(terms.function), terms.linear, terms.fixed, equalities)
    return Part(mapped, part.targets)
