"""Where a chain of counts starts: counts that have the known totals and a positive density."""

import numpy as np

from pymc_dapper.counts.compiled.sweep import CompiledCountSweep
from pymc_dapper.counts.kernels.line import LARGEST
from pymc_dapper.counts.reading.description import name_cells
from pymc_dapper.counts.reading.known_totals import totals_of
from pymc_dapper.counts.reading.model import CountReading
from pymc_dapper.counts.reading.start import PossibleStart, find_start

FAR = 1e6
"""Chains don't start below minus this log-density: a slice would take a thousand marks and more, as
many as there are standard deviations to go."""
MOST_APPROACHES = 50
"""Most sweeps towards the release; each at least halves the distance."""


class Starts:
    """Finds counts at which a chain can start.

    Parameters
    ----------
    reading : CountReading
        The reading.
    max_sweeps : int
        Most sweeps that search for a positive density.
    """

    def __init__(self, reading: CountReading, max_sweeps: int):
        self._reading, self._max_sweeps = reading, max_sweeps
        self._totals = totals_of(reading)
        self._search: PossibleStart | None = None

    def with_known_totals(
        self, counts: np.ndarray, given: list[np.ndarray], error: type[Exception]
    ) -> np.ndarray:
        """Return counts with the known totals."""
        known, names = self._totals(given), self._reading.known.factors
        _check_size({f"'{names[k]}'" for k in np.flatnonzero(np.abs(known) > LARGEST)}, error)
        counts = find_start(self._reading.known.matrix, (known, known), names, counts)
        large = self._reading.totals.completed(counts) > LARGEST
        _check_size({name_cells(self._reading, large)} - {""}, error)
        return counts

    def possible(
        self,
        sweep: CompiledCountSweep,
        counts: np.ndarray,
        given: list[np.ndarray],
        rng: np.random.Generator,
        error: type[Exception],
    ) -> np.ndarray:
        """Return counts with the known totals and a positive density."""
        counts = self.with_known_totals(counts, given, error)
        if not np.isfinite(sweep.log_density(counts, given)):
            if self._search is None:
                self._search = PossibleStart(self._reading)
            found = self._search(counts, self._totals(given), given)
            counts = counts if found is None else found
        for _ in range(self._max_sweeps):
            if np.isfinite(sweep.log_density(counts, given)):
                return self._reading.totals.completed(counts)
            counts = sweep(rng, counts, None, given).counts
        raise error(self._impossible())

    def near(
        self, sweep: CompiledCountSweep, counts: np.ndarray, given: list[np.ndarray]
    ) -> np.ndarray:
        """Move to where the log-density isn't far below its maximum; stay if the start isn't."""
        rng = np.random.default_rng(0)
        for _ in range(MOST_APPROACHES):
            if sweep.log_density(counts, given) > -FAR:
                break
            swept = sweep(rng, counts, sweep.everywhere, given)
            counts = swept.counts
            if swept.gain < FAR:  # as low as everywhere
                break
        return counts

    def _impossible(self) -> str:
        names = ", ".join(f"'{rv.name}'" for rv in self._reading.rvs)
        factors = ", ".join(f"'{name}'" for name in self._reading.as_written)
        return (
            f"CountStep found no possible start for the counts {names}: after {self._max_sweeps} "
            f"sweeps the log-density of {factors} is still -inf or nan. "
            "Nor did a search find a table whose sums make all released values possible. "
            "Either no counts fit the release (look for an impossible total, a wrong shape or "
            "scale, a nan), or they are hard to find: then give a start that fits, as initval= "
            "of the variable, or raise max_start_sweeps"
        )


def _check_size(too_large: set[str], error: type[Exception]) -> None:
    if too_large:
        raise error(
            f"the counts are too large at {' and '.join(sorted(too_large))}: CountStep takes at "
            "most 2**53, about 9e15, since larger counts aren't exact in double precision. Look "
            "for a wrong unit, total or rate; or count in larger units"
        )
