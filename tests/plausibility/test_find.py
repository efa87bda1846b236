"""What in a model is a release, and what was added to which statistic."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.graphs.view import view_of
from pymc_dapper.plausibility.find import find_releases
from tests.plausibility.ways import check


def test_what_is_no_additive_noise_is_left_alone():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.5, shape=5)
        pm.Potential("logs", pt.log(100 - x).sum())
        sigma = pm.HalfNormal("sigma")
        pm.Normal("unknown scale", x.sum(), sigma, observed=1e6)
        pmd.RandomizedResponse(0.7, 2).potential("answers", x, released=[0, 1, 0, 1, 1])
    releases = find_releases(view_of(model), [model.rvs_to_values[model["x"]]])
    assert "unknown scale" not in [release.name for release in releases]
    check(model, "x")


def test_the_difference_from_what_was_released_is_found_among_others():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.5, shape=40)
        total = 2 - (1 - x).sum()
        pm.Potential("privacy", -0.5 * ((500.0 - total) / 3) ** 2 - np.log(3.0))
    with pytest.warns(UserWarning, match="released 500 is 166 noise .* -38 to 2"):
        check(model, "x", "40 records")


@pytest.mark.parametrize("of_mechanism", [True, False])
def test_the_lengths_of_records_may_be_those_of_dims(of_mechanism):
    with pm.Model(coords={"person": range(40)}) as model:
        x = pm.Bernoulli("x", 0.5, dims="person")
        if of_mechanism:
            pmd.GaussianMechanism(3).potential("privacy", x.sum(), released=500.0)
        else:
            pm.Normal("privacy", x.sum(), 3, observed=500.0)
    with pytest.warns(UserWarning, match="'privacy': released 500 is 153 noise"):
        check(model, "x", "40 records")


def test_present_data_are_compared():
    with pm.Model() as model:
        weight = pm.Data("weight", [1.0, 2.0, 3.0])
        x = pm.Bernoulli("x", 0.5, shape=3)
        pmd.LaplaceMechanism(2.0).potential("privacy", (weight * x).sum(), released=7.0)
    check(model, "x", "3 records")
    with model:
        pm.set_data({"weight": [1e3, 2e3, 3e3], "privacy_released": 7e3})
    check(model, "x", "3 records")
    with model:
        pm.set_data({"weight": [1.0, 2.0, 3.0]})
    with pytest.warns(UserWarning, match="released 7000 is"):
        check(model, "x", "3 records")
