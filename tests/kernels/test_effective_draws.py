"""Effective draws of chains whose effective sample size is known."""

import numpy as np
import pytest

from pymc_dapper.kernels.effective_draws import effective_draws, effective_if_autoregressive

ESTIMATES = [effective_draws, effective_if_autoregressive]


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_effective_draws_are_those_of_autoregressions(scale, estimate):
    rng = np.random.default_rng(0)
    n, sets = 2_000, 50
    correlation = np.array([0.0, 0.5, 0.9])
    x = np.empty((n, sets, 3))
    x[0] = rng.normal(size=(sets, 3))
    for k in range(1, n):
        noise = rng.normal(size=(sets, 3))
        x[k] = correlation * x[k - 1] + np.sqrt(1 - correlation**2) * noise
    found = estimate(5 * scale + scale * x.reshape(n, -1)).reshape(sets, 3)
    expected = n * (1 - correlation) / (1 + correlation)
    error = found.std(axis=0) / np.sqrt(sets)
    assert np.all(np.abs(found.mean(axis=0) - expected) < 4 * error + 0.05 * expected)


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_what_is_constant_or_has_no_value_has_no_effective_draws(estimate):
    fast = np.random.default_rng(0).normal(size=9)
    values = np.column_stack([np.full(9, 0.1), np.r_[np.nan, fast[1:]], fast])
    np.testing.assert_array_equal(np.isnan(estimate(values)), [True, True, False])
