"""Sums keep their digits, when they are formed and while records change, under fast arithmetic."""

from math import fsum

import numpy as np
import pytest
from numba import njit
from pytensor.link.numba.dispatch.basic import numba_njit

from pymc_dapper.records.kernels import block_sweep, entry_sweep, record_sweep, sums
from pymc_dapper.records.kernels.sums import add_rows, no_sums

N = 200_000
NO_CONTEXT = np.zeros((1, 0))


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


def as_it_is(kernel):
    return kernel


def plainly(kernel):
    """Go on with one run for all records, as a plain sum does."""
    return _with(kernel, RUN=10**9, add_rows=_with(sums.add_rows, RUN=10**9))


def _with(kernel, **instead):
    function = kernel.py_func
    return njit(inline="always")(
        type(function)(function.__code__, {**function.__globals__, **instead})
    )


def in_blocks(records_in_block, decide, density, context, patch=as_it_is):
    kernel, decide = patch(block_sweep.sweep_by_blocks), patch(decide)

    @numba_njit(final_function=True)
    def sweep(removed, added, log_uniforms):
        return kernel(
            decide, density, context, part, other_part, (removed, added), 1, records_in_block,
            log_uniforms,
        )  # fmt: skip

    return sweep


BY_SUMS = record_sweep.decide_by_sums, the_sum, ()
BY_ENTRIES = entry_sweep.decide_by_entries, the_entry, NO_CONTEXT


def worst_error(sweep, contributions):
    """Error of the sum before and after a sweep, in roundings of the total of absolute values."""
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


@pytest.mark.parametrize("of", [BY_SUMS, BY_ENTRIES], ids=["by sums", "by entries"])
@pytest.mark.parametrize("records_in_block", [1_000, pytest.param(N, marks=pytest.mark.long)])
def test_sums_keep_their_digits(of, records_in_block, contributions):
    assert max(worst_error(in_blocks(records_in_block, *of), contributions)) < 2


@pytest.mark.parametrize("of", [BY_SUMS, BY_ENTRIES], ids=["by sums", "by entries"])
def test_a_plain_sum_loses_them(of, contributions):
    assert max(worst_error(in_blocks(N, *of, plainly), contributions)) > 20


def many_ones(kernel):
    """Add rounding errors one by one, within a function of fast arithmetic."""

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
