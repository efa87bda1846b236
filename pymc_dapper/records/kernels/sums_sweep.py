"""One sweep of record-wise Metropolis updates with cached sums.

The target density depends on the records only through the sums of their contributions,
``exp(log_density(sum_i t_i(x_i)) + sum_i l_i(x_i))``, times their prior. So a proposal from the
prior changes the log-density by a difference of ``log_density`` at two sums. This costs O(dim of
the sums), whatever the number of records (Ju, Awan, Gong and Rao 2022, algorithm 1).

Sums keep their digits, whatever the number of records. A plain running sum is rounded to its own
size at every term: for ten million contributions between 1e-9 and 1e8, eleven of sixteen digits are
right. Here terms are added plainly only in short runs. The total of a run is added to the sum with
compensation: the rounding error is kept, and added with the next run (Kahan 1965). So the error
stays that of a short sum, at hardly any cost.

Sweeps go block by block. The present and proposed contributions of all records would be two large
matrices: larger than the processor's caches, and many times the records' memory. So they are made
for one block of records at a time, which is swept before the next. The present ones are made twice,
because the sums over all records come first. If contributions can only be computed together, all
records form one block.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.kernels.fast_math import is_finite

RUN = 128
"""Number of terms in a plain run."""


class Sums(NamedTuple):
    """Running sums: ``total + change``."""

    total: np.ndarray
    """Float64, shape (d,): the sums at the start of the present run."""
    change: np.ndarray
    """Float64, shape (d,): the sum of terms since then."""
    lost: np.ndarray
    """Float64, shape (d,): the rounding error of the total, to be added with the next run."""


@njit
def no_sums(n_sums: int) -> Sums:
    """Return sums over nothing."""
    return Sums(np.zeros(n_sums), np.zeros(n_sums), np.zeros(n_sums))


# A function that numba inlines, or without its own setting, uses the caller's arithmetic.
# PyTensor's may be reordered: total + (change + term) becomes (total + change) + term, and the
# rounding error, t - (s - total), becomes zero.
@njit(fastmath=False)
def plus(total: float, change: float) -> float:
    """Add two numbers; the second is evaluated first."""
    return total + change


@njit(fastmath=False)
def add_term(total: float, lost: float, term: float) -> tuple[float, float]:
    """Add a term to a sum, with compensation.

    Parameters
    ----------
    total, lost : float
        The sum, and its rounding error.
    term : float
        The term.

    Returns
    -------
    total, lost : float
        The same after adding the term. For an infinite or nan sum, the rounding error is zero.
    """
    t = lost + term
    s = total + t
    return s, (t - (s - total) if is_finite(s) else 0.0)


@njit
def end_run(sums: Sums) -> None:
    """Add the present run to the total."""
    total, change, lost = sums
    for j in range(total.size):
        total[j], lost[j] = add_term(total[j], lost[j], change[j])
        change[j] = 0.0


@njit
def add_rows(sums: Sums, rows: np.ndarray, n_sums: int) -> None:
    """Add all rows of a matrix to sums.

    Parameters
    ----------
    sums : Sums
        Updated in place.
    rows : ndarray of float64, shape (m, d)
        The rows to add.
    n_sums : int
        Number of columns; a constant here removes branches.
    """
    change = sums.change
    for first in range(0, len(rows), RUN):
        for i in range(first, min(first + RUN, len(rows))):
            for j in range(n_sums):
                change[j] += rows[i, j]
        end_run(sums)


# Kernels are passed a model's functions by their type: numba can't keep code on disk that has the
# address of a function. Where it knows no such type, what takes functions is inlined.
@njit
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
        As in :func:`~pymc_dapper.records.kernels.sums_sweep.sweep_by_blocks`.
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


@njit
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
        :func:`~pymc_dapper.records.kernels.sums_sweep.decide_by_sums`.
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
