"""Sums keep their digits, when they are formed and while records change, under fast arithmetic."""

from math import fsum

import numpy as np
import pytest
from numba import njit
from pytensor.link.numba.dispatch.basic import numba_njit

from pymc_dapper.records.kernels import block_sweep, entry_sweep, record_sweep, rows, sums
from pymc_dapper.records.kernels.sums import add_rows, no_sums
from tests.records.changes import row_by_row

N = 200_000
NONE, NO_CONTEXT = np.zeros(0), np.zeros((1, 0))


@pytest.fixture(scope="module")
def contributions():
    """From 1e-9 to 1e8; present, and proposed."""
    return 10 ** np.random.default_rng(0).uniform(-9, 8, size=(2, N, 1))


@njit
def the_sum(total, context):
    """A log-density that shows the sum, and accepts every other change."""
    return total[0]


@njit
def the_entry(entry, values):
    return entry


@njit
def part(arrays, start, stop):
    return arrays[0][start:stop]


@njit
def other_part(arrays, start, stop):
    return arrays[1][start:stop]


def by_sums(patch):
    kernel = patch(record_sweep.sweep_records)

    @numba_njit(final_function=True)
    def sweep(removed, added, log_uniforms):
        changes = row_by_row(removed, added)
        return kernel(the_sum, (), changes, NONE, NONE, log_uniforms)

    return sweep


def by_entries(patch):
    kernel = patch(entry_sweep.sweep_by_entries)

    @numba_njit(final_function=True)
    def sweep(removed, added, log_uniforms):
        changes = row_by_row(removed, added)
        return kernel(the_entry, np.zeros((1, 0)), changes, NONE, NONE, log_uniforms)

    return sweep


def in_blocks(patch, go_on=entry_sweep.go_on_by_rows, density=the_entry, context=NO_CONTEXT):
    kernel = patch(block_sweep.sweep_by_blocks)
    go_on = patch(go_on)

    @numba_njit(final_function=True)
    def sweep(removed, added, log_uniforms):
        return kernel(
            go_on, density, context, part, other_part, (removed, added), 1, 1000, NONE, NONE,
            log_uniforms,
        )  # fmt: skip

    return sweep


def in_blocks_by_sums(patch):
    return in_blocks(patch, record_sweep.go_on_with_records, the_sum, ())


def as_it_is(kernel):
    return kernel


def plainly(kernel):
    """Go on with one run for all records, as a plain sum does."""
    return _with(kernel, RUN=10**9, sum_of_rows=_with(rows.sum_of_rows, RUN=10**9))


def _with(kernel, **instead):
    function = kernel.py_func
    return njit(inline="always")(
        type(function)(function.__code__, {**function.__globals__, **instead})
    )


def worst_error(sweep, contributions):
    """Error of the sum before and after a sweep, in units of a rounding of what was added up."""
    removed, added = contributions
    never, mostly = np.full(N, np.inf), np.log(np.random.default_rng(1).random(N))
    errors = []
    for log_uniforms in (never, mostly):
        accepted, found = sweep(removed, added, log_uniforms)
        after = np.where(accepted[:, None], added, removed)
        size = fsum(removed.ravel()) + fsum(after.ravel())
        errors.append(abs(found - fsum(after.ravel())) / (np.finfo(float).eps * size))
    assert 0.2 * N < accepted.sum() < N
    return errors


@pytest.mark.parametrize("sweep", [by_sums, by_entries, in_blocks, in_blocks_by_sums])
def test_sums_keep_their_digits(sweep, contributions):
    assert max(worst_error(sweep(as_it_is), contributions)) < 2


def test_a_plain_sum_loses_them(contributions):
    assert max(worst_error(by_sums(plainly), contributions)) > 20


def many_ones(kernel):
    """Add what is lost in rounding, one by one, within a function of fast arithmetic."""

    @numba_njit(final_function=True)
    def add(n):
        total, lost = 1e16, 0.0
        for _ in range(n):
            total, lost = kernel(total, lost, 1.0)
        return total

    return add(1_000) - 1e16


def test_what_rounding_cuts_off_is_kept_under_fast_arithmetic():
    assert many_ones(sums.add_term) == 1_000


def test_a_function_with_its_callers_arithmetic_does_not_keep_it():
    assert many_ones(njit(sums.add_term.py_func)) != 1_000


@pytest.mark.parametrize("infinite", [np.inf, -np.inf, np.nan])
def test_infinite_sums_stay_as_they_are(infinite):
    state = no_sums(2)
    table = np.ones((400, 2))
    table[150, 0] = infinite
    njit(add_rows.py_func)(state, table, table.shape[1])
    np.testing.assert_array_equal(state.total, [infinite, 400.0])
    np.testing.assert_array_equal(state.lost, [0.0, 0.0])


def test_short_sums_are_those_of_a_loop():
    table = np.random.default_rng(0).normal(size=(sums.RUN, 1))
    state = no_sums(1)
    njit(add_rows.py_func)(state, table, table.shape[1])
    plain = 0.0
    for value in table[:, 0]:
        plain += value
    assert state.total[0] == plain
