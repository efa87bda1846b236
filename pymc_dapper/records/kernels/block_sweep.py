"""A sweep of record-wise Metropolis updates, block by block.

The present and proposed contributions of all records would be two large matrices: larger than the
processor's caches, and many times the records' memory. So they are made for one block of records at
a time, which is swept before the next. The present ones are made twice, because the sums over all
records come first. If contributions can only be computed together, all records form one block.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from pymc_dapper.records.kernels.sums import add_rows, no_sums


# Inlined for the reasons given in `record_sweep`.
@njit(inline="always")
def sweep_by_blocks(
    decide: Callable[..., float],
    log_density: Callable[..., float],
    context: Any,
    present_rows: Callable[..., np.ndarray],
    proposed_rows: Callable[..., np.ndarray],
    arrays: tuple[np.ndarray, ...],
    n_sums: int,
    records_in_block: int,
    thresholds: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Update the records one by one, each given the outcome of those before it.

    Parameters
    ----------
    decide : callable
        Updates the records of a block:
        :func:`~pymc_dapper.records.kernels.entry_sweep.decide_by_entries` or
        :func:`~pymc_dapper.records.kernels.record_sweep.decide_by_sums`.
    log_density, context
        See there.
    present_rows, proposed_rows : callable
        ``rows(arrays, start, stop) -> ndarray``, compiled by numba: the present and the proposed
        contributions of records ``start`` to ``stop - 1``, with a row for each.
    arrays : tuple of ndarray
        Inputs of the rows. The first has an entry, or a row, for each record.
    n_sums : int
        Number of contributions of a record.
    records_in_block : int
        Number of records in a block.
    thresholds : ndarray of float64, shape (m,)
        A proposal is accepted if it gains more log-density of the sums than this: the logarithm of
        a uniform variate, less what it gains of the record's separable log-density. Only the first
        m records are decided on. The others are absent and add nothing; their proposals are
        accepted.

    Returns
    -------
    accepted : ndarray of bool, shape (n,)
        Which proposals were accepted.
    log_density : float
        Log-density of the sums after the sweep (separable part not included).
    """
    n_present = len(thresholds)
    sums = no_sums(n_sums)
    for start in range(0, n_present, records_in_block):
        stop = min(start + records_in_block, n_present)
        add_rows(sums, present_rows(arrays, start, stop), n_sums)

    accepted = np.ones(len(arrays[0]), dtype=np.bool_)
    final = 0.0
    for start in range(0, max(1, n_present), records_in_block):  # without records, too
        stop = min(start + records_in_block, n_present)
        final = decide(
            log_density,
            context,
            sums,
            present_rows(arrays, start, stop),
            proposed_rows(arrays, start, stop),
            n_sums,
            start,
            thresholds,
            accepted,
        )
    return accepted, final
