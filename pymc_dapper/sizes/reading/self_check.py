"""A numerical check of a reading of a number of records, made before sampling."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import agree, compile_in_python, rounding
from pymc_dapper.graphs.prior_draws import draw_values
from pymc_dapper.sizes.reading.model import SizeReading


class CheckedSizes(NamedTuple):
    """A state of the records at which the log-density at all their numbers is known."""

    reading: SizeReading
    """The reading; "rows are alike" is corrected if they aren't."""
    point: dict[str, np.ndarray]
    """The state."""
    log_weights: np.ndarray
    """The log-density there, at each number."""
    rounding: float
    """By how much of itself it may be off."""
    ends_with_room: bool
    """Whether the number's prior gives nothing to more records than there is room for."""

    def agrees(self, log_weights: np.ndarray) -> bool:
        """Compare with log-densities computed in another way."""
        pairs = zip(log_weights, self.log_weights, strict=True)
        return all(agree(computed, expected, self.rounding) for computed, expected in pairs)


def check_size(reading: SizeReading, point: Mapping[str, np.ndarray]) -> CheckedSizes:
    """Compare the log-density at all numbers of records with the model's own at some of them.

    At records drawn from their prior; the point holds all value variables.

    Raises
    ------
    ReadingError
        If reading and model disagree, or if the number's prior allows negative ones.
    """
    rng = np.random.default_rng(0)
    rvs = [reading.model[name] for name in reading.names(reading.records)]
    drawn = draw_values(reading.view, rvs, rng, point) or {}
    state = {**point, **{name: x for name, x in drawn.items() if np.all(np.isfinite(x))}}
    inputs = [*reading.records, *reading.parameters]
    at_state = [np.asarray(state[x.name]) for x in inputs]
    weights = compile_in_python(
        reading.model, inputs, [reading.log_weights, reading.log_prior_outside]
    )
    log_weights, outside = weights(*at_state)
    if outside[0] > -np.inf:
        raise ReadingError(
            f"the prior of '{reading.name}' allows negative numbers, and it is a number of records:"
            " give it a prior on 0, 1, 2, ..., such as pm.Poisson or pm.DiscreteUniform from 0 on"
        )
    whole = compile_in_python(
        reading.model, [reading.size, *inputs], [reading.as_written, *reading.log_priors]
    )
    allowed = rounding(reading.records, [reading.as_written])
    looked_at = {0, 1, 2, reading.room // 2, reading.room - 1, reading.room}
    looked_at |= set(rng.integers(0, reading.room + 1, size=3).tolist())
    dtype = reading.size.dtype
    for n in sorted(looked_at):
        expected, *_ = whole(np.asarray(n, dtype=dtype), *at_state)
        if n <= reading.room and not agree(log_weights[n], float(expected), allowed):
            raise ReadingError(
                f"SizeStep can't read the model exactly: at {reading.name} = {n} the log-density "
                f"of what '{reading.name}' enters is {log_weights[n]:.10g} where the model has "
                f"{float(expected):.10g}. Nothing has been sampled. Please report the model"
            )
    if reading.tied is None and reading.room > 1:
        n, order = reading.room, np.roll(np.arange(reading.room), 1)
        shuffled = [x[order] if k < len(reading.records) else x for k, x in enumerate(at_state)]
        size = np.asarray(n, dtype=dtype)
        before, after = (float(np.sum(whole(size, *values))) for values in (at_state, shuffled))
        if not agree(after, before, allowed):
            reading = replace(reading, tied="the log-density changes if rows change places")
    return CheckedSizes(reading, state, log_weights, allowed, bool(outside[1] == -np.inf))
