"""Bounds from the supports of random variables: of a statistic, and of how long it is."""

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

import numpy as np
import pytensor.scalar as ps
from pymc import SymbolicRandomVariable
from pymc.distributions.discrete import DiscreteUniformRV
from pymc.distributions.multivariate import DirichletMultinomialRV
from pytensor.graph import Apply, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random import basic as laws
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.bounds import ANY_NUMBER, TRUTH_VALUE, Bounds, bounds_of
from pymc_dapper.graphs.known import known_length, known_value

OF_A_NUMBER = laws.BinomialRV | laws.BetaBinomialRV | laws.MultinomialRV | DirichletMultinomialRV
NOT_NEGATIVE = (
    *(laws.PoissonRV, laws.NegBinomialRV, laws.GeometricRV, laws.GammaRV, laws.ExponentialRV),
    *(laws.LogNormalRV, laws.WeibullRV, laws.HalfNormalRV, laws.HalfCauchyRV),
)


def bounds_by_support(statistic: TensorVariable) -> Bounds:
    """Bound a statistic by the supports of the random variables that it is computed from."""
    known: dict[Variable, Bounds] = {}
    for node in io_toposort([], [statistic]):
        if isinstance(node.op, RandomVariable | SymbolicRandomVariable):
            known.update(dict.fromkeys(node.outputs, _support(node, known)))
    return bounds_of(statistic, known) or ANY_NUMBER


def _support(node: Apply, known: Mapping[Variable, Bounds]) -> Bounds:
    """Bound what a random variable can be, given what its parameters can be."""
    if not isinstance(node.op, RandomVariable):
        return ANY_NUMBER
    parameters = node.op.dist_params(node)
    if isinstance(node.op, OF_A_NUMBER):
        return Bounds(0.0, (bounds_of(parameters[0], known) or ANY_NUMBER).high)
    if isinstance(node.op, laws.UniformRV | DiscreteUniformRV):
        low, high = (bounds_of(x, known) or ANY_NUMBER for x in parameters)
        return Bounds(low.low, high.high)
    if isinstance(node.op, laws.CategoricalRV):
        length = known_length(parameters[0])
        return ANY_NUMBER if length is None else Bounds(0.0, length - 1.0)
    if isinstance(node.op, laws.BernoulliRV | laws.BetaRV | laws.DirichletRV):
        return TRUTH_VALUE
    return Bounds(0.0, np.inf) if isinstance(node.op, NOT_NEGATIVE) else ANY_NUMBER


def largest_length(
    node: Apply, inputs: Sequence[Variable], supports: Callable[[], Mapping[Variable, Bounds]]
) -> list[Variable] | None:
    """Return a known length that no record exceeds, such as ``minlength`` of ``pt.bincount``.

    ``inputs`` are the node's, in terms of variables with these ``supports``.
    """
    is_number = isinstance(node.op, Elemwise) and node.outputs[0].type.ndim == 0
    if not is_number or not isinstance(node.op.scalar_op, ps.ScalarMaximum):
        return None
    for length, other in permutations(inputs):
        least = known_value(length)
        bounds = None if least is None else bounds_of(other, supports())
        if least is not None and bounds is not None and bounds.high <= least:
            return [length.astype(node.outputs[0].type.dtype)]
    return None
