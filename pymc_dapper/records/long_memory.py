"""Detect chains whose records have a long memory."""

from collections.abc import Sequence

import numpy as np

from pymc_dapper.graphs.terms.equations import KnownTotals
from pymc_dapper.kernels.effective_draws import effective_draws, effective_if_autoregressive
from pymc_dapper.records.reading.model import ModelReading
from pymc_dapper.records.reading.sufficient_statistics import SufficientStatistics

LOOKS = 32
"""Number of times that the sums are recorded, evenly over a chain's draws."""
SHORTEST_CHAIN = 200
"""With fewer draws, a good chain may look like a bad one."""
FEWEST = 6.0
"""A warning is given below this number of effective draws of a sum. The number is the lower of two
estimates. An AR(1) separates a drifting path from independent draws, of which a few
autocorrelations may not be positive. Sums of autocorrelations find a slow part in a sum that is
mostly fast."""
CRAWLS = 0.5
"""If a larger share of proposals is accepted, the released values don't restrict the records."""


def looks(draws: int) -> list[int]:
    """After which draws of a chain its sums are recorded."""
    return np.linspace(draws / LOOKS, draws, LOOKS).astype(int).tolist()


class LongMemory:
    """Records the numbers on which the mechanisms depend, a few times in a chain.

    These are all sums over records, and the log-densities of factors that depend on records
    otherwise. The number of times doesn't depend on a chain's length: a memory that is short
    relative to the chain does no harm. Exactly known sums are left out: they only move by rounding,
    within an equation's tolerance.
    """

    def __init__(
        self,
        reading: ModelReading,
        seen: SufficientStatistics,
        tune: int,
        draws: int,
        known: KnownTotals | None = None,
    ):
        self._reading = reading
        self._draws = draws
        self._looks = iter([tune + drawn for drawn in looks(draws)])
        self._next = next(self._looks, None)
        self._look = seen
        self._known = [] if known is None else seen.positions(known.single_sums())
        self._values: list[np.ndarray] = []
        self._accepted: list[float] = []
        self._start: list[np.ndarray] = []
        self._still = True

    def look(
        self,
        sweep: int,
        records: Sequence[np.ndarray],
        parameters: Sequence[np.ndarray],
        accepted: float,
    ) -> str | None:
        """Record the state after a sweep if it is time; after the last, say what is slow."""
        if sweep != self._next:
            return None
        self._values.append(self._look(records, parameters))
        self._accepted.append(accepted)
        self._start = self._start or [x.copy() for x in records]
        self._still &= all(map(np.array_equal, records, self._start))
        self._next = next(self._looks, None)
        return self._message() if self._next is None else None

    def _message(self) -> str | None:
        reading = self._reading
        share = float(np.mean(self._accepted))
        names = reading.quoted_names
        chain = f"this chain of {self._draws} sweeps"
        effective = least_effective(np.array(self._values))
        effective[self._known] = np.nan
        if (effective < FEWEST).any():
            # nan, for a constant sum, isn't below any number.
            slowest = self._look.names[int(np.nanargmin(effective))]
            n_slow, n = int((effective < FEWEST).sum()), len(effective)
            others = "" if n_slow == 1 else f", and as few of {n_slow} of all {n}"
            found = (
                f"the records {names} have a long memory: {chain} has hardly more than "
                f"{max(round(np.nanmin(effective)), 1)} effective draws of {slowest}{others}"
            )
        elif self._still and self._others_have_these_sums():
            found, share = f"no record of {names} has moved in {chain}", 0.0
        else:
            return None
        if share > CRAWLS:
            why = (
                f"{share:.0%} of the proposals are accepted, so the released values don't hold the "
                "records: records and parameters follow each other. pmd.sample moves both "
                "together where it can (InterweaveStep)"
            )
        else:
            why = (
                f"{share:.1%} of the proposals are accepted: the release leaves a record hardly "
                "any room to move alone. Draw many times as many"
            )
        return (
            f"DapperStep: {found}. {why}. Don't rely on the draws before several chains, started "
            "at different places, agree"
        )

    def _others_have_these_sums(self) -> bool:
        """Whether other records may have the same sums.

        Counts of all values that a record can have may follow from the sums: in a table of all
        columns, for example. Then records that stay are no fault.
        """
        reading = self._reading
        if reading.separable_factors or not reading.sums:
            return all(x.dtype.kind == "f" for x in self._start)
        values = reading.possible_values
        return values is None or len(values) > 1 + len(self._look.names)


def least_effective(seen: np.ndarray) -> np.ndarray:
    """Return the lower estimate of effective draws of each column, shape (k,), from (n, k) states.

    nan for constant or infinite columns.
    """
    return np.minimum(effective_draws(seen), effective_if_autoregressive(seen))
