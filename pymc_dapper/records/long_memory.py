"""Notice chains whose records hardly forget where they were."""

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.records.reading.description import written
from pymc_dapper.records.reading.factors import AdditiveFactor
from pymc_dapper.records.reading.model import ModelReading

LOOKS = 64
"""How often it is looked at the sums, evenly spread over a chain's draws."""
SHORTEST_CHAIN = 200
"""In so few draws, a good chain may look like a bad one."""
FEWEST = 6.0
"""With fewer effective draws of a sum, as estimated from the looks, it is told."""
MOST_SUMS = 1_000
"""Of more numbers, so many are looked at."""
CRAWLS = 0.5
"""Where more proposals are accepted, it isn't the released values that hold the records."""


class LongMemory:
    """Looks at what the mechanisms see of the records, a few times in a chain.

    That is each sum over records, and the log-density of factors that see them in another way. The
    looks are as many however long a chain is: a memory that is short beside the chain does no harm.
    """

    def __init__(self, reading: ModelReading, tune: int, draws: int):
        self._reading = reading
        self._draws = draws
        self._looks = iter((tune + np.linspace(draws / LOOKS, draws, LOOKS).astype(int)).tolist())
        self._next = next(self._looks, None)
        watched, self._names = _watched(reading)
        inputs = [*reading.records, *reading.parameters]
        self._evaluate = compile_in_python(reading.model, inputs, watched)
        self._every = -(-sum(map(_size, watched)) // MOST_SUMS)
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
        with np.errstate(all="ignore"):
            values = self._evaluate(*records, *parameters)
        self._seen.append(np.concatenate([np.ravel(x) for x in values])[:: self._every])
        self._accepted.append(accepted)
        self._start = self._start or [x.copy() for x in records]
        self._next = next(self._looks, None)
        return self._message(records) if self._next is None else None

    def _message(self, records: Sequence[np.ndarray]) -> str | None:
        reading = self._reading
        share = float(np.mean(self._accepted))
        names = ", ".join(f"'{name}'" for name in reading.record_names)
        chain = f"this chain of {self._draws} draws"
        effective = effective_draws(np.array(self._seen))
        if (effective < FEWEST).any():
            # nan, where a sum is constant, isn't below anything.
            slowest = self._names[int(np.nanargmin(effective)) * self._every]
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


def effective_draws(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Estimate the number of effective draws of each column, shape (k,), of (n, k) draws.

    It is n over the sum of autocorrelations, up to the first pair of them that isn't positive
    (Geyer, 1992, "Practical Markov chain Monte Carlo", section 3.3). nan for what is constant or
    not finite.
    """
    n = len(values)
    with np.errstate(all="ignore"):
        centred = values - values.mean(axis=0)
        # Rounding makes nothing of a constant.
        varies = np.ptp(values, axis=0) > 1e-12 * np.abs(values).max(axis=0)
        spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=0)) ** 2
        covariance = np.fft.irfft(spectrum, axis=0)[:n]
        correlation = covariance / covariance[0]
        pairs = correlation[: n // 2 * 2].reshape(n // 2, 2, -1).sum(axis=1)
        positive = np.logical_and.accumulate(pairs > 0, axis=0)
        effective = n / np.maximum(2 * (pairs * positive).sum(axis=0) - 1, 1.0)
    return np.where(varies, effective, np.nan)


def _watched(reading: ModelReading) -> tuple[list[TensorVariable], list[str]]:
    """Choose what is looked at, and say what each of its entries is called."""
    graphs = [sum_.total for sum_ in reading.sums]
    names: list[str] = []
    for sum_ in reading.sums:
        name, n = f"the sum of {written(sum_.contributions)}", _size(sum_.total)
        names += [name] if n == 1 else [f"entry {k} of {name}" for k in range(n)]
    others = [x for x in reading.factors if not isinstance(x, AdditiveFactor)]
    names += [f"the log-density of '{factor.name}'" for factor in others]
    return [*graphs, *(factor.as_written for factor in others)], names


def _size(x: TensorVariable) -> int:
    return prod(length or 1 for length in x.type.shape)
