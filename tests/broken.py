"""Sweeps broken on purpose: a test of exactness must fail for each of them."""

import numpy as np
from numba import njit

from pymc_dapper.records.compiled.op import RecordSweep
from pymc_dapper.records.kernels.entry_sweep import sweep_by_entries
from pymc_dapper.records.kernels.record_sweep import Proposal, SweepState, log_gain, update_record
from pymc_dapper.records.kernels.rows import Changes
from pymc_dapper.records.kernels.sums import Sums
from pymc_dapper.records.step import DapperStep


@njit(inline="always")
def stale_sums(log_density, context, removed, added, log_removed, log_added, log_uniforms):
    """Forget to update the cached sums when a proposal is accepted."""
    n_records, n_sums = removed.shape
    sums = removed.sum(axis=0)
    present = log_density(sums, context)
    proposed_sums = np.empty(n_sums)
    accepted = np.empty(n_records, dtype=np.bool_)
    for i in range(n_records):
        for j in range(n_sums):
            proposed_sums[j] = sums[j] - removed[i, j] + added[i, j]
        gain = log_gain(present, log_density(proposed_sums, context))
        accepted[i] = log_uniforms[i] < gain
    return accepted, present


@njit(inline="always")
def upside_down(log_density, context, removed, added, log_removed, log_added, log_uniforms):
    """Accept with the ratio upside down."""
    n_records, n_sums = removed.shape
    sums = removed.sum(axis=0)
    state = SweepState(sums, log_density(sums, context))
    proposed_sums = np.empty(n_sums)
    accepted = np.empty(n_records, dtype=np.bool_)
    for i in range(n_records):
        for j in range(n_sums):
            proposed_sums[j] = sums[j] - removed[i, j] + added[i, j]
        proposed = log_density(proposed_sums, context)
        accepted[i] = log_uniforms[i] < log_gain(proposed, state.log_density)
        if accepted[i]:
            sums[:] = proposed_sums
            state = SweepState(sums, proposed)
    return accepted, state.log_density


@njit(inline="always")
def accept_all(log_density, context, removed, added, log_removed, log_added, log_uniforms):
    """Ignore the mechanism."""
    accepted = np.ones(len(removed), dtype=np.bool_)
    return accepted, log_density(added.sum(axis=0), context)


@njit(inline="always")
def flattened(log_density, context, removed, added, log_removed, log_added, log_uniforms):
    """Accept by half of the log ratio, as if the noise had twice the variance."""
    n_records, n_sums = removed.shape
    sums = Sums(removed.sum(axis=0), np.zeros(n_sums), np.zeros(n_sums))
    state = SweepState(sums, log_density(sums.total, context))
    proposed_sums = np.empty(n_sums)
    accepted = np.empty(n_records, dtype=np.bool_)
    for i in range(n_records):
        change = Proposal(removed[i], added[i], 0.0, 0.0)
        half = 2.0 * log_uniforms[i]
        state, accepted[i] = update_record(log_density, context, state, change, half, proposed_sums)
    return accepted, state.log_density


@njit(inline="always")
def stale_terms(log_term, context, removed, added, log_removed, log_added, log_uniforms):
    """Entry by entry: forget to update the cached terms when a proposal is accepted."""
    return _by_entries(log_term, context, removed, added, log_uniforms, 1.0, False)


@njit(inline="always")
def flattened_terms(log_term, context, removed, added, log_removed, log_added, log_uniforms):
    """Entry by entry: accept by half of the log ratio."""
    return _by_entries(log_term, context, removed, added, log_uniforms, 0.5, True)


@njit(inline="always")
def upside_down_terms(log_term, context, removed, added, log_removed, log_added, log_uniforms):
    """Entry by entry: accept with the ratio upside down."""
    return _by_entries(log_term, context, removed, added, log_uniforms, -1.0, True)


@njit(inline="always")
def one_entry(log_term, context, removed, added, log_removed, log_added, log_uniforms):
    """Entry by entry: heed the first only."""
    only = np.zeros_like(removed)
    only[:, 0] = 1.0
    return _by_entries(log_term, context, removed * only, added * only, log_uniforms, 1.0, True)


@njit(inline="always")
def _by_entries(log_term, context, removed, added, log_uniforms, power, update_terms):
    n_records, n_sums = removed.shape
    sums = removed.sum(axis=0)
    terms = np.empty(n_sums)
    for j in range(n_sums):
        terms[j] = log_term(sums[j], context[j])
    accepted = np.empty(n_records, dtype=np.bool_)
    for i in range(n_records):
        gain = 0.0
        for j in range(n_sums):
            gain += log_term(sums[j] - removed[i, j] + added[i, j], context[j]) - terms[j]
        accepted[i] = log_uniforms[i] < power * gain
        if accepted[i]:
            for j in range(n_sums):
                sums[j] += added[i, j] - removed[i, j]
                if update_terms:
                    terms[j] = log_term(sums[j], context[j])
    return accepted, terms.sum()


@njit(inline="always")
def one_column_forgotten(log_term, context, changes, log_removed, log_added, log_uniforms):
    """By value: overlook the last of the columns in which two values differ."""
    fewer = changes.differing.copy()
    for pair in range(len(fewer)):
        fewer[pair, 0] = max(fewer[pair, 0], 1) - 1
    seen = Changes(changes.removed, changes.added, changes.present, changes.proposed, fewer)
    return sweep_by_entries(log_term, context, seen, log_removed, log_added, log_uniforms)


@njit(inline="always")
def one_value_later(log_term, context, changes, log_removed, log_added, log_uniforms):
    """By value: look up what another value than the proposed one contributes."""
    n_rows = np.uint8(len(changes.removed))
    later = (changes.proposed + np.uint8(1)) % n_rows
    seen = Changes(changes.removed, changes.added, changes.present, later, changes.differing)
    return sweep_by_entries(log_term, context, seen, log_removed, log_added, log_uniforms)


ON_CHANGES = (one_column_forgotten, one_value_later)


@njit(inline="always")
def row_by_row(removed, added):
    """What matrices with a row per record propose to change."""
    rows = np.arange(len(removed), dtype=np.uint32)
    n_columns = removed.shape[1]
    all_columns = np.empty((1, n_columns + 1), dtype=np.uint32)
    all_columns[0, 0] = n_columns
    all_columns[0, 1:] = np.arange(n_columns)
    return Changes(removed, added, rows, rows, all_columns)


def broken_step(kernel, of=RecordSweep):
    """A DapperStep whose sweep runs another kernel."""

    @njit(inline="always")
    def of_changes(log_density, context, changes, log_removed, log_added, log_uniforms):
        removed = changes.removed[changes.present]
        added = changes.added[changes.proposed]
        return kernel(log_density, context, removed, added, log_removed, log_added, log_uniforms)

    of_changes.__module__ = kernel.__module__  # whose source is a part of the cache's key
    adapted = kernel if kernel in ON_CHANGES else of_changes
    sweep_op = type(f"Broken_{kernel.__name__}", (of,), {"kernel": staticmethod(adapted)})
    # Nor may the step itself notice: it is for the test to tell.
    unnoticed = {"_sweep_op": sweep_op, "_check_digits": lambda *_: None}
    return type("BrokenDapperStep", (DapperStep,), unnoticed)


def general_step():
    """A DapperStep that evaluates the whole log-density for each record."""
    return type("GeneralDapperStep", (DapperStep,), {"_sweep_op": RecordSweep})
