"""Mistakes that show when a release is added: noise for another statistic, epsilon as a scale."""

import logging
import re
import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.statistics import counts

RELEASED = [10, 10]


@pytest.fixture
def table():
    with pm.Model():
        yield counts(pm.Bernoulli("x", 0.5, shape=20), 2)


@pytest.mark.parametrize(
    ("calibrate", "says"),
    [
        (
            lambda **given: pmd.LaplaceMechanism.calibrate(pmd.PureDP(0.5), **given),
            r"chosen for PureDP\(epsilon=0\.5, one person changes\), .* spends PureDP\(epsilon=1,",
        ),
        (
            lambda **given: pmd.DiscreteGaussianMechanism.calibrate(pmd.ApproxDP(1, 1e-6), **given),
            r"spends ApproxDP\(epsilon=1\.2",
        ),
        (
            lambda **given: pmd.KNormMechanism.calibrate(pmd.PureDP(1), norm=2, **given),
            r"spends PureDP\(epsilon=1\.41",
        ),
    ],
)
def test_a_sensitivity_that_is_not_the_statistics_is_warned_of(table, calibrate, says):
    with pytest.warns(UserWarning, match=f"'s': .*{says}.*sensitivity=statistic.sensitivity"):
        calibrate(sensitivity=1).potential("s", table, released=RELEASED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calibrate(sensitivity=table.sensitivity, neighbours="replace").potential(
            "right", table, released=RELEASED
        )
        joined = calibrate(sensitivity=table.sensitivity, neighbours="add_remove")
        joined.potential("joined", table, released=RELEASED)
        # What isn't known to have another sensitivity isn't told of.
        calibrate(sensitivity=1).potential("value", table.value, released=RELEASED)


@pytest.mark.parametrize(
    ("mechanism", "statistic", "says"),
    [
        (pmd.LaplaceMechanism(0.5), lambda t: t, r"epsilon is 2 .*calibrate\(pmd\.PureDP\(0\.5\)"),
        (pmd.DiscreteLaplaceMechanism(0.5), lambda t: t.value, "epsilon is 2 at least"),
        (pmd.GaussianMechanism(0.5), lambda t: t * 10, r"rho is 200 .*pmd\.ZCDP\(0\.5\)"),
        (pmd.LaplaceMechanism(1.0), lambda t: t, None),
        (pmd.LaplaceMechanism(0.5), lambda t: t.value / 20.0, None),
        (pmd.LaplaceMechanism(np.array([4.0, 0.5])), lambda t: t, "epsilon is 2 at least"),
    ],
)
def test_noise_that_is_smaller_than_one_person_is_logged(table, caplog, mechanism, statistic, says):
    with caplog.at_level(logging.INFO, logger="pymc.dapper"):
        mechanism.potential("s", statistic(table), released=RELEASED)
    assert [bool(re.search(says or "", each)) for each in caplog.messages] == [True] * bool(says)


@pytest.mark.parametrize(
    "statistic",
    [
        lambda x: pt.bincount(np.array([0, 0, 1]), weights=x > 0, minlength=2),
        lambda x: pt.zeros(2, dtype="bool")[0].inc(x[0] > 0)[0].inc(x[1] > 0),
        lambda x: ((x > 0) + (x < -1)).sum(),
    ],
    ids=["counts of groups", "a count", "an or"],
)
def test_sums_of_truth_values_are_refused(statistic):
    """Two people above zero would be counted as one."""
    with pm.Model():
        x = statistic(pm.Normal("x", shape=3))
        with pytest.raises(TypeError, match="'release': the statistic adds up truth values"):
            pmd.LaplaceMechanism(1.0).potential("release", x, released=np.ones(x.type.ndim + 1))


def test_truth_values_are_counted():
    """What the law of the records does with them is no part of the statistic."""
    with pm.Model():
        a = pm.Normal("a")
        x = pm.Normal("x", pt.switch((a > 0) + (a < -1), 1.0, 0.0), shape=3) > 0
        numbers = pt.bincount(np.array([0, 0, 1]), weights=x.astype("int64"), minlength=2)
        pmd.LaplaceMechanism(1.0).potential("groups", numbers, released=[1.0, 2.0])
        pmd.LaplaceMechanism(1.0).potential("all", x.sum(), released=2.0)
        pmd.LaplaceMechanism(1.0).potential("each", x, released=[0.5, 1.0, -0.2])
        pmd.LaplaceMechanism(1.0).potential("set", x[[0, 1]].set(x[:1]), released=[0.5, 1.0, 0.3])
