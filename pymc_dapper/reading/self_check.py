"""A numerical check that a model was read rightly, made before anything is sampled."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pymc.pytensorf import compile as pymc_compile
from pytensor.graph.basic import Variable

from pymc_dapper.reading.errors import ReadingError
from pymc_dapper.reading.factors import AdditiveFactor, Factor, FullFactor, SeparableFactor
from pymc_dapper.reading.graphs import dependent_variables, rebuild
from pymc_dapper.reading.model import ModelReading

# Sums over records are formed in another order than in the model: rounding, far below this.
TOLERANCE = {"float64": 1e-8, "float32": 1e-5}


class CheckedState(NamedTuple):
    """A state of the records at which the model's own log-density is known.

    Attributes
    ----------
    records : list of ndarray
        The state.
    log_density : float
        Of all factors together, at ``records``, as the model has them.
    tolerance : float
        Relative rounding error to expect.
    """

    records: list[np.ndarray]
    log_density: float
    tolerance: float

    def agrees(self, log_density: float) -> bool:
        """Compare with a log-density computed in another way."""
        return _same(log_density, self.log_density, self.tolerance)


def check_reading(reading: ModelReading, point: Mapping[str, np.ndarray]) -> CheckedState:
    """Compare what the sweep will compute with the model's own log-density.

    At two random states of the records and one that mixes their rows, each record's contributions
    must depend on that record alone, and a factor computed from cached sums must equal the factor
    as the model has it.

    Parameters
    ----------
    reading : ModelReading
        How the model was read.
    point : dict of str to ndarray
        Values of the value variables; the parameters' are used.

    Returns
    -------
    CheckedState
        A state of the records, and the log-density there.

    Raises
    ------
    ReadingError
        If the reading and the model disagree: the message names the factor.
    """
    parameters = [point[x.name] for x in reading.parameters]
    try:
        propose = _compile(
            reading, [*reading.randomness.inputs, *reading.parameters], reading.proposals
        )
    except NotImplementedError as error:
        raise _undrawable(reading, error) from error
    # For the states looked at here only. Each call gets its own: a function leaves its input alone.
    rng, *rngs = np.random.default_rng(0).spawn(3)
    try:
        first, second = (propose(*reading.randomness.draw(each), *parameters) for each in rngs)
    except Exception as error:
        raise _undrawable(reading, error) from error
    # At random, since a rule may be wrong in a way that keeps a regular pattern.
    changed = rng.permutation(reading.n_records) % 2 == 0
    mixed = [_rows(changed, b, a) for a, b in zip(first, second, strict=True)]

    log_density = 0.0
    for factor in reading.factors:
        evaluate = _evaluator(reading, factor, [factor.as_written], parameters)
        expected = float(evaluate(mixed)[0])
        log_density += expected
        if isinstance(factor, FullFactor):
            continue  # evaluated as the model has it
        evaluate = _evaluator(reading, factor, _per_record(factor), parameters)
        at_first, at_second, at_mixed = (evaluate(state) for state in (first, second, mixed))
        for a, b, both in zip(at_first, at_second, at_mixed, strict=True):
            if not np.allclose(both, _rows(changed, b, a), rtol=1e-10, atol=1e-12, equal_nan=True):
                raise _misread(factor, "what it computes for one record depends on others")
        if isinstance(factor, AdditiveFactor):
            totals = [
                a.sum(axis=0) + (b - a).sum(axis=0) for a, b in zip(at_first, at_mixed, strict=True)
            ]
            computed = _from_sums(reading, factor, totals, [*mixed, *parameters])
        else:
            [log_densities] = at_mixed
            computed = log_densities.sum()
        if not _same(float(computed), expected, _tolerance(reading, [factor])):
            raise _misread(factor, f"it is {expected:.10g}, but record by record {computed:.10g}")
    return CheckedState(mixed, log_density, _tolerance(reading, reading.factors))


def _evaluator(
    reading: ModelReading,
    factor: Factor,
    outputs: Sequence[Variable],
    parameters: Sequence[np.ndarray],
) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """Compile graphs of a factor as a function of the records."""
    compiled = _compile(reading, [*reading.records, *reading.parameters], outputs)

    def evaluate(records: Sequence[np.ndarray]) -> list[np.ndarray]:
        try:
            return list(compiled(*records, *parameters))
        except Exception as error:
            raise ReadingError(
                f"'{factor.name}' can't be evaluated at the initial point: {error}"
            ) from error

    return evaluate


def _from_sums(
    reading: ModelReading,
    factor: AdditiveFactor,
    sums: Sequence[np.ndarray],
    point: Sequence[np.ndarray],
) -> float:
    """Evaluate the factor at sums that were updated record by record."""
    totals = [sum_.total for sum_ in factor.sums]
    cached = [total.type() for total in totals]
    [at_sums] = rebuild([factor.log_density], dict(zip(totals, cached, strict=True)))
    # Where a shape isn't known beforehand, the function of the sums still asks the records for it.
    evaluate = _compile(reading, [*cached, *reading.records, *reading.parameters], [at_sums])
    values = [value.astype(total.dtype) for value, total in zip(sums, totals, strict=True)]
    return float(evaluate(*values, *point)[0])


def _same(computed: float, expected: float, tolerance: float) -> bool:
    if not np.isfinite(expected):
        return not np.isfinite(computed)
    return bool(abs(computed - expected) <= tolerance * (1 + abs(expected)))


def _tolerance(reading: ModelReading, factors: Sequence[Factor]) -> float:
    """Return the rounding to expect, by the least precise number computed from the records."""
    computed = dependent_variables(reading.records, [factor.as_written for factor in factors])
    single = any(getattr(x.type, "dtype", None) in ("float16", "float32") for x in computed)
    return TOLERANCE["float32" if single else "float64"]


def _undrawable(reading: ModelReading, error: Exception) -> ReadingError:
    names = ", ".join(f"'{name}'" for name in reading.record_names)
    return ReadingError(
        f"the prior of the records {names} can't be drawn from, and DapperStep proposes records "
        f"from their prior: {error}. Use a proper distribution; give a CustomDist a `dist` or a "
        "`random` function"
    )


def _per_record(factor: AdditiveFactor | SeparableFactor) -> list[Variable]:
    if isinstance(factor, AdditiveFactor):
        return [sum_.contributions for sum_ in factor.sums]
    return [factor.log_densities]


def _rows(which: np.ndarray, yes: np.ndarray, no: np.ndarray) -> np.ndarray:
    return np.where(which.reshape((-1,) + (1,) * (yes.ndim - 1)), yes, no)


def _compile(reading: ModelReading, inputs: Sequence[Variable], outputs: Sequence[Variable]):  # type: ignore[no-untyped-def]
    # Python mode: each function is called a few times at most.
    with reading.model:
        return pymc_compile(
            list(inputs), list(outputs), mode="FAST_COMPILE", on_unused_input="ignore"
        )


def _misread(factor: Factor, why: str) -> ReadingError:
    return ReadingError(
        f"DapperStep can't read the factor '{factor.name}' exactly: {why}. Nothing has been "
        "sampled. If the records lie far from zero compared with how they vary, digits are lost "
        "in a variance or the like: subtract a public constant from them first. Otherwise this is "
        "a fault of pymc_dapper's, or of a rule registered with `follow_records`; please report "
        "the model"
    )
