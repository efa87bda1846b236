"""One sweep of record-wise Metropolis updates against a log-density without sums to cache.

Each update evaluates the log-density from all records, so a sweep costs n evaluations.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from pymc_dapper.records.kernels.record_sweep import log_gain


# Inlined for the reasons given in `record_sweep`.
@njit(inline="always")
def sweep_by_full_evaluation(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    arrays: tuple[np.ndarray, np.ndarray],
    log_removed: np.ndarray,
    log_added: np.ndarray,
    log_uniforms: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Update the records one by one, each given the outcome of those before it.

    Parameters
    ----------
    log_density : callable
        ``log_density(records, context) -> float``, compiled by numba.
    context : tuple of ndarray
        Inputs of the log-density besides the records.
    arrays : tuple of two ndarrays of float64, shape (n, width)
        Present and proposed values of each record.
    log_removed, log_added : ndarray of float64, shape (n,) or (0,)
        Present and proposed separable log-density of each record; empty if there is none.
    log_uniforms : ndarray of float64, shape (m,)
        As in :func:`~pymc_dapper.records.kernels.block_sweep.sweep_by_blocks`.

    Returns
    -------
    accepted : ndarray of bool, shape (n,)
        Which proposals were accepted.
    log_density : float
        Log-density of the records after the sweep (separable part not included).
    """
    records, proposals = arrays
    width = records.shape[1]
    state = records.copy()
    present = log_density(state, context)
    accepted = np.ones(len(records), dtype=np.bool_)
    separable = log_removed.size > 0
    for i in range(len(log_uniforms)):
        for j in range(width):
            state[i, j] = proposals[i, j]
        proposed = log_density(state, context)
        log_ratio = log_gain(present, proposed)
        if separable:
            log_ratio += log_gain(log_removed[i], log_added[i])
        if log_uniforms[i] < log_ratio:
            accepted[i] = True
            present = proposed
        else:
            accepted[i] = False
            for j in range(width):
                state[i, j] = records[i, j]
    return accepted, present
