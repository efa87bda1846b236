"""Properties of a random variable's law: whether it has a density, and whether draws follow it.

A float variable needn't have a density: a clipped variable has point masses at its bounds. So only
laws that are known to be continuous count as continuous.
"""

from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.scalar as ps
import pytensor.tensor as pt
from pymc.distributions.censored import CensoredRV
from pymc.distributions.custom import CustomDistRV, CustomSymbolicDistRV
from pymc.distributions.distribution import DiracDeltaRV
from pymc.distributions.mixture import MixtureRV
from pymc.distributions.timeseries import AutoRegressiveRV, RandomWalkRV
from pymc.distributions.truncated import TruncatedRV
from pytensor.graph import Apply, Constant, Op, Variable, ancestors
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import HurdleRV

KEEP_A_DENSITY = (
    *(ps.Add, ps.Sub, ps.Mul, ps.TrueDiv, ps.Neg, ps.Reciprocal, ps.Abs, ps.Sqr, ps.Sqrt),
    *(ps.Exp, ps.Expm1, ps.Log, ps.Log1p, ps.Sigmoid, ps.Softplus),
    *(ps.ArcSinh, ps.ArcTan, ps.Sinh, ps.Tanh),
)
"""Scalar functions that map at most a null set to any one value."""


class Clipped(NamedTuple):
    """A variable with a density that was clipped."""

    base: TensorVariable
    lower: TensorVariable | None
    upper: TensorVariable | None
    """None means no bound on that side."""


def has_density(node: Apply | None) -> bool:
    """Whether a random variable's law is known to have no point masses."""
    if node is None:
        return False
    match node.op:
        case MixtureRV() | RandomWalkRV():
            return all(has_density(law.owner) for law in _made_of(node))
        case AutoRegressiveRV():
            return has_density(node.inputs[2].owner)  # its start; innovations are normal
        case TruncatedRV():
            return has_density(_truncated(node))
        case CustomSymbolicDistRV():
            return node.op.inline_logprob and _keeps_density(node.op.fgraph.unfreeze().outputs[0])
    return isinstance(node.op, pm.Continuous)


def clipped(node: Apply) -> Clipped | None:
    """Read a random variable as a clipped one with a density; None if it isn't known to be one."""
    if isinstance(node.op, CensoredRV):
        given = node.inputs[1:]
    elif isinstance(node.op, CustomSymbolicDistRV) and node.op.inline_logprob:
        given = node.inputs
    else:
        return None
    inner = node.op.fgraph
    output, *_ = inner.bind(dict(zip(inner.inputs, node.inputs, strict=True)))
    return _clip(output, given)


def draws_follow_density(node: Apply) -> bool:
    """Whether PyMC's draws are known to follow the density that it derives."""
    match node.op:
        case CustomDistRV():
            return False
        case CustomSymbolicDistRV():
            return has_density(node) or clipped(node) is not None
        case MixtureRV():
            laws = _made_of(node)
            alike = all(map(_has_density, laws)) or all(map(_is_discrete, laws))
            return alike and all(draws_follow_density(x.owner) for x in laws)
        case HurdleRV() | CensoredRV():
            base = node.inputs[0 if isinstance(node.op, CensoredRV) else -1]
            return (_has_density(base) or base.dtype[0] != "f") and draws_follow_density(base.owner)
        case TruncatedRV():
            base = _truncated(node)
            # PyMC treats the bounds of counts as whole numbers.
            whole = _is_discrete(base.default_output()) and all(map(_is_whole, node.inputs[-2:]))
            return (has_density(base) or whole) and draws_follow_density(base)
        case RandomWalkRV():
            return all(draws_follow_density(law.owner) for law in _made_of(node))
    return type(node.op).__module__.startswith(("pymc.", "pytensor."))


def counts_truncated_between(node: Apply) -> bool:
    """Whether a discrete law is truncated below at a fractional number."""
    if not isinstance(node.op, TruncatedRV) or has_density(node):
        return False
    lower = node.inputs[-2]
    discrete = _is_discrete(_truncated(node).default_output())
    return discrete and isinstance(lower, Constant) and not _is_whole(lower)


def log_densities_at_points(node: Apply) -> list[TensorVariable] | None:
    """Return the log-densities of a mixture's components at the point masses of other components.

    A clipped component has a density between its bounds. None if the law isn't such a mixture.
    """
    if not isinstance(node.op, MixtureRV):
        return None
    points: list[TensorVariable] = []
    dense: list[tuple[Variable, list[TensorVariable]]] = []
    for law in _made_of(node):
        if isinstance(law.owner.op, DiracDeltaRV):
            points.append(law.owner.inputs[-1])
        elif not draws_follow_density(law.owner):
            return None
        elif has_density(law.owner):
            dense.append((law, []))
        elif (found := clipped(law.owner)) is not None:
            ends = [x for x in (found.lower, found.upper) if x is not None]
            points += ends
            dense.append((law, ends))
        else:
            return None
    if not points or not dense:
        return None
    return [_log_density_at(law, point, ends) for law, ends in dense for point in points]


def _log_density_at(
    law: Variable, point: TensorVariable, masses: list[TensorVariable]
) -> TensorVariable:
    """Return minus infinity where the component itself has a point mass."""
    found = pm.logp(law, point.astype(law.dtype), warn_rvs=False)
    for mass in masses:
        found = pt.switch(pt.eq(point, mass), -np.inf, found)
    return found


def _made_of(node: Apply) -> list[Variable]:
    return node.inputs[2:] if isinstance(node.op, MixtureRV) else node.inputs[:2]


def _truncated(node: Apply) -> Apply:
    return node.op.base_rv_op.make_node(*node.inputs[:-2])


def _has_density(x: Variable) -> bool:
    return has_density(x.owner)


def _is_discrete(x: Variable) -> bool:
    return x.dtype[0] != "f" or isinstance(x.owner.op, pm.Discrete)


def _is_whole(bound: Variable) -> bool:
    return isinstance(bound, Constant) and bool((bound.data == bound.data.round()).all())


def _is_law(op: Op) -> bool:
    return isinstance(op, RandomVariable | pm.SymbolicRandomVariable)


def _is_random(x: Variable, given: list[Variable]) -> bool:
    drawn = (y for y in ancestors([x], blockers=given) if y not in given)
    return any(y.owner is not None and _is_law(y.owner.op) for y in drawn)


def _keeps_density(x: Variable, given: list[Variable] | None = None) -> bool:
    """Whether a graph is known to have a density, as a function of one variable with a density."""
    given = given or []
    match x.owner:
        case Apply(op=op) as node if _is_law(op):
            return has_density(node)
        case Apply(op=DimShuffle(), inputs=[inner]):
            return _keeps_density(inner, given)
        case Apply(op=Elemwise(scalar_op=op), inputs=inputs) if isinstance(op, KEEP_A_DENSITY):
            drawn = [y for y in inputs if _is_random(y, given)]
            return x.type.dtype == "float64" and len(drawn) == 1 and _keeps_density(drawn[0], given)
    return False


def _clip(x: Variable, given: list[Variable]) -> Clipped | None:
    node = x.owner
    if node is None or not isinstance(node.op, Elemwise) or x.type.dtype != "float64":
        return None
    bounds: list[Variable | None]
    match node.op.scalar_op:
        case ps.Clip():
            base, *ends = node.inputs
            bounds = [None if end is base else end for end in ends]
        case ps.ScalarMaximum() | ps.ScalarMinimum() if len(node.inputs) == 2:
            # The order is: the unclipped draw, its bound.
            base, end = sorted(node.inputs, key=lambda y: not _is_random(y, given))
            bounds = [end, None] if isinstance(node.op.scalar_op, ps.ScalarMaximum) else [None, end]
        case _:
            return None
    if any(end is not None and _is_random(end, given) for end in bounds):
        return None
    return Clipped(base, *bounds) if _keeps_density(base, given) else None
