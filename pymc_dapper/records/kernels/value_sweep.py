"""Sweeps over records with few values; equal records contribute equally.

A record's contribution, and the entries of the sums that a proposal changes, are looked up by
value. Records have no rows of their own: copying rows would take a quarter of a sweep.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.kernels.fast_math import is_finite
from pymc_dapper.records.kernels.entry_sweep import decisive_gain
from pymc_dapper.records.kernels.record_sweep import log_gain
from pymc_dapper.records.kernels.sums import Sums, end_run, no_sums, plus

AT_A_TIME = 1024
"""Number of records in which undecided ones are searched at a time; they fit into the cache."""

COUNTERS = 4
"""A power of two."""


class Values(NamedTuple):
    """Present and proposed values of the records.

    Indices are unsigned: numba lets a negative index count from the end, which takes time.
    """

    table: np.ndarray
    """Float64, shape (k, d): the contribution to the sums at each value."""
    present: np.ndarray
    proposed: np.ndarray
    """Unsigned ints, shape (n,): indices of each record's present and proposed value."""
    differing: np.ndarray
    """Unsigned ints, shape (k * k, width): row ``a * k + b`` has the number of columns in which the
    contributions at values ``a`` and ``b`` may differ, then these columns."""


@njit(inline="always")
def sweep_by_value(
    log_term: Callable[..., float],
    context: np.ndarray,
    values: Values,
    log_removed: np.ndarray,
    log_added: np.ndarray,
    log_uniforms: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Update the records one by one, against a density with one term per entry of a sum.

    Parameters
    ----------
    log_term, context
        As in :func:`~pymc_dapper.records.kernels.entry_sweep.decide_by_entries`.
    values : Values
        Present and proposed values.
    log_removed, log_added, log_uniforms
        As in :func:`~pymc_dapper.records.kernels.block_sweep.sweep_by_blocks`.

    Returns
    -------
    accepted : ndarray of bool, shape (n,)
        Which proposals were accepted.
    log_density : float
        Sum of the terms after the sweep.
    """
    sums = sum_of_values(values, len(log_uniforms))
    total, change, _ = sums
    table, present, proposed, differing = values
    n_present, (n_values, n_sums) = len(log_uniforms), table.shape
    terms = np.empty(n_sums)
    n_impossible = 0
    for j in range(n_sums):
        terms[j] = log_term(total[j], context[j])
        n_impossible += not is_finite(terms[j])

    proposed_terms = np.empty(n_sums)
    accepted = np.ones(len(present), dtype=np.bool_)
    separable = log_removed.size > 0
    undecided = np.empty(AT_A_TIME, dtype=np.uint32)
    n_changes = 0
    for start in range(0, n_present, AT_A_TIME):
        stop = min(start + AT_A_TIME, n_present)
        n_undecided = find_undecided(values, separable, start, stop, undecided)
        for i in undecided[:n_undecided]:
            a, b = present[i], proposed[i]
            columns = differing[np.uint64(a * np.uint64(n_values) + b)]
            gain = 0.0
            for c in range(1, columns[0] + 1):
                j = columns[c]
                proposed_terms[j] = terms[j]
                if table[a, j] != table[b, j]:
                    entry = plus(total[j], change[j] + (table[b, j] - table[a, j]))
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
                    change[j] += table[b, j] - table[a, j]
                    terms[j] = proposed_terms[j]
        n_changes += n_undecided
        if n_changes >= n_sums:  # with many sums, so much work is done where many records change
            end_run(sums)
            n_changes = 0
    return accepted, terms.sum()


@njit(inline="always")
def sum_of_values(values: Values, n_present: int) -> Sums:
    """Sum the present contributions of the first records.

    Computed anew in every sweep: so rounding can't build up, and sums can't be outdated after
    records or parameters changed between sweeps.
    """
    n_values, n_sums = values.table.shape
    # Counters take turns: a processor waits for a count before it adds to it again.
    counts = np.zeros((COUNTERS, n_values), dtype=np.int64)
    for i in range(n_present):
        counts[i & (COUNTERS - 1), values.present[i]] += 1
    sums = no_sums(n_sums)
    for a in range(n_values):
        count = 0
        for turn in range(COUNTERS):
            count += counts[turn, a]
        if count > 0:  # what a value that no record has would contribute may be infinite
            for j in range(n_sums):
                sums.change[j] += count * values.table[a, j]
    end_run(sums)
    return sums


@njit(inline="always")
def find_undecided(
    values: Values, separable: bool, start: int, stop: int, found: np.ndarray
) -> int:
    """Find the records whose proposals need a decision.

    Parameters
    ----------
    values : Values
        Present and proposed values.
    separable : bool
        Whether separable factors decide, too. If not, a proposal of the present value is accepted
        at once.
    start, stop : int
        The range of records to search: from ``start`` to ``stop - 1``.
    found : ndarray of unsigned int, shape (stop - start,) or longer
        Overwritten with these records, in order.

    Returns
    -------
    int
        Their number.
    """
    n_found = 0
    for i in range(start, stop):
        # Branch-free: which records change is as random as their proposals.
        found[n_found] = i
        n_found += separable | (values.present[i] != values.proposed[i])
    return n_found


@njit(inline="always")
def check_values(table: np.ndarray, present: np.ndarray, proposed: np.ndarray) -> None:
    """Check that all values are in a table.

    Raises
    ------
    IndexError
        If a value isn't in it: compiled code would read other memory.
    """
    n_values = len(table)
    missing = False
    for i in range(len(present)):
        missing |= (present[i] >= n_values) | (proposed[i] >= n_values)
    if missing:
        raise IndexError("a record has a value that its distribution can't take")
