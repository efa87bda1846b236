"""One sweep of record-wise Metropolis updates against a log-density without sums to cache.

Each update evaluates the log-density from all records, so a sweep costs n evaluations.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from pymc_dapper.records.kernels.sums_sweep import log_gain


@njit
def sweep_by_full_evaluation(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    arrays: tuple[np.ndarray, np.ndarray],
    thresholds: np.ndarray,
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
    thresholds : ndarray of float64, shape (m,)
        As in :func:`~pymc_dapper.records.kernels.sums_sweep.sweep_by_blocks`.

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
    for i in range(len(thresholds)):
        for j in range(width):
            state[i, j] = proposals[i, j]
        proposed = log_density(state, context)
        accepted[i] = thresholds[i] < log_gain(present, proposed)
        if accepted[i]:
            present = proposed
        else:
            for j in range(width):
                state[i, j] = records[i, j]
    return accepted, present
