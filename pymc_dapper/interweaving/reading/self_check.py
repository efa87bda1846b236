"""A numerical check that records come back from their noise, made before anything is sampled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from pytensor.graph import ancestors
from pytensor.tensor.random.basic import uniform
from pytensor.tensor.random.type import random_generator_type
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.asked_once import log_densities
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import Checked, agree, at_point, log_density_at, rounding
from pymc_dapper.graphs.prior import read_proposals
from pymc_dapper.graphs.prior_draws import Reader, draw_values
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.interweaving.reading.non_centred import NonCentredModel

ROUNDING = 1e-6


@dataclass(frozen=True)
class CheckedNoise(Checked):
    """A state at which the log-density with the noise held fixed is known."""

    uniforms: list[np.ndarray]
    """The uniform variates."""


def check_noise(reading: NonCentredModel, point: Mapping[str, np.ndarray]) -> CheckedNoise:
    """Compare maps and log-density with the model, and return a state and the log-density there.

    At a random state, the records must come back from their noise unchanged. Other parameters must
    move them to records with the same noise. There, the log-density must be the sum of the model's
    factors. The point has all value variables; the parameters' values are used.

    Raises
    ------
    ReadingError
        If a map doesn't bring records back, or if reading and model disagree.
    """
    model, rng = reading.model, np.random.default_rng(0)
    rvs = [model[name] for name in reading.names(reading.records)]
    point = {**point, **(draw_values(reading.view, rvs, rng, point, _draws_of(reading)) or {})}
    uniforms = [rng.random(u.type.shape) for u in reading.uniforms]
    of_affine = [] if reading.affine is None else at_point(model, [reading.affine])(point)
    present = [*(np.asarray(point[x.name]) for x in reading.parameters), *of_affine]
    moved = [x + 0.1 * rng.standard_normal(x.shape) for x in present]
    numbers = [np.asarray(point[x.name]) for x in reading.numbers]
    present, moved = present + numbers, moved + [np.maximum(n - 1, 0) for n in numbers]
    inputs = (*reading.uniforms, *reading.proposed, *reading.proposed_numbers)
    here, there = (dict(zip(inputs, (*uniforms, *x), strict=True)) for x in (present, moved))

    # Apart, since with many records each array is large; and each map once, as it may take long.
    records_at = at_point(model, reading.moved_records)
    given = {x: x.type() for x in reading.moved_records}
    log_density_given = log_density_at(model, rebuild([reading.log_density], given))
    same_records, new_records = records_at(point, here), records_at(point, there)
    here |= zip(given.values(), same_records, strict=True)
    log_density = log_density_given(point, here)
    # Records whose answers no value can give have no noise; the sweep finds no start for them.
    if reading.log_law is None or np.isfinite(log_density):
        records = [np.asarray(point[x.name]) for x in reading.records]
        _check_same(reading, reading.records, same_records, records)
    moved_there = there | dict(zip(given.values(), new_records, strict=True))
    new_log_density = log_density_given(point, moved_there)
    new_values = {x.name: new for x, new in zip(reading.records, new_records, strict=True)}
    moving = (*reading.moving, *reading.numbers)
    at = {x.name: y for x, y in zip(moving, moved, strict=True) if x is not reading.affine}
    elsewhere = {**point, **at, **new_values}
    # Within a step of the cdf, the noise is drawn again.
    without_steps = [set(reading.uniforms).isdisjoint(ancestors([x])) for x in reading.noise]
    if any(without_steps):
        noise_at = at_point(model, list(compress(reading.noise, without_steps)))
        moved_records = list(compress(reading.records, without_steps))
        _check_same(reading, moved_records, noise_at(elsewhere, there), noise_at(point, there))
    factors = log_densities(model, [model[name] for name in reading.factors])
    law = [] if reading.log_law is None else [-reading.log_law]
    expected = log_density_at(model, [*factors, *law])(elsewhere)
    allowed = _rounding(reading)
    comparable = np.isfinite(new_log_density) and not np.isnan(expected)
    if comparable and not agree(new_log_density, expected, allowed):
        raise ReadingError(
            f"InterweaveStep can't read the model exactly: the log-density with the records' noise "
            f"held fixed is {new_log_density:.10g} where the model has {expected:.10g}. Nothing "
            "has been sampled. Please report the model"
        )
    return CheckedNoise(point, log_density, allowed, uniforms)


def _check_same(
    reading: NonCentredModel,
    records: Sequence[TensorVariable],
    found: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
) -> None:
    """Refuse records, by name, that don't come back or whose noise doesn't."""
    for name, a, b in zip(reading.names(records), found, expected, strict=True):
        if np.array_equal(a, b):
            continue  # without working memory
        both = np.isfinite(a) & np.isfinite(b)
        if not np.all(agree(a[both], b[both], ROUNDING)):
            raise ReadingError(
                f"the map from noise to the records '{name}' isn't the inverse of that from the "
                "records to their noise. If the map is your own, `RecordMap.records` must undo "
                "`RecordMap.noise`; else please report the model"
            )


def _draws_of(reading: NonCentredModel) -> Reader:
    """Return a reading that draws the records from the law whose noise is held fixed."""
    if reading.log_law is None or any(x.dtype.startswith("float") for x in reading.records):
        return read_proposals
    return lambda view, rvs: _conditional_draws(reading)


def _conditional_draws(reading: NonCentredModel) -> list[TensorVariable]:
    shape = reading.records[0].type.shape
    _, u = uniform(size=shape, rng=random_generator_type(), return_next_rng=True)
    at = {reading.noise[0]: u, **dict(zip(reading.proposed, reading.parameters, strict=True))}
    return rebuild(reading.moved_records, at)


def _rounding(reading: NonCentredModel) -> float:
    """Return the relative rounding error to expect: that of the least precise number computed.

    Numbers count that depend on no parameter, too, such as constants in single precision.
    """
    names = {x.name for x in (*reading.proposed, *reading.parameters, *reading.records)}
    computed = [x for x in ancestors([reading.log_density]) if x.owner or x.name in names]
    return rounding(computed, [reading.log_density])
