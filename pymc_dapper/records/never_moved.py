"""Detect records that no sweep can change."""

from collections.abc import Sequence

import numpy as np

from pymc_dapper.records.reading.factors import SeparableFactor
from pymc_dapper.records.reading.model import ModelReading

LOOKS = 50
"""How often tuning checks which records have moved."""
RECORDS = 20
"""Number of unmoved records that are tried."""
TRIES = 20
"""Number of other values tried for each."""


class NeverMoved:
    """Finds records that didn't move in tuning because no change of a single record is possible.

    ``exempt`` (shape (n,)) marks records that other moves can take anywhere. The start is possible
    already.

    Attributes
    ----------
    is_done : bool
        Whether there is nothing more to look at: all records have moved, or tuning is over.
    """

    def __init__(
        self,
        reading: ModelReading,
        exempt: np.ndarray,
        start: Sequence[np.ndarray],
        tuning_sweeps: int,
    ):
        self._reading = reading
        self._still = ~exempt
        self._start = [x.copy() for x in start]
        self._every = max(1, tuning_sweeps // LOOKS)
        self._sweeps = tuning_sweeps
        self.is_done = tuning_sweeps == 0 or not self._still.any()

    def look(
        self, sweep: int, records: Sequence[np.ndarray], parameters: Sequence[np.ndarray]
    ) -> str | None:
        """Check at times which records have moved; after the last sweep, say which can't."""
        ends = sweep >= self._sweeps
        if sweep % self._every == 0 or ends:
            for x, first in zip(records, self._start, strict=True):
                same = np.asarray(x == first).reshape(len(x), -1)
                self._still &= same.all(axis=1)
            self.is_done = ends or not self._still.any()
        return self._message(records, parameters) if ends else None

    def _message(
        self, records: Sequence[np.ndarray], parameters: Sequence[np.ndarray]
    ) -> str | None:
        """Name the records that can't move alone; None if there are none.

        Records that are known by themselves, from their prior or from a separable factor, don't
        count: only factors of several records do.
        """
        reading = self._reading
        others = [x for x in reading.factors if not isinstance(x, SeparableFactor)]
        rng = np.random.default_rng(0)
        candidates = rng.permutation(np.flatnonzero(self._still))[:RECORDS]
        if not others or not len(candidates):
            return None
        written = [x.as_written for x in others]
        separable = [x.as_written for x in reading.factors if isinstance(x, SeparableFactor)]
        terms = [*written, *separable, *reading.log_priors]
        log_densities, propose = reading.in_python(terms), reading.proposing_in_python()
        tried = dict.fromkeys(candidates.tolist(), 0)
        impossible: dict[str, None] = {}
        for each in rng.spawn(TRIES):
            proposals, _ = propose(each, records, parameters)
            for i in list(tried):
                changed = [x.copy() for x in records]
                for x, new in zip(changed, proposals, strict=True):
                    x[i] = new[i]
                pairs = zip(changed, records, strict=True)
                if all(np.array_equal(x, old) for x, old in pairs):
                    continue
                with np.errstate(all="ignore"):
                    found = [np.isfinite(np.sum(x)) for x in log_densities(*changed, *parameters)]
                if not all(found[len(others) :]):
                    continue
                if all(found):
                    del tried[i]
                    continue
                tried[i] += 1
                by = [x.name for x, ok in zip(others, found, strict=False) if not ok]
                impossible.update(dict.fromkeys(by))
        n_stuck = sum(n > 0 for n in tried.values())
        if n_stuck == 0:
            return None
        factors = ", ".join(f"'{name}'" for name in impossible)
        share = "" if len(candidates) == np.count_nonzero(self._still) else "at least "
        some = f"{share}{n_stuck} of {reading.n_records} records of {reading.quoted_names}"
        return (
            f"DapperStep: {some} never moved while tuning. All changes of a single record that "
            f"were tried are ruled out by {factors}. Unless these records are known exactly, the "
            "draws are not from the posterior. If sums over records are known exactly, state them "
            "with pmd.invariant: pairs of records then change together. Otherwise give the "
            "constraint some noise"
        )
