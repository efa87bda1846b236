"""The pure kernel: decisions on records, and impossible states."""

import numpy as np
import pytest
from numba import njit

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.records.kernels.block_sweep import sweep_by_blocks
from pymc_dapper.records.kernels.record_sweep import decide_by_sums, log_gain
from pymc_dapper.records.kernels.sums import Sums


@njit
def gaussian(sums, context):
    return -0.5 * ((sums - context[0]) ** 2).sum()


@njit
def hard_bounds(sums, context):
    """Uniform noise: possible within a distance, impossible elsewhere."""
    return 0.0 if np.abs(sums - context[0]).max() <= 1.0 else -np.inf


@njit
def nan_when_negative(sums, context):
    return np.log(sums[0]) if sums[0] >= 0 else np.nan


# Steps inline these kernels; here they are compiled in the same way.
@njit
def present(arrays, start, stop):
    return arrays[0][start:stop]


@njit
def proposed(arrays, start, stop):
    return arrays[1][start:stop]


@njit
def sweep(log_density, context, removed, added, thresholds):
    n_records, n_sums = removed.shape
    return sweep_by_blocks(
        decide_by_sums, log_density, context, present, proposed, (removed, added), n_sums,
        n_records, thresholds,
    )  # fmt: skip


TARGET = (np.array([1.0, -2.0]),)


def test_acceptance_is_the_metropolis_ratio():
    before, after = np.array([0.25, -1.0]), np.array([1.25, -2.25])
    log_ratio = gaussian(after, TARGET) - gaussian(before, TARGET)
    for log_uniform in (log_ratio - 1e-9, log_ratio + 1e-9):
        [accepted], log_density = sweep(
            gaussian, TARGET, before[None], after[None], np.array([log_uniform])
        )
        assert accepted == (log_uniform < log_ratio)
        assert log_density == gaussian(after if accepted else before, TARGET)


def test_a_proposal_that_leaves_the_sums_alone_costs_no_evaluation():
    evaluated = []

    def counted(sums, context):
        evaluated.append(sums.copy())
        return 0.0

    rows = np.ones((5, 2))
    deciding = (np.full(5, -0.1), np.empty(5, dtype=bool))
    sums = Sums(np.full(2, 5.0), np.zeros(2), np.zeros(2))
    in_python(decide_by_sums)(counted, (), sums, rows, rows, 2, 0, *deciding)
    assert len(evaluated) == 1


@pytest.mark.parametrize("impossible", [-np.inf, np.nan, np.inf])
def test_an_impossible_state_takes_what_the_prior_proposes(impossible):
    assert log_gain(impossible, -3.0) == 0.0
    assert log_gain(impossible, impossible) == 0.0


@pytest.mark.parametrize("impossible", [-np.inf, np.nan, np.inf])
def test_a_possible_state_never_becomes_impossible(impossible):
    assert log_gain(-3.0, impossible) == -np.inf


def test_a_sweep_walks_from_an_impossible_start_into_the_support_and_stays():
    rng = np.random.default_rng(1)
    context = (np.array([60.0]),)
    records = np.zeros((100, 1))
    for _ in range(20):
        proposals = rng.integers(0, 2, size=(100, 1)).astype(float)
        accepted, logp = sweep(
            hard_bounds, context, records, proposals, -rng.standard_exponential(100)
        )
        was_possible = abs(records.sum() - 60.0) <= 1.0
        records = np.where(accepted[:, None], proposals, records)
        assert np.isfinite(logp) or not was_possible
    assert logp == 0.0
    assert abs(records.sum() - 60.0) <= 1.0


def test_nan_is_never_accepted():
    rng = np.random.default_rng(2)
    records = np.ones((50, 1))
    for _ in range(20):
        proposals = rng.normal(size=(50, 1))
        accepted, logp = sweep(
            nan_when_negative, (), records, proposals, -rng.standard_exponential(50)
        )
        records = np.where(accepted[:, None], proposals, records)
        assert np.isfinite(logp)


def test_a_sweep_reports_the_log_density_of_the_records_it_leaves():
    rng = np.random.default_rng(3)
    removed, added = rng.normal(size=(2, 30, 2))
    accepted, logp = sweep(gaussian, TARGET, removed, added, -rng.standard_exponential(30))
    assert 0 < accepted.sum() < 30
    after = np.where(accepted[:, None], added, removed)
    assert logp == pytest.approx(gaussian(after.sum(axis=0), TARGET), rel=1e-10)
