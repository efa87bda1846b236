"""One sweep of record-wise Metropolis updates with cached sums.

The target density depends on the records only through the sums of their contributions,
``exp(log_density(sum_i t_i(x_i)) + sum_i l_i(x_i))``, times their prior. So a proposal from the
prior changes the log-density by a difference of ``log_density`` at two sums. This costs O(dim of
the sums), whatever the number of records (Ju, Awan, Gong and Rao 2022, algorithm 1).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from pymc_dapper.kernels.fast_math import is_finite
from pymc_dapper.records.kernels.sums import RUN, Sums, end_run, plus


# Everything here is inlined, for two reasons. An update then costs as much as a hand-written loop;
# a call would also count references to its array arguments (27 against 41 ns each). And code that
# takes a function as an argument, such as the log-density, can't be cached on disk.
@njit(inline="always")
def log_gain(present: float, proposed: float) -> float:
    """Log-density gained by a move; never nan.

    From an impossible present value (-inf, nan, or +inf, which no density reaches) every proposal
    is accepted. From a possible value, no impossible one is.
    """
    if not is_finite(present):
        return 0.0
    if not is_finite(proposed):
        return -np.inf
    return proposed - present


@njit(inline="always")
def decide_by_sums(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
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
    log_density : callable
        ``log_density(sums, context) -> float``, compiled by numba.
    context : tuple of ndarray
        Inputs of the log-density besides the sums (parameters, released values).
    sums : Sums, of shape (d,)
        Sums over all records; updated in place.
    removed, added : ndarray of float64, shape (m, d)
        Present and proposed contributions of these records, a row for each.
    n_sums : int
        Number of contributions of a record. A constant here removes branches from updates.
    start : int
        Number of the first of these records.
    thresholds : ndarray of float64
        As in :func:`~pymc_dapper.records.kernels.block_sweep.sweep_by_blocks`.
    accepted : ndarray of bool, shape (n,)
        The entries of these records are overwritten: whether their proposals were accepted.

    Returns
    -------
    float
        Log-density of the sums after these updates.
    """
    total, change, _ = sums
    log_now = log_density(total, context)
    proposed_sums = np.empty(n_sums)
    for k in range(len(removed)):
        i = start + k
        same_sums = True
        for j in range(n_sums):
            proposed_sums[j] = plus(total[j], change[j] + (added[k, j] - removed[k, j]))
            same_sums &= removed[k, j] == added[k, j]
        # Discrete records often propose the same contribution: then there is nothing to evaluate.
        log_new = log_now if same_sums else log_density(proposed_sums, context)
        accepted[i] = thresholds[i] < log_gain(log_now, log_new)
        if accepted[i]:
            log_now = log_new
            for j in range(n_sums):
                change[j] += added[k, j] - removed[k, j]
        if k % RUN == RUN - 1:
            end_run(sums)
    end_run(sums)  # the next block begins with the totals
    return log_now
