"""Bounds of a statistic, from the supports of random variables."""

from collections.abc import Mapping

import numpy as np
from pymc import SymbolicRandomVariable
from pymc.distributions.discrete import DiscreteUniformRV
from pymc.distributions.multivariate import DirichletMultinomialRV
from pytensor.graph import Apply, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.random import basic as laws
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.bounds import ANY_NUMBER, TRUTH_VALUE, Bounds, bounds_of
from pymc_dapper.graphs.known import known_length

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
