"""A numerical check of a reading of a number of records, made before sampling."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import Checked, agree, at_point, log_density_at, rounding
from pymc_dapper.graphs.prior_draws import draw_values
from pymc_dapper.sizes.reading.model import SizeReading


@dataclass(frozen=True)
class CheckedSizes(Checked):
    """A state of the records, with the log-density at each of their numbers."""

    reading: SizeReading
    """The reading; "rows are alike" is corrected if they aren't."""
    ends_with_room: bool
    """Whether the number's prior gives nothing to more records than there is room for."""


def check_size(reading: SizeReading, point: Mapping[str, np.ndarray]) -> CheckedSizes:
    """Compare the log-density at all numbers of records with the model's own at some of them.

    At records drawn from their prior; the point holds all value variables.

    Raises
    ------
    ReadingError
        If reading and model disagree, or if the number's prior allows negative ones.
    """
    model, rng = reading.model, np.random.default_rng(0)
    rvs = [model[name] for name in reading.names(reading.records)]
    drawn = draw_values(reading.view, rvs, rng, point) or {}
    state = {**point, **{name: x for name, x in drawn.items() if np.all(np.isfinite(x))}}
    log_weights, outside = at_point(model, [reading.log_weights, reading.log_prior_outside])(state)
    if outside[0] > -np.inf:
        raise ReadingError(
            f"the prior of '{reading.name}' allows negative numbers, and it is a number of records:"
            " give it a prior on 0, 1, 2, ..., such as pm.Poisson or pm.DiscreteUniform from 0 on"
        )
    written = log_density_at(model, [reading.as_written])
    allowed = rounding(reading.records, [reading.as_written])
    looked_at = {0, 1, 2, reading.room // 2, reading.room - 1, reading.room}
    looked_at |= set(rng.integers(0, reading.room + 1, size=3).tolist())
    for n in sorted(looked_at):
        expected = written({**state, reading.size.name: n})
        if n <= reading.room and not agree(log_weights[n], expected, allowed):
            raise ReadingError(
                f"SizeStep can't read the model exactly: at {reading.name} = {n} the log-density "
                f"of what '{reading.name}' enters is {log_weights[n]:.10g} where the model has "
                f"{expected:.10g}. Nothing has been sampled. Please report the model"
            )
    if reading.tied is None and reading.room > 1:
        order = np.roll(np.arange(reading.room), 1)
        full = {**state, reading.size.name: np.asarray(reading.room)}
        shuffled = {**full, **{x.name: full[x.name][order] for x in reading.records}}
        together = log_density_at(model, [reading.as_written, *reading.log_priors])
        before, after = together(full), together(shuffled)
        if not agree(after, before, allowed):
            reading = replace(reading, tied="the log-density changes if rows change places")
    return CheckedSizes(state, log_weights, allowed, reading, bool(outside[1] == -np.inf))
