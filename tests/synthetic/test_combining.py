"""Rules for combining an analysis of several data sets, against posteriors that are known."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

from pymc_dapper.synthetic import combine

SETS, N = 4000, 50
MEAN, SD = 1.3, 0.4
"""The posterior of a mean: normal."""

SHARES = pd.Series([0.3, 0.7], ["no", "yes"])
TABLE = xr.DataArray([[0.3, 0.7], [0.5, 0.5]], {"set": [0, 1], "answer": ["no", "yes"]})


def analyses(rng, n=N, of_records=False):
    """Means of data sets, and their variances, with the posterior of the mean above.

    Of latent records the mean is what the posterior knows; what they leave open of the parameter is
    their own variance.
    """
    if of_records:
        q = MEAN + np.sqrt(SD**2 - 1 / n) * rng.standard_normal(SETS)
    else:
        theta = MEAN + SD * rng.standard_normal(SETS)
        q = theta + rng.standard_normal(SETS) / np.sqrt(n)
    return q, np.full(SETS, 1 / n)


def error_of_deviation(combined, between):
    """Distance to the posterior's deviation, in Monte Carlo standard errors of that of the sets."""
    spread = np.sqrt(2 / SETS) * between
    return (combined.variance - SD**2) / spread


@pytest.mark.parametrize(
    ("rule", "n", "of_records"),
    [
        ("synthetic", N, False),
        ("synthetic", 5, False),
        ("records", N, True),
        ("mixture", 10**6, False),
    ],
)
def test_variances_are_those_of_the_posterior(rule, n, of_records):
    q, u = analyses(np.random.default_rng(1), n, of_records)
    combined = combine(q, u, rule=rule)
    assert abs(error_of_deviation(combined, q.var())) < 4
    assert abs(combined.estimate - MEAN) < 4 * q.std() / np.sqrt(SETS)
    expected = stats.norm(MEAN, SD).ppf([0.05, 0.95])
    np.testing.assert_allclose(combined.interval(0.9), expected, atol=0.03)


@pytest.mark.parametrize("rule", ["records", "mixture"])
def test_the_wrong_rule_is_seen(rule):
    q, u = analyses(np.random.default_rng(1), 12)
    combined = combine(q, u, rule=rule)
    assert abs(error_of_deviation(combined, q.var())) > 8


def test_records_taken_for_new_people_are_seen():
    q, u = analyses(np.random.default_rng(1), 12, of_records=True)
    with pytest.raises(ValueError, match="rule='records'"):
        combine(q, u)


def test_intervals_of_few_sets_cover():
    """With 5 sets, degrees of freedom matter: normal intervals would cover 84 % for 90."""
    rng = np.random.default_rng(2)
    runs, sets = 4000, 5
    truth = MEAN + SD * rng.standard_normal(runs)  # given a release that says this much
    theta = MEAN + SD * rng.standard_normal((sets, runs))
    q = theta + rng.standard_normal((sets, runs)) / np.sqrt(1e6)
    combined = combine(q, np.full(q.shape, 1e-6))
    low, high = np.moveaxis(combined.interval(0.9), -1, 0)
    covered = np.mean((low < truth) & (truth < high))
    error = np.sqrt(0.09 / runs)
    assert abs(covered - 0.9) < 4 * error
    spread = stats.norm.ppf(0.95) * np.sqrt(combined.variance)
    naive = np.mean(np.abs(truth - combined.estimate) < spread)
    assert abs(naive - 0.9) > 8 * error


def test_a_mixture_has_the_shape_of_its_parts():
    combined = combine([0.0] * 9 + [10.0], [1e-4] * 10, rule="mixture")
    low, high = combined.interval(0.7)
    assert abs(low) < 0.1
    assert abs(high) < 0.1
    assert combined.interval(0.9)[1] > 9.9
    np.testing.assert_allclose(combined.variance, 1e-4 + 9.0)


def test_several_parameters_at_once():
    rng = np.random.default_rng(0)
    q = rng.standard_normal((30, 2, 3))
    u = np.full(q.shape, 0.01)
    together = combine(q, u)
    alone = combine(q[:, 1, 2], u[:, 1, 2])
    assert together.interval().shape == (2, 3, 2)
    np.testing.assert_allclose(together.interval()[1, 2], alone.interval())
    assert "30 sets" in repr(together)


@pytest.mark.parametrize("rule", ["synthetic", "records", "mixture"])
def test_a_set_may_have_a_variance_of_0(rule):
    """A share of a category that nobody is in: as good as one that hardly anybody is in."""
    q = np.array([0.0, 0.02, 0.05, 0.09])
    u = q * (1 - q) / 1_000
    ends = combine(q, u, rule=rule).interval()
    np.testing.assert_allclose(ends, combine(q, u + 1e-14, rule=rule).interval(), atol=1e-6)


def test_less_than_one_degree_of_freedom_is_told():
    q = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    with pytest.warns(UserWarning, match=r"1 of 2 parameters \(the first is \[0\]\)"):
        wide = combine(q, [[1.25, 0.1]] * 3)
    assert np.diff(wide.interval()[0]) > 1e6 * np.diff(wide.interval()[1])
    with pytest.warns(UserWarning, match="there are few sets, or the estimates differ"):
        combine([0.0, 9.0], [1e-4, 1e-4])


@pytest.mark.parametrize(
    ("estimates", "variances", "message"),
    [
        ([1.0], [1.0], "two sets or more"),
        ([1.0, 2.0], [1.0], "same shape"),
        ([1.0, 2.0], [1.0, -0.5], "variances must lie at 0 or above: 1 of 2 is wrong"),
        ([1.0, 2.0, 3.0], [0.1, -0.2, 0.1], "0 or above: 1 of 3 is wrong, at index 1"),
        ([1.0, 2.0], [0.0, 0.0], "not be 0 in all sets: 2 of 2 are wrong"),
        ([1.0, 2.0], [1.0, np.nan], "variances must be finite: 1 of 2 is wrong"),
        ([1.0, np.nan], [1.0, 1.0], "estimates must be finite: 1 of 2 is wrong"),
        ([1.0, 1.1], [1.0, 1.0], "Make more sets"),
        ([SHARES, SHARES[::-1]], [SHARES, SHARES], "the same labels in all sets"),
        ([SHARES, SHARES[:1]], [SHARES, SHARES], "the same labels in all sets"),
        (pd.DataFrame([SHARES, 1 - SHARES]), [SHARES[::-1]] * 2, "the same labels in all sets"),
        (TABLE, TABLE[:, ::-1], "the same labels in all sets"),
        (TABLE, TABLE.T, "the same labels in all sets"),
        (list(TABLE), list(TABLE[:, ::-1]), "the same labels in all sets"),
    ],
)
def test_what_cant_be_combined_is_refused(estimates, variances, message):
    with pytest.raises(ValueError, match=message):
        combine(estimates, variances)
