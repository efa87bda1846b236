"""A sweep of record-wise Metropolis updates against a density with one term per entry of a sum.

As :mod:`~pymc_dapper.records.kernels.record_sweep`, for log_density(sums) = sum_k g_k(sums_k): an
update evaluates only the terms whose entries it changes.
"""

from collections.abc import Callable

import numpy as np
from numba import njit

from pymc_dapper.kernels.fast_math import is_finite
from pymc_dapper.records.kernels.record_sweep import log_gain
from pymc_dapper.records.kernels.rows import Changes, find_undecided, pair_of_rows, sum_of_rows
from pymc_dapper.records.kernels.sums import RUN, Sums, end_run, plus

AT_A_TIME = 1024
"""Records among which those to decide on are found at a time: few enough to stay in the cache."""


@njit(inline="always")
def decisive_gain(gain: float, n_impossible: int) -> float:
    """Apply the rule of `log_gain`, where so many of the present terms are impossible."""
    if n_impossible > 0:
        return 0.0
    return gain if is_finite(gain) else -np.inf


@njit(inline="always")
def sweep_by_entries(
    log_term: Callable[..., float],
    context: np.ndarray,
    changes: Changes,
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
    changes, log_removed, log_added, log_uniforms
        As in :func:`~pymc_dapper.records.kernels.record_sweep.sweep_records`.

    Returns
    -------
    accepted : ndarray of bool, shape (n,)
        Which proposals were taken.
    log_density : float
        Sum of the terms after the sweep.
    """
    sums = sum_of_rows(changes)
    total, change, _ = sums
    removed, added, present, proposed, differing = changes
    n_records, n_sums = len(present), removed.shape[1]
    terms = np.empty(n_sums)
    n_impossible = 0
    for j in range(n_sums):
        terms[j] = log_term(total[j], context[j])
        n_impossible += not is_finite(terms[j])

    proposed_terms = np.empty(n_sums)
    accepted = np.ones(n_records, dtype=np.bool_)
    separable = log_removed.size > 0
    undecided = np.empty(AT_A_TIME, dtype=np.uint32)
    n_changes = 0
    for start in range(0, n_records, AT_A_TIME):
        stop = min(start + AT_A_TIME, n_records)
        n_undecided = find_undecided(changes, separable, start, stop, undecided)
        for i in undecided[:n_undecided]:
            a, b = present[i], proposed[i]
            columns = differing[pair_of_rows(changes, i)]
            gain = 0.0
            for c in range(1, columns[0] + 1):
                j = columns[c]
                proposed_terms[j] = terms[j]
                if removed[a, j] != added[b, j]:
                    entry = plus(total[j], change[j] + (added[b, j] - removed[a, j]))
                    proposed_terms[j] = log_term(entry, context[j])
                    gain += proposed_terms[j] - terms[j]
            gain = decisive_gain(gain, n_impossible)
            if separable:
                gain += log_gain(log_removed[i], log_added[i])
            accepted[i] = log_uniforms[i] < gain
            if accepted[i]:
                for c in range(1, columns[0] + 1):
                    j = columns[c]
                    if n_impossible > 0:
                        n_impossible -= not is_finite(terms[j])
                        n_impossible += not is_finite(proposed_terms[j])
                    change[j] += added[b, j] - removed[a, j]
                    terms[j] = proposed_terms[j]
        n_changes += n_undecided
        if n_changes >= n_sums:  # with many sums, so much work is done where many records change
            end_run(sums)
            n_changes = 0
    return accepted, terms.sum()


@njit(inline="always")
def go_on_by_rows(
    log_term: Callable[..., float],
    context: np.ndarray,
    sums: Sums,
    removed: np.ndarray,
    added: np.ndarray,
    n_sums: int,
    start: int,
    log_removed: np.ndarray,
    log_added: np.ndarray,
    log_uniforms: np.ndarray,
    accepted: np.ndarray,
) -> float:
    """Update the records from ``start`` on, as :func:`sweep_by_entries` does all.

    Parameters
    ----------
    sums : Sums, of shape (d,)
        Sums over all records. Overwritten with those after it.
    removed, added : ndarray of float64, shape (m, d)
        Present and proposed contributions of these records, a row for each. Nearly all differ, so
        that those that do aren't looked for.
    n_sums : int
        Contributions of a record. As a constant, it saves a record's update all branches.
    start : int
        Number of the first of these records.
    accepted : ndarray of bool, shape (n,)
        Overwritten, where it is of these records, with which proposals were taken.

    Returns
    -------
    float
        Sum of the terms after these updates.
    """
    total, change, _ = sums
    terms = np.empty(n_sums)
    n_impossible = 0
    for j in range(n_sums):
        terms[j] = log_term(total[j], context[j])
        n_impossible += not is_finite(terms[j])

    proposed_change, proposed_terms = np.empty(n_sums), np.empty(n_sums)
    separable = log_removed.size > 0
    for first in range(0, len(removed), RUN):
        for k in range(first, min(first + RUN, len(removed))):
            i = start + k
            gain = 0.0
            for j in range(n_sums):
                own = added[k, j] - removed[k, j]
                proposed_change[j] = change[j] + own
                # A term that is dear isn't evaluated for nothing.
                entry = plus(total[j], proposed_change[j])
                proposed_terms[j] = log_term(entry, context[j]) if own != 0 else terms[j]
                gain += proposed_terms[j] - terms[j]
            gain = decisive_gain(gain, n_impossible)
            if separable:
                gain += log_gain(log_removed[i], log_added[i])
            accepted[i] = log_uniforms[i] < gain
            if accepted[i]:
                if n_impossible > 0:
                    for j in range(n_sums):
                        n_impossible -= not is_finite(terms[j])
                        n_impossible += not is_finite(proposed_terms[j])
                for j in range(n_sums):
                    change[j] = proposed_change[j]
                    terms[j] = proposed_terms[j]
        end_run(sums)
    return terms.sum()
