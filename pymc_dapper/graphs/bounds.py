"""Bounds of a graph's variables that hold for all inputs."""

from collections.abc import Mapping, Sequence
from math import exp, inf, log, prod, sqrt
from typing import NamedTuple

import numpy as np
import pytensor.scalar as ps
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.scalar.math import Erf, Erfc
from pytensor.tensor.basic import ARange, Eye
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.special import Softmax
from pytensor.tensor.subtensor import IncSubtensor

from pymc_dapper.graphs import ops
from pymc_dapper.graphs.rebuild import dependent_variables

LARGEST_EXPONENT = 700.0
"""Bounds of a number that is finite in double precision."""


class Bounds(NamedTuple):
    """Bounds of a variable that is never nan, ends included."""

    low: float
    high: float
    finite: bool = True
    """Whether an infinite bound is only approached: the variable itself is finite."""


ANY_NUMBER = Bounds(-inf, inf)
TRUTH_VALUE = Bounds(0.0, 1.0)


def always_true(condition: Variable, known: Mapping[Variable, Bounds]) -> bool:
    """Whether a condition holds for all inputs."""
    bounds = bounds_of(condition, known)
    return bounds is not None and bounds.low > 0


def bounds_of(graph: Variable, known: Mapping[Variable, Bounds]) -> Bounds | None:
    """Find bounds of a variable; None if it may be nan, or if bounds aren't known.

    Variables that don't depend on ``known``, the records, are taken as finite; they are parameters,
    for example. So are results of pure arithmetic: no record is so large that products overflow.
    """
    return bounds_in([graph], known)[graph]


def bounds_in(
    graphs: Sequence[Variable], known: Mapping[Variable, Bounds]
) -> dict[Variable, Bounds | None]:
    """Find bounds of all variables in graphs, as :func:`bounds_of` does of one."""
    dependent = dependent_variables(known, graphs)
    found: dict[Variable, Bounds | None] = dict(known)

    def look_up(x: Variable) -> Bounds | None:
        if x not in found and x.owner is None:
            found[x] = _of_input(x)
        return found.get(x)

    for node in io_toposort([], list(graphs)):
        output = node.outputs[0]
        bounds = _of_node(node, [look_up(x) for x in node.inputs])
        if bounds is None and getattr(output.type, "dtype", None) == "bool":
            bounds = TRUTH_VALUE
        if output not in dependent:
            bounds = ANY_NUMBER if bounds is None else Bounds(bounds.low, bounds.high)
        found.setdefault(output, bounds)
    return found | {x: look_up(x) for x in graphs}


def _of_input(x: Variable) -> Bounds | None:
    if not isinstance(x, Constant):
        return ANY_NUMBER if hasattr(x.type, "dtype") else None
    values = np.asarray(x.data)
    if values.dtype.kind not in "biuf" or values.size == 0 or np.isnan(values).any():
        return None
    finite = bool(np.isfinite(values).all())
    return Bounds(float(values.min()), float(values.max()), finite)


def _of_node(node: Apply, inputs: Sequence[Bounds | None]) -> Bounds | None:
    match ops.action_of(node.op, node):
        case _ if (on_entries := ops.scalar_of(node)) is not None:
            return _of_scalars(on_entries, node, inputs)
        case ops.Keeps() | ops.Reduces(by=ps.AND() | ps.ScalarMaximum() | ps.ScalarMinimum()):
            return inputs[0]
        case ops.Moves(inputs=taken):
            return _union([inputs[k] for k in taken])
        case ops.Increments():
            # All increments may go to one entry, or none.
            increment, none = inputs[1], Bounds(0.0, 0.0)
            increments = _sum(_union([increment, none]), _number_of_increments(node))
            known = [x for x in (inputs[0], increments) if x is not None]
            return _add(*known) if len(known) == 2 else None
        case ops.Reduces(by=ps.Add(), axes=axes):
            return _sum(inputs[0], _number_of_terms(node, axes))
        case ops.Measures() if None not in node.inputs[0].type.shape:
            lengths = node.inputs[0].type.shape
            lengths = [lengths[node.op.i]] if isinstance(node.op, Shape_i) else lengths
            return Bounds(float(min(lengths)), float(max(lengths))) if lengths else None
    match node.op:
        case ps.ScalarOp():
            return _of_scalars(node.op, node, inputs)
        case Softmax() | Eye():
            return TRUTH_VALUE if isinstance(node.op, Eye) or inputs[0] is not None else None
        case ARange():
            return ANY_NUMBER
    return None


def _number_of_terms(node: Apply, axes: Sequence[int]) -> int | None:
    """Return how many entries a reduction combines; None if that isn't known."""
    lengths = [node.inputs[0].type.shape[axis] for axis in axes]
    return None if None in lengths else prod(lengths)


def _number_of_increments(node: Apply) -> int | None:
    """Return how many increments an entry gets at most; None if that isn't known."""
    if isinstance(node.op, IncSubtensor):
        return 1
    indices = [x.type.shape for x in node.inputs[2:] if hasattr(x.type, "shape")]
    if any(None in shape for shape in indices):
        return None
    return prod(np.broadcast_shapes(*indices))


def _sum(x: Bounds | None, n_terms: int | None) -> Bounds | None:
    """Bounds of a sum of ``n_terms`` terms; of any number of terms if it is None."""
    if x is None or (not x.finite and x.low < 0 < x.high):
        return None
    if n_terms is None:
        return Bounds(min(0.0, -inf if x.low < 0 else 0.0), inf if x.high > 0 else 0.0, x.finite)
    return Bounds(_times(x.low, n_terms), _times(x.high, n_terms), x.finite)


def _union(bounds: Sequence[Bounds | None]) -> Bounds | None:
    known = [each for each in bounds if each is not None]
    if len(known) < len(bounds) or not known:
        return None
    return Bounds(
        min(each.low for each in known),
        max(each.high for each in known),
        all(each.finite for each in known),
    )


def _of_scalars(op: ps.ScalarOp, node: Apply, inputs: Sequence[Bounds | None]) -> Bounds | None:
    """Bounds of an operation on numbers, entry by entry."""
    if isinstance(op, ps.Switch):
        return _union(inputs[1:])
    if isinstance(op, ps.Second):
        return inputs[1]
    known = [x for x in inputs if x is not None]
    if len(known) < len(inputs):
        return None
    match op:
        case ps.Add():
            return _fold(_add, known)
        case ps.Sub():
            return _add(known[0], _negative(known[1]))
        case ps.Mul():
            return _fold(_product, known)
        case ps.TrueDiv():
            reciprocal = _reciprocal(known[1])
            return None if reciprocal is None else _product(known[0], reciprocal)
        case ps.Reciprocal():
            return _reciprocal(known[0])
        case ps.ScalarMinimum():
            return _fold(lambda a, b: _by_ends(min, a, b), known)
        case ps.ScalarMaximum():
            return _fold(lambda a, b: _by_ends(max, a, b), known)
        case ps.GE() | ps.GT() | ps.LE() | ps.LT():
            return _compare(op, *known)
        case ps.AND():
            return Bounds(min(x.low for x in known), min(x.high for x in known))
        case ps.OR():
            return Bounds(max(x.low for x in known), max(x.high for x in known))
        case ps.EQ() | ps.NEQ():
            return TRUTH_VALUE
    return _of_scalar(op, known)


def _of_scalar(op: ps.ScalarOp, known: Sequence[Bounds]) -> Bounds | None:
    """Bounds of a function of one number."""
    x = known[0]
    match op:
        case ps.Identity():
            return x
        case ps.Cast():
            if op.o_type.dtype == "bool":
                return TRUTH_VALUE if x.low <= 0 else Bounds(1.0, 1.0)
            if op.o_type.dtype.startswith("float"):
                return x
            return Bounds(float(np.floor(x.low)), float(np.ceil(x.high))) if x.finite else None
        case ps.Floor() | ps.Ceil() | ps.RoundHalfToEven() | ps.Trunc():
            return Bounds(float(np.floor(x.low)), float(np.ceil(x.high)), x.finite)
        case ps.Neg():
            return _negative(x)
        case ps.Abs():
            return _magnitude(x)
        case ps.Sqr():
            return _power(x, 2)
        case ps.Pow() if known[1].low == known[1].high and known[1].low in (1, 2, 3, 4):
            return _power(x, int(known[1].low))
        case ps.Sqrt() if x.low >= 0:
            return Bounds(sqrt(x.low), sqrt(x.high), x.finite)
        case ps.Exp():
            return Bounds(_exp(x.low), _exp(x.high), x.high < LARGEST_EXPONENT)
        case ps.Log() if x.low > 0:
            return Bounds(log(x.low), log(x.high) if x.high < inf else inf, x.finite)
        case ps.Sigmoid():
            return TRUTH_VALUE
        case ps.Softplus():
            return Bounds(0.0, inf, x.finite)
        case ps.Tanh() | ps.Sin() | ps.Cos() if x.finite:
            return Bounds(-1.0, 1.0)
        case Erf():
            return Bounds(-1.0, 1.0)
        case Erfc():
            return Bounds(0.0, 2.0)
        case ps.Clip():
            _, low, high = known
            # NumPy's rules for swapped bounds would be wrong here.
            return _by_ends(min, _by_ends(max, x, low), high) if low.high <= high.low else None
    return None


def _fold(function, operands: Sequence[Bounds]) -> Bounds | None:  # type: ignore[no-untyped-def]
    result: Bounds | None = operands[0]
    for operand in operands[1:]:
        result = None if result is None else function(result, operand)
    return result


def _add(a: Bounds, b: Bounds) -> Bounds | None:
    for x, y in ((a, b), (b, a)):
        if not x.finite and not y.finite and x.high == inf and y.low == -inf:
            return None
    return Bounds(a.low + b.low, a.high + b.high, a.finite and b.finite)


def _product(a: Bounds, b: Bounds) -> Bounds | None:
    for x, y in ((a, b), (b, a)):
        if not x.finite and y.low <= 0 <= y.high:
            return None
    ends = [_times(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return Bounds(min(ends), max(ends), a.finite and b.finite)


def _times(x: float, y: float) -> float:
    """Multiply bounds; zero times a bound that is only approached is zero."""
    return 0.0 if x == 0 or y == 0 else x * y


def _reciprocal(x: Bounds) -> Bounds | None:
    if x.low <= 0 <= x.high:
        return None
    low, high = (0.0 if abs(end) == inf else 1 / end for end in (x.high, x.low))
    return Bounds(low, high)


def _negative(x: Bounds) -> Bounds:
    return Bounds(-x.high, -x.low, x.finite)


def _magnitude(x: Bounds) -> Bounds:
    ends = abs(x.low), abs(x.high)
    return Bounds(0.0 if x.low <= 0 <= x.high else min(ends), max(ends), x.finite)


def _power(x: Bounds, power: int) -> Bounds:
    ends = x if power % 2 else _magnitude(x)
    return Bounds(ends.low**power, ends.high**power, x.finite)


def _exp(x: float) -> float:
    return inf if x > LARGEST_EXPONENT else exp(x)


def _by_ends(choose, a: Bounds, b: Bounds) -> Bounds:  # type: ignore[no-untyped-def]
    low, high = choose(a.low, b.low), choose(a.high, b.high)
    return Bounds(low, high, (a.finite and b.finite) or (low > -inf and high < inf))


def _compare(op: ps.ScalarOp, a: Bounds, b: Bounds) -> Bounds:
    if isinstance(op, ps.LE | ps.LT):
        a, b = b, a
    strict = isinstance(op, ps.GT | ps.LT)
    certain = a.low > b.high if strict else a.low >= b.high
    return Bounds(1.0, 1.0) if certain else TRUTH_VALUE
