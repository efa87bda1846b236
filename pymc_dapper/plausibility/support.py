"""Bounds of a statistic, from the supports of random variables."""

from collections.abc import Mapping

import numpy as np
from pymc.distributions.discrete import DiscreteUniformRV
from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.distributions.multivariate import DirichletMultinomialRV
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.random import basic as laws
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.bounds import ANY_NUMBER, Bounds, bounds_of
from pymc_dapper.graphs.known import known_length


def bounds_by_support(statistic: TensorVariable) -> Bounds:
    """Bound a statistic by the supports of the random variables that it is computed from."""
    known: dict[Variable, Bounds] = {}
    for node in io_toposort([], [statistic]):
        if isinstance(node.op, RandomVariable | SymbolicRandomVariable):
            for x in node.outputs:
                known[x] = _support(node, known) if hasattr(x.type, "dtype") else ANY_NUMBER
    return bounds_of(statistic, known) or ANY_NUMBER


def _support(node: Apply, known: Mapping[Variable, Bounds]) -> Bounds:
    """Bound what a random variable can be, given what its parameters can be."""
    if not isinstance(node.op, RandomVariable):
        return ANY_NUMBER
    parameters = node.op.dist_params(node)
    bounds = [bounds_of(x, known) or ANY_NUMBER for x in parameters]
    match node.op:
        case laws.BernoulliRV() | laws.BetaRV() | laws.DirichletRV():
            return Bounds(0.0, 1.0)
        case laws.CategoricalRV() if (length := known_length(parameters[0])) is not None:
            return Bounds(0.0, length - 1.0)
        case (
            laws.BinomialRV()
            | laws.BetaBinomialRV()
            | laws.MultinomialRV()
            | DirichletMultinomialRV()
        ):
            return Bounds(0.0, bounds[0].high)
        case laws.UniformRV() | DiscreteUniformRV():
            return Bounds(bounds[0].low, bounds[1].high)
        case laws.PoissonRV() | laws.NegBinomialRV() | laws.GeometricRV() | laws.GammaRV():
            return Bounds(0.0, np.inf)
        case laws.ExponentialRV() | laws.LogNormalRV() | laws.WeibullRV():
            return Bounds(0.0, np.inf)
        case laws.HalfNormalRV() | laws.HalfCauchyRV():
            return Bounds(0.0, np.inf)
    return ANY_NUMBER
