"""Which variables can be records, and which priors tie them together."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import ordered

from tests.records.refusals import refuse, with_mechanism


def random_walk():
    return with_mechanism(pm.GaussianRandomWalk("x", 0, 1, steps=5, init_dist=pm.Normal.dist(0, 1)))


def one_multivariate_draw():
    return with_mechanism(pm.MvNormal("x", np.zeros(5), np.eye(5)))


def zero_sum():
    return with_mechanism(pm.ZeroSumNormal("x", shape=5))


@pytest.mark.parametrize("build", [random_walk, one_multivariate_draw, zero_sum])
def test_a_prior_that_is_one_draw_of_all_records(build):
    refuse(build, "'x' has no record axis: its prior is one draw that ties all its entries")
    refuse(build, r"pmd.sample\(\) alone finds the records")


def test_a_transform_that_ties_records():
    refuse(
        lambda: with_mechanism(pm.Normal("x", np.arange(5.0), 1, shape=5, transform=ordered)),
        r"the prior of 'x' ties records together \(transform Ordered",
    )


@pytest.mark.parametrize("of", [lambda x: x.mean(), lambda x: x[::-1], pt.cumsum])
def test_a_prior_that_depends_on_other_records(of):
    def build():
        x = pm.Normal("x", shape=5)
        y = pm.Normal("y", of(x), shape=5)
        return [with_mechanism(x), y]

    refuse(build, "the prior of 'y' ties records together")


def test_records_of_different_lengths():
    def build():
        x, y = pm.Normal("x", shape=5), pm.Normal("y", shape=4)
        pm.Potential("privacy", -((x.sum() + y.sum()) ** 2))
        return [x, y]

    refuse(build, "equally many.*'x' has 5, 'y' has 4")


def test_covariates_of_another_width_than_the_coefficients():
    def build():
        covariates = pm.Data("covariates", np.ones((5, 2)))
        x = with_mechanism(pm.Normal("x", covariates @ pm.Normal("b", shape=2), shape=5))
        pm.set_data({"covariates": np.ones((5, 3))})
        return [x]

    refuse(build, r"'x' can't be evaluated with the shapes .*'covariates' \(5, 3\)")


def test_no_records_at_all():
    refuse(lambda: with_mechanism(pm.Normal("x", shape=0)), "'x' has no records")
