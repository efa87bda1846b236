"""A sweep of record-wise Metropolis updates against a density with one term per entry of a sum.

As :mod:`pymc_dapper.kernels.record_sweep`, for log_density(sums) = sum_k g_k(sums_k): an update
evaluates only the terms whose entries it changes.
"""

from collections.abc import Callable

import numpy as np
from numba import njit

from pymc_dapper.kernels.record_sweep import log_gain


@njit(inline="always")
def sweep_by_entries(
    log_term: Callable[..., float],
    context: np.ndarray,
    removed: np.ndarray,
    added: np.ndarray,
    log_removed: np.ndarray,
    log_added: np.ndarray,
    log_uniforms: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Update one record after another, each given the outcome for those before it.

    Parameters
    ----------
    log_term : callable
        ``log_term(entry, values) -> float``, compiled by numba: the term of an entry of the sums,
        whose values of the context are ``values``.
    context : ndarray of float64, shape (d, m)
        What the terms depend on besides the sums, one row for each entry.
    removed, added, log_removed, log_added, log_uniforms
        As in :func:`~pymc_dapper.kernels.record_sweep.sweep_records`.

    Returns
    -------
    accepted : ndarray of bool, shape (n,)
        Which proposals were taken.
    log_density : float
        Sum of the terms after the sweep.
    """
    n_records, n_sums = removed.shape
    sums = np.zeros(n_sums)
    for i in range(n_records):
        for j in range(n_sums):
            sums[j] += removed[i, j]
    terms = np.empty(n_sums)
    n_impossible = 0
    for j in range(n_sums):
        terms[j] = log_term(sums[j], context[j])
        n_impossible += not np.isfinite(terms[j])

    changed = np.empty(n_sums, dtype=np.int64)
    proposed = np.empty(n_sums)
    accepted = np.empty(n_records, dtype=np.bool_)
    separable = log_removed.size > 0
    for i in range(n_records):
        n_changed = 0
        gain = 0.0
        still_impossible = n_impossible
        for j in range(n_sums):
            if removed[i, j] != added[i, j]:
                term = log_term(sums[j] - removed[i, j] + added[i, j], context[j])
                gain += term - terms[j]
                still_impossible += (not np.isfinite(term)) - (not np.isfinite(terms[j]))
                changed[n_changed] = j
                proposed[n_changed] = term
                n_changed += 1
        # As log_gain: an impossible state has nothing to lose, and is never entered from another.
        if n_impossible > 0:
            gain = 0.0
        elif still_impossible > 0:
            gain = -np.inf
        if separable:
            gain += log_gain(log_removed[i], log_added[i])
        accepted[i] = log_uniforms[i] < gain
        if accepted[i]:
            n_impossible = still_impossible
            for c in range(n_changed):
                j = changed[c]
                sums[j] += added[i, j] - removed[i, j]
                terms[j] = proposed[c]
    return accepted, terms.sum()
