"""Quantiles that are drawn between limits: density, draws, the budget, and what is refused."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dapper as pmd

RECORDS = np.array([-4, 3, 3, 5, 6, 6, 6, 9, 40])
MEDIAN = pmd.IntervalQuantileMechanism(0, 10, 0.5, 1.5)


def by_definition(mechanism, y):
    """The density, by sorted records: intervals between them, their ranks and widths."""
    x = np.sort(np.clip(RECORDS, mechanism.lower, mechanism.upper))
    ends = np.concatenate([[mechanism.lower], x, [mechanism.upper]])
    ranks = np.arange(len(x) + 1)
    heights = np.exp(-np.abs(ranks - mechanism.alpha * len(x)) / mechanism.scale)
    return heights[np.searchsorted(x, y, side="right")] / (heights @ np.diff(ends))


def density(mechanism, y):
    return np.exp(mechanism.logp(y, mechanism.statistic(RECORDS)).eval(mode="FAST_COMPILE"))


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9, 1.0])
def test_density_is_that_of_intervals_between_sorted_records(alpha):
    mechanism = pmd.IntervalQuantileMechanism(0, 10, alpha, 1.5)
    y = np.linspace(0.05, 9.95, 50)
    np.testing.assert_allclose(density(mechanism, y), by_definition(mechanism, y), rtol=1e-12)
    other = pmd.IntervalQuantileMechanism(0, 10, alpha, 3.0)
    assert np.abs(density(other, y) / by_definition(mechanism, y) - 1).max() > 0.1
    assert density(mechanism, np.array([-0.1, 10.1])).tolist() == [0, 0]
    assert density(mechanism, np.array([10.0])) == density(mechanism, np.array([9.5]))


@pytest.mark.parametrize("how", ["release", "generate"])
def test_releases_follow_the_density(how):
    counts = np.tile(MEDIAN.statistic(RECORDS), (4000, 1))
    if how == "release":
        drawn = MEDIAN.release(counts, 1)
    else:
        with pm.Model():
            y = MEDIAN.generate("y", pt.as_tensor(counts))
            drawn = pm.draw(y, random_seed=1, mode="FAST_COMPILE")
    expected = density(MEDIAN, np.arange(10) + 0.5) * 4000
    assert stats.chisquare(np.histogram(drawn, range(11))[0], expected).pvalue > 1e-4
    assert stats.kstest(drawn % 1, "uniform").pvalue > 1e-4


def test_records_of_a_model_are_counted_alike():
    x = pt.lvector("x")
    counted = MEDIAN.statistic(x).eval({x: RECORDS}, mode="FAST_COMPILE")
    np.testing.assert_array_equal(counted, MEDIAN.statistic(RECORDS))


def test_a_model_of_whole_numbers_is_read(uncompiled):
    with pm.Model():
        x = pm.Poisson("x", pm.Gamma("rate", 4, 0.4), shape=20)
        MEDIAN.potential("median", MEDIAN.statistic(x), released=6.3)
        assert "median (function of sums)" in repr(pmd.DapperStep([x]))


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_the_budget_bounds_the_ratio_of_densities(neighbours):
    """It is nearly reached where one interval is narrow and another one wide."""
    mechanism = pmd.IntervalQuantileMechanism.calibrate(
        pmd.PureDP(1.0), lower=0, upper=50, alpha=0.75, neighbours=neighbours
    )
    x, y, logs = [1, 0, 0, 0], np.array([0.5, 1.5]), []
    others = [[*x[: 3 if neighbours == "replace" else 4], new] for new in (0, 1, 25, 50)]
    for records in (x, *others):
        counts = mechanism.statistic(np.array(records))
        logs.append(mechanism.logp(y, counts).eval(mode="FAST_COMPILE"))
    assert 0.9 < np.abs(logs - logs[0]).max() <= 1.0 + 1e-12
    assert mechanism.privacy_loss(neighbours=neighbours).epsilon == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pmd.IntervalQuantileMechanism(0, 1, 0.5, 1.0), "upper must be .* at least 2"),
        (lambda: pmd.IntervalQuantileMechanism(0.5, 9, 0.5, 1.0), "lower must be a whole number"),
        (lambda: pmd.IntervalQuantileMechanism(0, 9, 1.5, 1.0), "alpha must be"),
        (lambda: pmd.IntervalQuantileMechanism(0, 9, 0.5, 0), "scale must be positive"),
        (lambda: MEDIAN.statistic(np.array([1.5, 2.0])), "x must hold whole numbers"),
        (lambda: MEDIAN.logp(3.0, np.zeros(3)), "11 entries .* for whole numbers from 0 to 10"),
        (lambda: MEDIAN.as_released("age", 12.5), "'age': values lie between 0 and"),
    ],
)
def test_nonsense_is_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_records_in_the_place_of_counts_are_refused():
    records = np.linspace(0.5, 9.5, 11)
    with pytest.raises(ValueError, match="must hold counts, whole numbers"):
        MEDIAN.release(records, 1)
    with pm.Model(), pytest.raises(TypeError, match=r"'y'.*of an integer type"):
        MEDIAN.observe("y", pt.as_tensor(records), released=3.0)
