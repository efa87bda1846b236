"""Counts within bounds, drawn by inversion: each takes its share of the uniform numbers."""

import numpy as np
import pytest
from scipy import stats

from pymc_dapper.kernels.truncated_counts import truncated_count

M = 20_001
UNIFORMS = (np.arange(M) + 0.5) / M


@pytest.mark.parametrize(
    ("law", "a", "b", "lower", "upper"),
    [
        (stats.poisson(3.2), 0.0, 3.2, 1, np.inf),
        (stats.poisson(3.2), 0.0, 3.2, -np.inf, 4.5),
        (stats.poisson(2.0), 0.0, 2.0, 30, 40),  # its cdf is 1 there, to all digits
        (stats.poisson(1e-20), 0.0, 1e-20, 1, np.inf),
        (stats.poisson(5e4), 0.0, 5e4, 2, 49_900),
        (stats.binom(10, 0.9), -9.0, 99.0, 0, 7),
        (stats.nbinom(0.5, 0.2), 0.8, -0.4, 2, np.inf),
        (stats.nbinom(40, 0.01), 0.99, 39 * 0.99, 5_000, np.inf),
    ],
)
def test_shares_are_those_of_the_truncated_distribution(law, a, b, lower, upper):
    counts = np.array([truncated_count(u, lower, upper, a, b) for u in UNIFORMS], dtype=int)
    values = np.arange(max(0, int(lower)) if lower > 0 else 0, int(min(upper, 60_000)) + 1)
    weights = np.exp(law.logpmf(values) - law.logpmf(values).max())
    exact = weights / weights.sum()
    assert values[0] <= counts.min()
    assert counts.max() <= values[-1]
    found = np.bincount(counts - values[0], minlength=len(values)) / M
    # The numbers that belong to a count follow each other: one at each end may be miscounted.
    assert np.abs(found - exact).max() <= 2 / M


@pytest.mark.parametrize("bounds", [(3, 2), (2.2, 2.8), (np.inf, np.inf), (np.nan, 3)])
def test_bounds_that_hold_no_count_give_none(bounds):
    assert np.isnan(truncated_count(0.3, *bounds, 0.0, 2.0))


@pytest.mark.parametrize(("a", "b"), [(0.0, 1e18), (0.0, np.inf), (1 - 1e-16, 1e3)])
def test_no_parameter_makes_a_draw_endless(a, b):
    """Counts that doubles don't tell apart have no next one."""
    assert np.isnan(truncated_count(0.3, 2, np.inf, a, b))
    assert truncated_count(0.3, 2, 2, a, min(b, 1e300)) == 2
