"""Updates of records against a density with one term per entry of a sum.

As :mod:`~pymc_dapper.records.kernels.sums_sweep`, for log_density(sums) = sum_k g_k(sums_k): an
update evaluates only the terms whose entries it changes.
"""

from collections.abc import Callable

import numpy as np
from numba import njit

from pymc_dapper.kernels.fast_math import is_finite
from pymc_dapper.records.kernels.sums_sweep import RUN, Sums, end_run, plus


@njit
def decisive_gain(gain: float, n_impossible: int) -> float:
    """Apply the rule of `sums_sweep.log_gain`, given how many present terms are impossible."""
    if n_impossible > 0:
        return 0.0
    return gain if is_finite(gain) else -np.inf


@njit(inline="always")
def decide_by_entries(
    log_term: Callable[..., float],
    context: np.ndarray,
    sums: Sums,
    removed: np.ndarray,
    added: np.ndarray,
    n_sums: int,
    start: int,
    thresholds: np.ndarray,
    accepted: np.ndarray,
) -> float:
    """Update the records of a block one by one, each given the outcome of those before it.

    Parameters
    ----------
    log_term : callable
        ``log_term(entry, values) -> float``, compiled by numba: the term of an entry of the sums,
        given the entry's values of the context.
    context : ndarray of float64, shape (d, m)
        Other inputs of the terms, with a row for each entry.
    sums, removed, added, n_sums, start, thresholds, accepted
        As in :func:`~pymc_dapper.records.kernels.sums_sweep.decide_by_sums`. Nearly all
        contributions change, so changed ones aren't searched for.

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
    for first in range(0, len(removed), RUN):
        for k in range(first, min(first + RUN, len(removed))):
            i = start + k
            gain = 0.0
            for j in range(n_sums):
                own = added[k, j] - removed[k, j]
                proposed_change[j] = change[j] + own
                # A term may be expensive: it is evaluated only if it is needed.
                entry = plus(total[j], proposed_change[j])
                proposed_terms[j] = log_term(entry, context[j]) if own != 0 else terms[j]
                gain += proposed_terms[j] - terms[j]
            accepted[i] = thresholds[i] < decisive_gain(gain, n_impossible)
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
