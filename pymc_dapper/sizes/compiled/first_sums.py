"""Sums over the first 0, 1, ..., N rows, compiled."""

from collections.abc import Callable

from pymc_dapper.backend.numba_ops import compiles, numba_njit
from pymc_dapper.sizes.kernels.first_sums import sums_of_first
from pymc_dapper.sizes.reading.first_sums import FirstSums


@compiles(FirstSums)
def _first_sums(op: FirstSums) -> Callable:
    @numba_njit
    def first_sums(rows):  # type: ignore[no-untyped-def]
        sums = sums_of_first(rows.reshape((len(rows), -1)))
        return sums.reshape((len(rows) + 1, *rows.shape[1:]))

    return first_sums
