"""A numerical check that records come back from their noise, made before anything is sampled."""

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from pytensor.graph import ancestors
from pytensor.tensor.random.basic import uniform
from pytensor.tensor.random.type import random_generator_type
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.asked_once import log_densities
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import TOLERANCE, agree, compile_in_python
from pymc_dapper.graphs.prior import read_proposals
from pymc_dapper.graphs.prior_draws import Reader, draw_values
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.interweaving.reading.non_centred import NonCentredModel

ROUNDING = 1e-6


class CheckedNoise(NamedTuple):
    """A state at which the log-density with the noise held fixed is known."""

    records: list[np.ndarray]
    """The records that move."""
    uniforms: list[np.ndarray]
    """The uniform variates."""
    log_density: float
    """The log-density there, with the parameters of the initial point."""
    rounding: float
    """The relative rounding error to expect."""

    def agrees(self, log_density: float) -> bool:
        """Compare with a log-density computed in another way."""
        return agree(log_density, self.log_density, self.rounding)


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
    rng = np.random.default_rng(0)
    rvs = [reading.model[name] for name in reading.names(reading.records)]
    point = {**point, **(draw_values(reading.view, rvs, rng, point, _draws_of(reading)) or {})}
    uniforms = [rng.random(u.type.shape) for u in reading.uniforms]
    present = _moving(reading, point)
    moved = [x + 0.1 * rng.standard_normal(x.shape) for x in present]
    numbers = [np.asarray(point[x.name]) for x in reading.numbers]
    present, moved = present + numbers, moved + [np.maximum(n - 1, 0) for n in numbers]
    rounding = _rounding(reading)
    records = [np.asarray(point[x.name]) for x in reading.records]
    variables = [*reading.parameters, *reading.numbers, *reading.records, *reading.given]
    moving = [*reading.moving, *reading.numbers]

    def function_of(
        graphs: Sequence[TensorVariable], given: Sequence[TensorVariable] = ()
    ) -> Callable[..., list[np.ndarray]]:
        proposed = [*reading.proposed, *reading.proposed_numbers]
        inputs = [*variables, *reading.uniforms, *proposed, *given]
        function = compile_in_python(reading.model, inputs, graphs)

        def evaluate(
            at: Mapping[str, np.ndarray],
            to: Sequence[np.ndarray],
            values: Sequence[np.ndarray] = (),
        ) -> Any:
            new = [np.asarray(y, dtype=x.dtype) for x, y in zip(moving, to, strict=True)]
            return function(*(np.asarray(at[x.name]) for x in variables), *uniforms, *new, *values)

        return evaluate

    # Apart, since with many records each array is large; and each map once, as it may take long.
    records_at = function_of(reading.moved_records)
    given = [x.type() for x in reading.moved_records]
    at_given = dict(zip(reading.moved_records, given, strict=True))
    log_density_at = function_of(rebuild([reading.log_density], at_given), given)
    same_records, new_records = records_at(point, present), records_at(point, moved)
    log_density = float(*log_density_at(point, present, same_records))
    # Records whose answers no value can give have no noise; the sweep finds no start for them.
    if reading.log_law is None or np.isfinite(log_density):
        _check_same(reading, reading.records, same_records, records)
    new_log_density = float(*log_density_at(point, moved, new_records))
    new_values = {x.name: new for x, new in zip(reading.records, new_records, strict=True)}
    at = {x.name: y for x, y in zip(moving, moved, strict=True) if x is not reading.affine}
    elsewhere = {**point, **at, **new_values}
    # Within a step of the cdf, the noise is drawn again.
    without_steps = [set(reading.uniforms).isdisjoint(ancestors([x])) for x in reading.noise]
    if any(without_steps):
        noise_at = function_of(list(compress(reading.noise, without_steps)))
        moved_records = list(compress(reading.records, without_steps))
        _check_same(reading, moved_records, noise_at(elsewhere, moved), noise_at(point, moved))
    expected = _as_written(reading, elsewhere)
    comparable = np.isfinite(new_log_density) and not np.isnan(expected)
    if comparable and not agree(new_log_density, expected, rounding):
        raise ReadingError(
            f"InterweaveStep can't read the model exactly: the log-density with the records' noise "
            f"held fixed is {new_log_density:.10g} where the model has {expected:.10g}. Nothing "
            "has been sampled. Please report the model"
        )
    return CheckedNoise(records, uniforms, log_density, rounding)


def _moving(reading: NonCentredModel, point: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return the moved values at a point."""
    present = [np.asarray(point[x.name]) for x in reading.parameters]
    if reading.affine is not None:
        variables = [*reading.parameters, *reading.records, *reading.given]
        affine_of = compile_in_python(reading.model, variables, [reading.affine])
        present += affine_of(*(np.asarray(point[x.name]) for x in variables))
    return present


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
        if not np.allclose(a[both], b[both], rtol=ROUNDING, atol=ROUNDING):
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
    _, u = uniform(
        size=reading.records[0].type.shape, rng=random_generator_type(), return_next_rng=True
    )
    at = {reading.noise[0]: u, **dict(zip(reading.proposed, reading.parameters, strict=True))}
    return rebuild(reading.moved_records, at)


def _as_written(reading: NonCentredModel, point: Mapping[str, np.ndarray]) -> float:
    """Sum of the model's factors, less the law whose noise is held fixed."""
    model = reading.model
    factors = log_densities(model, [model[name] for name in reading.factors])
    total = sum(factor.sum() for factor in factors)
    evaluate = compile_in_python(model, model.value_vars, [total])
    [expected] = evaluate(*(np.asarray(point[x.name], dtype=x.dtype) for x in model.value_vars))
    if reading.log_law is not None:
        inputs = [*reading.parameters, *reading.records, *reading.given]
        [log_law] = compile_in_python(model, inputs, [reading.log_law])(
            *(np.asarray(point[x.name], dtype=x.dtype) for x in inputs)
        )
        expected = expected - log_law
    return float(expected)


def _rounding(reading: NonCentredModel) -> float:
    """Return the relative rounding error to expect: that of the least precise number computed.

    Numbers count that depend on no parameter, too, such as constants in single precision.
    """
    names = {x.name for x in (*reading.proposed, *reading.parameters, *reading.records)}
    computed = (x for x in ancestors([reading.log_density]) if x.owner or x.name in names)
    single = any(getattr(x.type, "dtype", None) in ("float16", "float32") for x in computed)
    return TOLERANCE["float32" if single else "float64"]
