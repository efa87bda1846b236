"""Sums of parameters: one of the terms follows the others, and the sum is held fixed.

Data often determine a sum well and its terms badly, such as an area's level and its deviations in
time. A move of the terms that keeps the sum changes their priors only, so it goes far. All other
factors stay as they are (Liu and Sabatti, 2000, "Generalised Gibbs sampler and multigrid
Monte Carlo for Bayesian computation", Biometrika 87).
"""

from collections.abc import Sequence
from functools import partial
from math import prod

import pytensor.tensor as pt
from pytensor.graph import Apply, Variable, ancestors
from pytensor.graph.traversal import io_toposort
from pytensor.scalar import Add
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.laws import has_density
from pymc_dapper.graphs.view import ModelView
from pymc_dapper.interweaving.reading.maps import parameters_of

SELECTS = DimShuffle, Subtensor, AdvancedSubtensor


def find_sums(
    view: ModelView, parameters: Sequence[TensorVariable]
) -> list[tuple[TensorVariable, list[TensorVariable]]]:
    """Find the vectors that are added to other parameters, and these; the longest one follows."""
    sizes = {rv: prod(_value(view, rv).type.shape) for rv in parameters}
    found: list[tuple[TensorVariable, list[TensorVariable]]] = []
    for rv in sorted(filter(partial(_may_follow, view), parameters), key=lambda rv: -sizes[rv]):
        if any(rv in movers for _, movers in found):
            continue
        law = _law(view, rv)
        others = [x for x in parameters if x is not rv and sizes[x] <= sizes[rv]]
        others = [x for x in others if _value(view, x) not in law]
        rest = rest_of_sum(view, rv, others)
        if rest is not None:
            inputs = view.values_in([rest])
            found.append((rv, [x for x in others if _value(view, x) in inputs]))
    return found


def rest_of_sum(
    view: ModelView, rv: TensorVariable, parameters: Sequence[TensorVariable]
) -> TensorVariable | None:
    """Return what is added to a vector and depends on parameters, in a shape that the vector has.

    All are random variables. None if the vector is in no such sum, or its own law depends on the
    parameters. What else depends on the vector doesn't matter: a move counts all factors.
    """
    value, own = _value(view, rv), {_value(view, x) for x in parameters}
    if not (_may_follow(view, rv) and own.isdisjoint(_law(view, rv))):
        return None
    factors = view.dependent_factors([view.model.rvs_to_values[rv]])
    # A sum comes after the sums that are terms of it.
    for node in reversed(io_toposort([], [x for name, x in factors.items() if name != rv.name])):
        terms = _terms(node)
        mine = [x for x in terms if x is value or _selected_from(x) is value]
        if len(mine) != 1:
            continue
        shape = value.type.shape if mine[0] is value else ()
        rest = [
            x.squeeze() if prod(x.type.shape) == 1 else x
            for x in terms
            if x is not mine[0]
            and _fits(x, shape)
            and _depends(x, own)
            and not _depends(x, {value})
        ]
        if rest:
            return pt.add(*rest) if len(rest) > 1 else rest[0]
    return None


def _value(view: ModelView, rv: TensorVariable) -> TensorVariable:
    return view.values[view.model.rvs_to_values[rv]]


def _may_follow(view: ModelView, rv: TensorVariable) -> bool:
    """Whether a variable is a vector of real numbers without bounds and without point masses."""
    is_bounded = view.model.rvs_to_transforms[rv] is not None
    return rv.type.ndim > 0 and has_density(rv.owner) and not is_bounded


def _law(view: ModelView, rv: TensorVariable) -> tuple[TensorVariable, ...]:
    """Return the values that a variable's law depends on."""
    return view.values_in(view.at_values(parameters_of(rv.owner)))


def _terms(node: Apply) -> list[TensorVariable]:
    """List the terms of a sum; empty for another operation."""
    if not (isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Add)):
        return []
    return [x for y in node.inputs for x in (_terms(y.owner) if y.owner else []) or [y]]


def _selected_from(x: TensorVariable) -> Variable | None:
    """Return the array whose entries an expression selects, or None."""
    return x.owner.inputs[0] if x.owner and isinstance(x.owner.op, SELECTS) else None


def _fits(x: TensorVariable, shape: Sequence[int | None]) -> bool:
    """Whether an array is one number, or broadcasts to the shape with as many axes."""
    if prod(n or 0 for n in x.type.shape) == 1:
        return True
    pairs = zip(x.type.shape, shape, strict=True)
    return x.type.ndim == len(shape) and all(n in (1, length) for n, length in pairs)


def _depends(x: TensorVariable, values: set[TensorVariable]) -> bool:
    return not values.isdisjoint(ancestors([x]))
