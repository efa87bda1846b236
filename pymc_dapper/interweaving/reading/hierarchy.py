"""Hierarchies: variables whose scale, such as the spread of groups, is itself a parameter."""

from collections.abc import Sequence
from typing import Any

from pymc import Model
from pymc.distributions.timeseries import AutoRegressiveRV, RandomWalkRV
from pytensor.graph import Variable, ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.interweaving.reading.families import RULES


def find_hierarchy(
    model: Model, parameters: Sequence[TensorVariable]
) -> tuple[list[TensorVariable], list[TensorVariable]]:
    """Find the vectors whose scale depends on parameters, and the parameters of their laws.

    As the model has it, such a vector is centred. If data say little of it, chains get stuck where
    the scale is small, and NUTS diverges there. Moves that keep the noise of the vector go through.
    A parameter that is itself such a vector isn't moved.
    """

    def among(graphs: Sequence[Variable]) -> list[TensorVariable]:
        seen = set(ancestors(graphs, blockers=model.free_RVs))
        return [rv for rv in parameters if rv in seen]

    followers, movers = [], []
    for rv in parameters:
        if rv.type.ndim and isinstance(rv.owner.op, tuple(RULES)):
            op: Any = rv.owner.op
            *_, scale = law = op.dist_params(rv.owner)
            if among([scale]):
                followers.append(rv)
                movers += among(law)
    return followers, [rv for rv in parameters if rv in movers and rv not in followers]


def find_series(
    model: Model, parameters: Sequence[TensorVariable]
) -> tuple[list[TensorVariable], list[TensorVariable]]:
    """Find random walks and autoregressions, and the parameters of their laws."""
    kinds = (RandomWalkRV, AutoRegressiveRV)
    series = [rv for rv in parameters if isinstance(rv.owner.op, kinds)]
    given = [x for rv in series for x in rv.owner.inputs]
    seen = set(ancestors(given, blockers=model.free_RVs))
    return series, [rv for rv in parameters if rv in seen and rv not in series]
