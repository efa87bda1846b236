"""Notice chains whose records hardly forget where they were."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pymc_dapper.kernels.effective_draws import effective_draws, effective_if_autoregressive
from pymc_dapper.records.reading.known_totals import KnownTotals
from pymc_dapper.records.reading.model import ModelReading
from pymc_dapper.records.reading.seen import Seen

LOOKS = 32
"""How often it is looked at the sums, evenly spread over a chain's draws."""
SHORTEST_CHAIN = 200
"""In so few draws, a good chain may look like a bad one."""
FEWEST = 6.0
"""With fewer effective draws of a sum, as estimated from the looks, it is told. By the lower of two
estimates, as each sees what the other doesn't: that of an autoregression tells a path that drifts
from one of independent draws, which may well have a few autocorrelations that aren't positive; sums
of autocorrelations see what is slow of a sum that is for the most part fast."""
CRAWLS = 0.5
"""Where more proposals are accepted, it isn't the released values that hold the records."""


class LongMemory:
    """Looks at what the mechanisms see of the records, a few times in a chain.

    That is each sum over records, and the log-density of factors that see them in another way. The
    looks are as many however long a chain is: a memory that is short beside the chain does no harm.
    What is to be looked at is kept until it is worth a call. Sums that are known exactly have
    nothing to forget: they move by rounding, within what an equation leaves open.
    """

    def __init__(
        self,
        reading: ModelReading,
        seen: Seen,
        tune: int,
        draws: int,
        known: KnownTotals | None = None,
    ):
        self._reading = reading
        self._draws = draws
        self._looks = iter((tune + np.linspace(draws / LOOKS, draws, LOOKS).astype(int)).tolist())
        self._next = next(self._looks, None)
        self._look = seen
        self._known = [] if known is None else seen.positions(known.single_sums())
        self._kept: list[tuple[list[np.ndarray], list[np.ndarray]]] = []
        self._seen: list[NDArray[np.float64]] = []
        self._accepted: list[float] = []
        self._start: list[np.ndarray] = []

    def look(
        self,
        sweep: int,
        records: Sequence[np.ndarray],
        parameters: Sequence[np.ndarray],
        accepted: float,
    ) -> str | None:
        """Look at the state after a sweep, if it is time to; say at the last what is slow."""
        if sweep != self._next:
            return None
        state = [x.copy() for x in records], [x.copy() for x in parameters]
        self._kept.append(state)
        self._accepted.append(accepted)
        self._start = self._start or state[0]
        self._next = next(self._looks, None)
        if self._next is None or len(self._kept) == self._look.at_once:
            self._seen.extend(self._look.of_all(self._kept))
            self._kept = []
        return self._message(records) if self._next is None else None

    def _message(self, records: Sequence[np.ndarray]) -> str | None:
        reading = self._reading
        share = float(np.mean(self._accepted))
        names = reading.quoted_names
        chain = f"this chain of {self._draws} draws"
        effective = least_effective(np.array(self._seen))
        effective[self._known] = np.nan
        if (effective < FEWEST).any():
            # nan, where a sum is constant, isn't below anything.
            slowest = self._look.names[int(np.nanargmin(effective))]
            n_slow, n = int((effective < FEWEST).sum()), len(effective)
            others = "" if n_slow == 1 else f", and as few of {n_slow} of all {n}"
            found = (
                f"the records {names} have a long memory: {chain} has hardly more than "
                f"{max(round(np.nanmin(effective)), 1)} effective draws of {slowest}{others}"
            )
        elif self._stand_still(records):
            found, share = f"no record of {names} has moved in {chain}", 0.0
        else:
            return None
        if share > CRAWLS:
            why = (
                f"{share:.0%} of the proposals are accepted, so it isn't the released values that "
                "hold the records: they and the parameters follow each other. pmd.sample moves "
                "both together where it can (InterweaveStep)"
            )
        else:
            why = (
                f"{share:.1%} of the proposals are accepted: what was released leaves a record "
                "hardly any room to move by itself. Draw many times as many"
            )
        return (
            f"DapperStep: {found}. {why}. Don't rely on the draws before several chains, started "
            "at different places, agree"
        )

    def _stand_still(self, records: Sequence[np.ndarray]) -> bool:
        """Whether continuous records are all where they were."""
        return all(
            x.dtype.kind == "f" and np.array_equal(x, start)
            for x, start in zip(records, self._start, strict=True)
        )


def least_effective(seen: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower estimate of effective draws of each column, shape (k,), from (n, k) looks.

    nan for what is constant or not finite.
    """
    return np.minimum(effective_draws(seen), effective_if_autoregressive(seen))
