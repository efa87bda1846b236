"""Maps of random walks and autoregressions: the noise is that of the start and of each step."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.timeseries import AutoRegressiveRV, RandomWalkRV
from pytensor.graph import Apply, Constant, Op
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.known import known_value
from pymc_dapper.interweaving.reading.maps import (
    REMEDY,
    NoRecordMapError,
    Parameters,
    RecordMap,
    distribution_name,
    parameters_of,
    record_map,
)

SERIES = (RandomWalkRV, AutoRegressiveRV)

MOST_STEPS = 500
"""Autoregressions solve triangular systems of this order, maybe one for each series."""


@record_map.register(RandomWalkRV)
def _random_walk(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """Map start and steps as their own laws have them. PyMC draws these with time as first axis."""
    laws = zip(node.inputs[:2], moved[:2], strict=True)
    start, step = (_law_within(node, law, moves) for law, moves in laws)

    def noise(x: TensorVariable, parameters: Parameters, _: object) -> TensorVariable:
        by_time = pt.moveaxis(x, -op.ndim_supp, 0)
        of_start, of_steps = (parameters_of(law.owner) for law in parameters[:2])
        first = start.noise(by_time[:1], of_start, None)
        later = step.noise(by_time[1:] - by_time[:-1], of_steps, None)
        return pt.moveaxis(pt.concatenate([first, later]), 0, -op.ndim_supp)

    def records(z: TensorVariable, parameters: Parameters) -> TensorVariable:
        by_time = pt.moveaxis(z, -op.ndim_supp, 0)
        of_start, of_steps = (parameters_of(law.owner) for law in parameters[:2])
        first, later = start.records(by_time[:1], of_start), step.records(by_time[1:], of_steps)
        walk = pt.cumsum(pt.concatenate([first, later]), axis=0)
        return pt.moveaxis(walk, 0, -op.ndim_supp)

    return RecordMap(noise, records, is_normal=start.is_normal and step.is_normal)


@record_map.register(AutoRegressiveRV)
def _autoregression(op: AutoRegressiveRV, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """Map first values as their own law has them, and innovations by constant and scale."""
    order, k = op.ar_order, int(op.constant_term)
    start = _law_within(node, node.inputs[2], moved[2])
    steps = known_value(node.inputs[3])
    if steps is None or steps > MOST_STEPS:
        raise NoRecordMapError(
            f"{distribution_name(node)} isn't known to have {MOST_STEPS} steps or fewer, and "
            f"{REMEDY}"
        )

    def constant(rho: TensorVariable) -> TensorVariable:
        return rho[..., :1] if op.constant_term else pt.zeros(1)

    def noise(x: TensorVariable, parameters: Parameters, _: object) -> TensorVariable:
        rho, sigma, law = parameters[:3]
        first = start.noise(x[..., :order], parameters_of(law.owner), None)
        lags = (rho[..., k + i, None] * x[..., order - 1 - i : -1 - i] for i in range(order))
        later = (x[..., order:] - constant(rho) - pt.add(*lags)) / sigma[..., None]
        return pt.concatenate([first, later], axis=-1)

    def records(z: TensorVariable, parameters: Parameters) -> TensorVariable:
        rho, sigma, law = parameters[:3]
        first = start.records(z[..., :order], parameters_of(law.owner))
        later = constant(rho) + sigma[..., None] * z[..., order:]
        # Row t of the system is x_t less its lags' share; the first values stand by themselves.
        times = np.arange(order + int(steps))
        back = np.where(times[:, None] >= order, times[:, None] - times, 0)
        lags = (rho[..., k + i, None, None] * (back == i + 1) for i in range(order))
        known = pt.concatenate([first, later], axis=-1)[..., None]
        system = np.eye(len(times)) - pt.add(*lags)
        return pt.linalg.solve_triangular(system, known, lower=True)[..., 0]

    return RecordMap(noise, records, is_normal=start.is_normal)


def _law_within(node: Apply, law: TensorVariable, moves: bool) -> RecordMap:
    """Return the map of a law that a series is made of; ``moves`` says whether it moves."""
    own = [moves and not isinstance(x, Constant) for x in parameters_of(law.owner)]
    rule = record_map(law.owner.op, law.owner, own)
    if rule.has_jumps or not law.dtype.startswith("float"):
        raise NoRecordMapError(
            f"{distribution_name(node)} is made of a law with point masses, and {REMEDY}"
        )
    return rule
