"""Bounds of a graph's variables that hold for all inputs."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import inf, prod
from typing import NamedTuple

import numpy as np
import pytensor.scalar as ps
from pytensor.graph import Apply, Constant, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.scalar.math import Erf, Erfc
from pytensor.tensor.basic import ARange, Eye
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.special import Softmax
from pytensor.tensor.subtensor import IncSubtensor

from pymc_dapper.graphs import ops

LARGEST_AT_ENDS = (
    *(ps.Add, ps.Sub, ps.Neg, ps.Mul, ps.TrueDiv, ps.Reciprocal, ps.Abs, ps.Sqr, ps.Sqrt, ps.Pow),
    *(ps.ScalarMinimum, ps.ScalarMaximum, ps.Clip, ps.GE, ps.GT, ps.LE, ps.LT, ps.Identity),
    *(ps.Floor, ps.Ceil, ps.RoundHalfToEven, ps.Trunc, ps.Exp, ps.Log),
    *(ps.Sigmoid, ps.Softplus, ps.Tanh, Erf, Erfc),
)
"""Functions that, in each input, only rise or only fall on either side of zero."""


class Bounds(NamedTuple):
    """Bounds of a variable that is never nan, ends included."""

    low: float
    high: float
    finite: bool = True
    """Whether an infinite bound is only approached: the variable itself is finite."""


ANY_NUMBER = Bounds(-inf, inf)
TRUTH_VALUE, ZERO = Bounds(0.0, 1.0), Bounds(0.0, 0.0)


def always_true(condition: Variable, known: Mapping[Variable, Bounds]) -> bool:
    """Whether a condition holds for all inputs."""
    bounds = bounds_of(condition, known)
    return bounds is not None and bounds.low > 0


def bounds_of(graph: Variable, known: Mapping[Variable, Bounds]) -> Bounds | None:
    """Find bounds of a variable; None if it may be nan, or if bounds aren't known.

    Variables that don't depend on ``known``, the records, are taken as finite; they are parameters,
    for example. So are results of pure arithmetic: no record is so large that products overflow.
    """
    return bounds_in([graph], known, list(known))[graph]


def bounds_in(
    graphs: Sequence[Variable], known: Mapping[Variable, Bounds], ends: Sequence[Variable] = ()
) -> dict[Variable, Bounds | None]:
    """Find bounds of all variables in graphs, but for those above ``ends``; see `bounds_of`."""
    dependent = {*known}
    found: dict[Variable, Bounds | None] = dict(known)

    def look_up(x: Variable) -> Bounds | None:
        if x not in found and x.owner is None:
            found[x] = _of_input(x)
        return found.get(x)

    for node in io_toposort(list(ends), list(graphs)):
        output = node.outputs[0]
        bounds = _of_node(node, [look_up(x) for x in node.inputs])
        if bounds is None and getattr(output.type, "dtype", None) == "bool":
            bounds = TRUTH_VALUE
        if not dependent.isdisjoint(node.inputs):
            dependent.update(node.outputs)
        elif output not in known:
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
            if isinstance(on_entries, ps.IntDiv | ps.Mod) and "int" not in node.outputs[0].dtype:
                return None  # NumPy's 1.0 // 0.1 is 9
            return _of_scalars(on_entries, inputs)
        case ops.Keeps() | ops.Reduces(by=ps.AND() | ps.ScalarMaximum() | ps.ScalarMinimum()):
            return inputs[0]
        case ops.Moves(inputs=taken):
            return _union([inputs[k] for k in taken])
        case ops.Increments():
            # All increments may go to one entry, or none.
            increments = _sum(_union([inputs[1], ZERO]), _number_of_increments(node))
            return _of_scalars(ps.add, [inputs[0], increments])
        case ops.Reduces(by=ps.Add(), axes=axes):
            return _sum(inputs[0], _number_of_terms(node, axes))
        case ops.Measures() if None not in node.inputs[0].type.shape:
            lengths = node.inputs[0].type.shape
            lengths = [lengths[node.op.i]] if isinstance(node.op, Shape_i) else lengths
            return Bounds(float(min(lengths)), float(max(lengths))) if lengths else None
    match node.op:
        case ps.ScalarOp():
            return _of_scalars(node.op, inputs)
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
    return _at_ends(ps.mul, [x, Bounds(n_terms, n_terms)])


def _union(bounds: Sequence[Bounds | None]) -> Bounds | None:
    known = [each for each in bounds if each is not None]
    if len(known) < len(bounds) or not known:
        return None
    low, high = min(each.low for each in known), max(each.high for each in known)
    return Bounds(low, high, all(each.finite for each in known))


def _of_scalars(op: ps.ScalarOp, inputs: Sequence[Bounds | None]) -> Bounds | None:
    """Bounds of an operation on numbers, entry by entry."""
    if isinstance(op, ps.Switch):
        return _union(inputs[1:])
    if isinstance(op, ps.Second):
        return inputs[1]
    known = [x for x in inputs if x is not None]
    if len(known) < len(inputs):
        return None
    match op:
        case ps.Cast():
            return _cast(op, known[0])
        case ps.AND() | ps.OR():
            chosen = min if isinstance(op, ps.AND) else max
            return Bounds(chosen(x.low for x in known), chosen(x.high for x in known))
        case ps.Sin() | ps.Cos():
            return Bounds(-1.0, 1.0) if known[0].finite else None
        case ps.Pow() if not known[1].low == known[1].high in (1, 2, 3, 4):
            return None
        case ps.IntDiv():
            ratio = _of_scalars(ps.true_div, known)
            return ratio and ratio._replace(low=np.floor(ratio.low), high=np.floor(ratio.high))
        case ps.Mod():
            return Bounds(0.0, known[1].high - 1) if known[1].low > 0 else None
        case ps.TrueDiv() | ps.Reciprocal() if known[-1].low <= 0 <= known[-1].high:
            return None
        case ps.Clip() if known[1].high > known[2].low:
            return None  # NumPy's rules for swapped bounds
        case ps.Add() | ps.Mul() | ps.ScalarMinimum() | ps.ScalarMaximum():
            found: Bounds | None = known[0]
            for other in known[1:]:
                found = found and _at_ends(op, [found, other])
            return found
    return _at_ends(op, known) if isinstance(op, LARGEST_AT_ENDS) else None


def _at_ends(op: ps.ScalarOp, inputs: Sequence[Bounds]) -> Bounds | None:
    """Bounds of a function that is least, and largest, at ends of its inputs or at zeros."""
    low, high, finite = inf, -inf, all(x.finite for x in inputs)
    ends = [[x.low, x.high, *([0.0] if x.low < 0 < x.high else [])] for x in inputs]
    with np.errstate(all="ignore"):
        for at in product(*ends):
            value = float(op.impl(*map(np.float64, at)))
            beyond = [x.finite for x, end in zip(inputs, at, strict=True) if abs(end) == inf]
            if np.isnan(value):
                if len(inputs) == 1 or not any(beyond):
                    return None
                continue  # of arithmetic, where an infinite end is only approached
            low, high = min(low, value), max(high, value)
            # One that comes from finite numbers is reached; so is that of an exponential.
            finite &= abs(value) < inf or (bool(beyond) and not isinstance(op, ps.Exp))
    # If nothing is left, an input is zero.
    return Bounds(low, high, finite or (low > -inf and high < inf)) if low <= high else ZERO


def _cast(op: ps.Cast, x: Bounds) -> Bounds | None:
    if op.o_type.dtype == "bool":
        return TRUTH_VALUE if x.low <= 0 else Bounds(1.0, 1.0)
    if op.o_type.dtype.startswith("float"):
        return x
    return Bounds(float(np.floor(x.low)), float(np.ceil(x.high))) if x.finite else None
