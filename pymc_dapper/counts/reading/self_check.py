"""A numerical check of a reading of counts."""

from collections.abc import Sequence

import numpy as np

from pymc_dapper.counts.reading.model import CountReading
from pymc_dapper.graphs.errors import FAILURES, ReadingError
from pymc_dapper.graphs.evaluation import TOLERANCE, agree, compile_in_python
from pymc_dapper.graphs.flat import split


class WrittenFactors:
    """The factors of the counts as the model computes them, given its parameters and data."""

    def __init__(self, reading: CountReading, given: Sequence[np.ndarray]):
        inputs = [*reading.counts, *reading.parameters, *reading.data.values()]
        outputs = list(reading.as_written.values())
        self._evaluate = compile_in_python(reading.model, inputs, outputs)
        self._reading = reading
        self._given = list(given)

    def __call__(self, counts: np.ndarray) -> np.ndarray:
        """Log-density of each factor; a ReadingError if they can't be evaluated."""
        table = self._reading.totals.completed(counts)
        try:
            values = self._evaluate(*by_variable(self._reading, table), *self._given)
        except FAILURES as error:
            names = ", ".join(f"'{name}'" for name in self._reading.as_written)
            raise ReadingError(f"{names} can't be evaluated: {error}") from error
        return np.array([float(value) for value in values])


def by_variable(reading: CountReading, counts: np.ndarray) -> list[np.ndarray]:
    """Split a vector of all cells into the values of the count variables."""
    parts = split(counts, [count.type.shape for count in reading.counts])
    return [part.astype(x.dtype) for part, x in zip(parts, reading.counts, strict=True)]


def in_cells(values: Sequence[np.ndarray]) -> np.ndarray:
    """Join the values of the count variables into a vector of all cells."""
    return np.concatenate([np.ravel(x) for x in values]).astype(np.int64)


def check_gain(written: WrittenFactors, before: np.ndarray, after: np.ndarray, gain: float) -> None:
    """Refuse a reading whose ``gain`` in log-density differs from the model's."""
    at_before, at_after = written(before), written(after)
    expected = float(at_after.sum() - at_before.sum())
    size = np.abs(at_before).sum() + np.abs(at_after).sum()
    if not (np.isfinite(expected) and agree(gain, expected, TOLERANCE["float64"], size)):
        raise ReadingError(
            f"CountStep can't read the model exactly: moves changed the log-density by "
            f"{expected:.10g}, but by {gain:.10g} as it was read. Nothing has been sampled. This "
            "is a fault of pymc_dapper's, or of what was registered with `action_of`; please "
            "report the model"
        )
