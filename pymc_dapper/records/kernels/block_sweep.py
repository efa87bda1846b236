"""A sweep of record-wise Metropolis updates, block by block.

Where each record has contributions of its own, those of all records, present and proposed, are two
matrices that outgrow the processor's caches, and the memory that records take many times. Here they
are computed for a block of records at a time, which is swept before the next. The present ones are
computed twice, since the sums over all records come first.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from pymc_dapper.records.kernels.sums import add_rows, no_sums

RECORDS_IN_BLOCK = 2048
"""Contributions of so many records to a dozen sums fit into the cache of a core."""


# Inlined for the reasons given in `record_sweep`.
@njit(inline="always")
def sweep_by_blocks(
    go_on: Callable[..., float],
    log_density: Callable[..., float],
    context: Any,
    present_rows: Callable[..., np.ndarray],
    proposed_rows: Callable[..., np.ndarray],
    arrays: tuple[np.ndarray, ...],
    n_sums: int,
    records_in_block: int,
    log_removed: np.ndarray,
    log_added: np.ndarray,
    log_uniforms: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Update one record after another, each given the outcome for those before it.

    Parameters
    ----------
    go_on : callable
        Updates the records of a block:
        :func:`~pymc_dapper.records.kernels.entry_sweep.go_on_by_rows` or
        :func:`~pymc_dapper.records.kernels.record_sweep.go_on_with_records`.
    log_density, context
        As there.
    present_rows, proposed_rows : callable
        ``rows(arrays, start, stop) -> ndarray``, compiled by numba: the present and the proposed
        contributions of the records from ``start`` up to ``stop``, with a row for each.
    arrays : tuple of ndarray
        What these are computed from. The first is of present records.
    n_sums : int
        Contributions of a record.
    records_in_block : int
        Records in a block.
    log_removed, log_added, log_uniforms
        As in :func:`~pymc_dapper.records.kernels.record_sweep.sweep_records`.

    Returns
    -------
    accepted : ndarray of bool, shape (n,)
        Which proposals were taken.
    log_density : float
        Log-density of the sums after the sweep (separable part not included).
    """
    n_records = len(arrays[0])
    sums = no_sums(n_sums)
    for start in range(0, n_records, records_in_block):
        stop = min(start + records_in_block, n_records)
        add_rows(sums, present_rows(arrays, start, stop), n_sums)

    accepted = np.empty(n_records, dtype=np.bool_)
    final = 0.0
    for start in range(0, n_records, records_in_block):
        stop = min(start + records_in_block, n_records)
        final = go_on(
            log_density,
            context,
            sums,
            present_rows(arrays, start, stop),
            proposed_rows(arrays, start, stop),
            n_sums,
            start,
            log_removed,
            log_added,
            log_uniforms,
            accepted,
        )
    return accepted, final
