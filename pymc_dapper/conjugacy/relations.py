"""How a graph's variable depends on a parameter: not at all, by a power, or linearly.

One small rule per operation, as for records (:mod:`pymc_dapper.records.reading.rules`). A relation
without a rule isn't conjugate: nothing is guessed from numbers.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph import Apply, Op, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs import ops
from pymc_dapper.graphs.errors import NotConjugateError
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.naming import describe, how_to_teach

FOR_POSITIVE_ONLY = (ps.Abs, ps.Sign, ps.Sqrt, ps.Sqr, ps.Pow, ps.Reciprocal)


class Relation:
    """How a variable depends on the parameter."""


@dataclass(frozen=True)
class Independent(Relation):
    """It doesn't."""


@dataclass(frozen=True, eq=False)
class Power(Relation):
    """Each entry is c times a power of one entry of the parameter, c not depending on it.

    Attributes
    ----------
    entries : TensorVariable
        Which entry: the parameter itself, selected from, reshaped or repeated, with as many axes
        as the variable; lengths of 1 are broadcast.
    exponent : float
        The power.
    scaled : bool
        Whether c may be another number than 1.
    """

    entries: TensorVariable
    exponent: float = 1.0
    scaled: bool = False


@dataclass(frozen=True, eq=False)
class Affine(Relation):
    """A linear function of the parameter plus a part that doesn't depend on it.

    Attributes
    ----------
    entries : TensorVariable, optional
        If each entry depends on one entry of the parameter only: which one, as for ``Power``.
    """

    entries: TensorVariable | None = None


def read_relations(
    graphs: Sequence[TensorVariable], parameters: Iterable[Variable], *, positive: bool
) -> list[Relation]:
    """Find out how variables depend on parameters.

    Parameters
    ----------
    graphs : sequence of TensorVariable
        The variables.
    parameters : iterable of Variable
        The parameters; a joint function of several is one relation.
    positive : bool
        Whether the parameters are positive, so that their roots and absolute values are powers.

    Returns
    -------
    list of Relation
        One for each graph.

    Raises
    ------
    NotConjugateError
        If an operation's result is neither a power of the parameters nor linear in them; names the
        operation.
    """
    relations: dict[Variable, Relation] = {x: Power(x) for x in parameters}
    independent = Independent()
    for node in io_toposort([], list(graphs)):
        of_inputs = [relations.get(x, independent) for x in node.inputs]
        if all(isinstance(relation, Independent) for relation in of_inputs):
            continue
        if not positive and isinstance(ops.scalar_of(node), FOR_POSITIVE_ONLY):
            raise neither(node)
        of_outputs = follow_parameter(node.op, node, of_inputs)
        relations.update(zip(node.outputs, of_outputs, strict=True))
    return [relations.get(graph, independent) for graph in graphs]


def neither(node: Apply, why: str = "is neither a power of it nor linear in it") -> Any:
    """Make the error for an operation that breaks the relation."""
    return NotConjugateError(f"the operation {describe(node)} {why}")


@singledispatch
def follow_parameter(op: Op, node: Apply, relations: Sequence[Relation]) -> Sequence[Relation]:
    """Return how the outputs of an operation depend on the parameter.

    Dispatched on the type of ``op``. To teach all samplers an operation of your own, use
    :func:`pymc_dapper.action_of`. If an action isn't enough, such as for an operation that takes
    powers, register a rule: ``@follow_parameter.register(MyOp)``.

    Parameters
    ----------
    op : Op
        The operation.
    node : Apply
        Its application.
    relations : sequence of Relation
        How each input depends on the parameter; at least one does.

    Returns
    -------
    sequence of Relation
        How each output does.

    Raises
    ------
    NotConjugateError
        If it is neither a power nor linear, or if there is no rule for the operation.
    """
    match ops.action_of(op, node):
        case ops.Maps():
            return [follow_scalar(ops.scalar_of(node), node, relations)]
        case ops.Keeps():
            return [relations[0]]
        case ops.Moves(inputs=[0]):
            return [_selected(node, relations)]
        case ops.Moves(inputs=taken):
            # The entries could be traced, but a parameter is seldom split and joined again.
            return [_linear(node, relations, len(taken))]
        case ops.Increments():
            return [_linear(node, relations, 2)]
        case ops.Reduces(by=ps.Add()) | ops.Accumulates():
            return [_linear(node, relations, 1)]
        case ops.Multiplies():
            _one_dependent(node, relations)
            return [_linear(node, relations, 2)]
        case ops.Measures():
            return [Independent()]
        case None:
            raise neither(node, f"isn't known: use others, or {how_to_teach(node)}")
    raise neither(node)


@follow_parameter.register(Blockwise)
def _blockwise(op: Blockwise, node: Apply, relations: Sequence[Relation]) -> Sequence[Relation]:
    return follow_parameter.dispatch(type(op.core_op))(op.core_op, node, relations)


def _linear(node: Apply, relations: Sequence[Relation], n_arrays: int) -> Affine:
    """Check that the first inputs are at most affine, and that others don't depend on it."""
    _check_indices(node, relations[n_arrays:])
    affine(node, relations)
    return Affine()


def _check_indices(node: Apply, relations: Sequence[Relation]) -> None:
    if not all(isinstance(relation, Independent) for relation in relations):
        raise neither(node, "uses it as an index or a shape")


def affine(node: Apply, relations: Sequence[Relation]) -> list[Relation]:
    """Check that all inputs are at most affine; widen powers of 1 to that."""
    for power in (x for x in relations if isinstance(x, Power) and x.exponent != 1):
        raise neither(node, f"acts on its power {power.exponent:g}, which isn't linear")
    return [Affine(x.entries) if isinstance(x, Power) else x for x in relations]


def _one_dependent(node: Apply, relations: Sequence[Relation]) -> int:
    """Return the position of the only input that depends on the parameter."""
    dependent = [k for k, r in enumerate(relations) if not isinstance(r, Independent)]
    if len(dependent) > 1:
        raise neither(node, "combines it with itself in a way that is neither a power nor linear")
    return dependent[0]


# -- entry by entry ------------------------------------------------------------------------------


POWERS = {ps.Abs: 1.0, ps.Sqrt: 0.5, ps.Sqr: 2.0, ps.Reciprocal: -1.0}


def follow_scalar(op: ScalarOp | None, node: Apply, relations: Sequence[Relation]) -> Relation:
    """Return how the output of an elementwise operation depends on the parameter."""
    match op:
        case ps.Cast() | ps.Identity():
            if node.outputs[0].type.dtype not in ("float32", "float64"):
                raise neither(node, "rounds it")
            return relations[0]
        case ps.Second():
            return _with_entries(relations[1], lambda entries: _full(entries, node.outputs[0]))
        case ps.Sign() if isinstance(relations[0], Power):
            return Independent()
        case ps.Abs() | ps.Sqrt() | ps.Sqr() | ps.Reciprocal():
            return _to_power(node, relations[0], POWERS[type(op)])
        case ps.Pow():
            exponent = known_value(node.inputs[1])
            if exponent is None or exponent.min() != exponent.max():
                raise neither(node, "raises it to a power that isn't one constant number")
            return _to_power(node, relations[0], float(exponent.min()))
        case ps.Neg() | ps.Add() | ps.Sub():
            return Affine(_common_entries(node, affine(node, relations)))
        case ps.Switch():
            condition, *branches = relations
            if not isinstance(condition, Independent):
                raise neither(node, "switches on it")
            return Affine(_common_entries(node, affine(node, branches)))
        case ps.Mul():
            return _product(node, [r for r in relations if not isinstance(r, Independent)])
        case ps.TrueDiv():
            above, below = relations
            if isinstance(below, Independent):
                return _scaled(node, above)
            if isinstance(above, Independent) and isinstance(below, Power):
                return _scaled(node, Power(below.entries, -below.exponent, True))
            raise neither(node, "divides by a function of it")
    raise neither(node)


def _to_power(node: Apply, relation: Relation, exponent: float) -> Relation:
    if not isinstance(relation, Power):
        raise neither(node)
    return replace(relation, exponent=relation.exponent * exponent)


def _product(node: Apply, factors: Sequence[Relation]) -> Relation:
    if len(factors) == 1:
        return _scaled(node, factors[0])
    powers = [r for r in factors if isinstance(r, Power)]
    if len(powers) < len(factors) or len({r.entries for r in powers}) > 1:
        raise neither(node, "multiplies it with itself")
    return _scaled(node, Power(powers[0].entries, sum(r.exponent for r in powers)))


def _scaled(node: Apply, relation: Relation) -> Relation:
    if isinstance(relation, Power):
        relation = replace(relation, scaled=True)
    return _with_entries(relation, lambda entries: _full(entries, node.outputs[0]))


def _with_entries(
    relation: Relation, change: Callable[[TensorVariable], TensorVariable]
) -> Relation:
    """Change the parameter's entry on which each entry depends, if it is known."""
    if not isinstance(relation, Power | Affine) or relation.entries is None:
        return relation
    return replace(relation, entries=change(relation.entries))


def _common_entries(node: Apply, relations: Sequence[Relation]) -> TensorVariable | None:
    entries = [r.entries for r in relations if isinstance(r, Affine)]
    first = entries[0]
    if first is None or any(other is not first for other in entries):
        return None
    return _full(first, node.outputs[0])


def _full(entries: TensorVariable, like: Variable) -> TensorVariable:
    """Repeat entries along axes on which a variable is longer."""
    if entries.type.broadcastable == like.type.broadcastable:
        return entries
    return pt.broadcast_to(entries, like.shape)


# -- selecting, reshaping, repeating -------------------------------------------------------------


def _selected(node: Apply, relations: Sequence[Relation]) -> Relation:
    relation, *others = relations
    _check_indices(node, others)

    def select(entries: TensorVariable) -> TensorVariable:
        return node.clone_with_new_inputs([entries, *node.inputs[1:]], strict=False).outputs[0]

    return _with_entries(relation, lambda entries: select(_full(entries, node.inputs[0])))
