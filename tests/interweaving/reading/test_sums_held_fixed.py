"""A vector that is added to parameters follows them, and the sum is held fixed."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.assignment.latent import find_latent
from pymc_dapper.assignment.parameters import hierarchy_steps
from pymc_dapper.graphs.view import view_of
from pymc_dapper.interweaving.reading.sums_held_fixed import find_sums
from tests import interweave_twins as twins
from tests.interweaving.linked import changes, read
from tests.long_cases import one_in_three

GROUP = np.array([0, 0, 1, 2])
COVARIATES = np.random.default_rng(1).normal(size=(4, 2))
SUMS = {
    "a scalar and groups": (lambda m: m["mu"] + m["four"], [("four", ["mu"])]),
    "a scalar and groups of people": (lambda m: m["mu"] + m["three"][GROUP], [("three", ["mu"])]),
    "levels and deviations": (
        lambda m: pt.tanh(m["three"][:, None] + m["grid"]),
        [("grid", ["three"])],
    ),
    "nested": (
        lambda m: 2 * m["mu"] + (m["three"][GROUP] + m["four"]) + 0.1,
        [("four", ["mu", "three"])],
    ),
    "crossed": (
        lambda m: (m["mu"] + m["three"][:, None] + m["four"])[:, :, None],
        [("four", ["mu"]), ("three", ["mu"])],
    ),
    "a regression": (
        lambda m: COVARIATES @ m["two"] + pt.exp(m["mu"]) + m["four"],
        [("four", ["mu", "two"])],
    ),
    "a product": (lambda m: m["mu"] * m["four"], []),
    "point masses": (
        lambda m: m["mu"] + pm.Censored("clipped", pm.Normal.dist(), lower=0, upper=None, shape=4),
        [],
    ),
    "a difference of logarithms": (lambda m: pt.log(m["scale"]) + m["positive"], []),
    "its own mean": (lambda m: m["centre"] + m["around"], []),
    "two scalars": (lambda m: m["mu"] + m["scale"], []),
    "covariates": (lambda m: COVARIATES[:, 0] + m["four"], []),
}


def parameters():
    with pm.Model() as model:
        pm.Normal("mu", 1, 2)
        scale = pm.HalfNormal("scale", 1)
        pm.Normal("two", 0, 1, shape=2)
        pm.Normal("three", 0, 1, shape=3)
        pm.Laplace("four", 0, scale, shape=4)
        start = pm.Normal.dist(0, 1, shape=(3, 1))
        pm.AR("grid", rho=[0.5], sigma=scale, init_dist=start, shape=(3, 4))
        pm.HalfNormal("positive", 1, shape=4)
        pm.Normal("around", pm.Normal("centre", 0, 1), 1, shape=4)
    return model


def published(case):
    with parameters() as model:
        rate = pt.exp(0.3 * SUMS[case][0](model))
        pm.Poisson("y", rate, observed=np.full(rate.shape.eval(mode="FAST_COMPILE"), 2))
    return model


@pytest.mark.parametrize("case", one_in_three(SUMS))
def test_the_longest_vector_of_a_sum_follows_what_it_is_added_to(case):
    model = published(case)
    found = find_sums(view_of(model), model.free_RVs)
    assert [(rv.name, [x.name for x in movers]) for rv, movers in found] == SUMS[case][1]


FEW = "levels and deviations", "nested"


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=() if case in FEW else pytest.mark.long)
        for case, (_, found) in SUMS.items()
        if found
    ],
)
def test_the_change_of_the_log_density_is_that_of_the_model_with_the_jacobian(case):
    model = published(case)
    [(follower, movers), *_] = SUMS[case][1]
    reading = read(model, movers, [follower])
    assert reading.sums == (follower,)
    assert {follower, *movers, "y"} <= {*reading.factors}
    by_reading, by_model = changes(model, reading, np.random.default_rng(3))
    np.testing.assert_allclose(by_reading, by_model, rtol=1e-6, atol=1e-6)
    broken = twins.without_factor(follower)(reading)
    by_reading, _ = changes(model, broken, np.random.default_rng(3))
    assert abs(by_reading - by_model) > 1e-3


def test_the_sum_stays_as_it_is():
    model = published("nested")
    reading = read(model, ["mu", "three"], ["four"])
    rng = np.random.default_rng(2)
    present = {"mu": 0.3, "three": rng.normal(size=3), "four": rng.normal(size=4)}
    new = {"mu_proposed": -0.4, "three_proposed": rng.normal(size=3)}
    [moved] = reading.moved_records
    values = {x: {**present, **new}[x.name] for x in (*reading.parameters, *reading.proposed)}
    followed = moved.eval({**values, reading.records[0]: present["four"]}, mode="FAST_COMPILE")
    before = 2 * present["mu"] + present["three"][GROUP] + present["four"]
    after = 2 * new["mu_proposed"] + new["three_proposed"][GROUP] + followed
    np.testing.assert_allclose(after, before)


def test_a_step_says_which_sum_it_holds_fixed():
    with pm.Model() as model:
        level = pm.Normal("level", 3, 1)
        weeks = pm.GaussianRandomWalk("weeks", sigma=0.1, init_dist=pm.Normal.dist(), shape=5)
        events = pm.Poisson("events", pt.exp(level + weeks), shape=5)
        pmd.DiscreteGaussianMechanism(2.0).potential("s", events, released=[20, 18, 25, 22, 21])
    [step] = hierarchy_steps(find_latent(model, None, None), [level, weeks], {"model": model})
    assert step.describe().splitlines() == [
        "Moves 'level' with the sum with 'weeks' held fixed.",
        "Records that follow: 'weeks'",
        "Factors that decide on a move: 'level', 'weeks', 'events'",
        "Begins if tuning mixes poorly without",
    ]
