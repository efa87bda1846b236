"""Releases that nothing in the model could produce are noticed before sampling."""

import warnings

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.releases import NoiseLaw, ReleaseCheck, find_releases

RELEASED = np.array([110.0, 131.0, 47.0, 110.0])


def by_hand(table, released):
    pm.Potential("privacy", -0.5 * (((released - table) / 4.0) ** 2).sum())


def by_hand_laplace(table, released):
    pm.Potential("privacy", (-pt.abs(table - released) / 4.0).sum())


def as_pymc_distribution(table, released):
    pm.Normal("privacy", table, 4.0, observed=released)


def laplace(table, released):
    pmd.LaplaceMechanism(4.0).potential("privacy", table, released=released)


def discrete(table, released):
    pmd.DiscreteGaussianMechanism(4.0).potential("privacy", table, released=np.rint(released))


def clamped(table, released):
    mechanism = pmd.GaussianMechanism(4.0, clamp=(0, None), rounding=True)
    mechanism.potential("privacy", table, released=np.maximum(0, np.rint(released)))


def joint(table, released):
    pmd.LInfMechanism(4.0).potential("privacy", table, released=released)


WAYS = [by_hand, by_hand_laplace, as_pymc_distribution, laplace, discrete, clamped, joint]


def applicants(way, released, n=400):
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(4))
        record = pm.Categorical("record", p=p, shape=n)
        way(pt.eye(4)[record].sum(axis=0), released)
    return model


def check(model, name="record", latent="400 records"):
    return ReleaseCheck(model, [model.rvs_to_values[model[name]]], latent)


@pytest.mark.parametrize("way", WAYS)
def test_possible_releases_pass(way):
    check(applicants(way, RELEASED))
    # Noise of three deviations below an empty cell.
    check(applicants(way, np.array([-12.0, 260.0, 0.0, 140.0])))


@pytest.mark.parametrize("way", WAYS)
def test_a_release_in_other_units_is_noticed(way):
    with pytest.warns(UserWarning, match=r"'privacy': released 1310 is \d+ noise standard") as told:
        check(applicants(way, 10 * RELEASED))
    assert len(told) == 1
    assert "400 records can give, 0 to 400, and " in str(told[0].message)


@pytest.mark.parametrize("way", [way for way in WAYS if way is not discrete])
def test_proportions_in_the_place_of_counts_are_noticed(way):
    if way is clamped:
        released = np.array([1.0, 0.0, 0.0, 0.0])  # each of them at a limit, or within reach
        check(applicants(way, released))
        return
    with pytest.warns(UserWarning, match="add up to 0.995, .* from 400, what they come to in all"):
        check(applicants(way, RELEASED / 400))


@pytest.mark.parametrize("way", [way for way in WAYS if way not in (discrete, clamped)])
def test_what_double_precision_cannot_tell_apart_is_refused(way):
    with pytest.raises(ReadingError, match=r"'privacy': released 1.1e\+17 is so far from anything"):
        check(applicants(way, 1e15 * RELEASED))


def test_the_distance_is_in_standard_deviations_of_the_noise():
    expected = {by_hand: 4.0, laplace: 4 * 2**0.5, discrete: 4.0, clamped: 4.0}
    for way, sd in expected.items():
        model = applicants(way, RELEASED)
        [release] = find_releases(model, [model.rvs_to_values[model["record"]]])
        np.testing.assert_allclose(NoiseLaw(release.noise, (4,)).deviations(), sd, rtol=0.02)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_any_scale_of_the_noise(scale):
    def way(table, released):
        pmd.GaussianMechanism(4.0 * scale).potential("privacy", scale * table, released=released)

    check(applicants(way, scale * RELEASED))
    with pytest.warns(UserWarning, match=r"is 22\d noise standard deviations"):
        check(applicants(way, 10 * scale * RELEASED))


def test_heavy_tails_explain_what_light_ones_do_not():
    def cauchy(table, released):
        pm.Cauchy("privacy", table, 4.0, observed=released)

    check(applicants(cauchy, RELEASED + 400))


def unbounded(released, sd=2.0):
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, sd)
        x = pm.Normal("x", mu, 1, shape=50)
        pmd.LaplaceMechanism(3.0).potential("privacy", x.sum(), released=released)
    return model


def test_where_the_statistic_has_no_bounds_the_prior_tells():
    for released in (0.0, -300.0):  # 300: three prior standard deviations
        check(unbounded(released), "x")
    with pytest.warns(UserWarning, match="'privacy': released 1e[+]06 .* where the prior leads"):
        check(unbounded(1e6), "x")
    check(unbounded(1e6, sd=1e5), "x")


def test_a_prior_that_cannot_be_drawn_from_is_no_obstacle():
    with pm.Model() as model:
        mu = pm.Flat("mu")
        x = pm.Normal("x", mu, 1, shape=5)
        pmd.LaplaceMechanism(3.0).potential("privacy", x.sum(), released=1e9)
    check(model, "x")


HEAVY = {
    "vague": lambda: pm.Gamma("rate", 0.001, 0.001),
    "less vague": lambda: pm.Gamma("rate", 0.01, 0.001),
    "half-Cauchy": lambda: pm.HalfCauchy("rate", 40.0),
    "Pareto": lambda: pm.Pareto("rate", 0.7, 1.0),
}


@pytest.mark.parametrize("prior", HEAVY.values(), ids=HEAVY)
def test_priors_whose_draws_do_not_show_how_far_they_reach_are_trusted(prior):
    with pm.Model() as model:
        table = pm.Poisson("table", prior(), shape=3)
        released = np.array([1009.0, 1204.0, 1530.0])
        pmd.GaussianMechanism(5.0).potential("privacy", table, released=released)
    check(model, "table", "the counts")


def test_cells_that_are_empty_in_most_data_sets_may_be_full():
    released = np.array([100.0, 200.0, 100.0])
    with pm.Model() as model:
        p = pm.Dirichlet("p", [1.0, 1.0, 1e-3])
        table = pm.Multinomial("table", n=400, p=p)
        pmd.GaussianMechanism(2.0).potential("privacy", table, released=released)
        check(model, "table", "the counts")
    with model:
        pmd.GaussianMechanism(2.0).potential("more", table, released=released + 50.0)
    with pytest.warns(UserWarning, match="'more': the released values add up to 550"):
        check(model, "table", "the counts")


@pytest.mark.parametrize("released", [1e3, 1e12])
def test_counts(released):
    with pm.Model() as model:
        table = pm.Multinomial("table", n=100, p=np.ones(3) / 3)
        pmd.GaussianMechanism(5.0).potential("privacy", table, released=[released, 30.0, 45.0])
    if released == 1e3:
        with pytest.warns(UserWarning, match="released 1000 is 180 noise .* that the counts can"):
            check(model, "table", "the counts")
    else:
        with pytest.raises(ReadingError, match="in double precision"):
            check(model, "table", "the counts")


def test_margins_that_contradict_each_other_are_noticed():
    with pm.Model() as model:
        table = pm.Multinomial("table", n=100, p=pm.Dirichlet("p", np.ones(4)))
        cells = table.reshape((2, 2))
        margins = pt.concatenate([cells.sum(axis=0), cells.sum(axis=1)])
        pmd.GaussianMechanism(1.0).potential("privacy", margins, released=[40.0, 90, 10, 60])
    with pytest.warns(UserWarning, match="from satisfying the linear equations"):
        check(model, "table", "the counts")


def test_what_is_no_additive_noise_is_left_alone():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.5, shape=5)
        pm.Potential("logs", pt.log(100 - x).sum())
        sigma = pm.HalfNormal("sigma")
        pm.Normal("unknown scale", x.sum(), sigma, observed=1e6)
        pmd.RandomizedResponse(0.7, 2).potential("answers", x, released=[0, 1, 0, 1, 1])
    releases = find_releases(model, [model.rvs_to_values[model["x"]]])
    assert "unknown scale" not in [release.name for release in releases]
    check(model, "x")


def test_steps_look_at_releases_when_built_and_when_data_change(uncompiled):
    with pytest.warns(UserWarning, match="released 1310 is"):
        pmd.DapperStep([(model := applicants(laplace, 10 * RELEASED))["record"]], model=model)
    model = applicants(laplace, RELEASED)
    step = pmd.DapperStep([model["record"]], model=model)
    with model:
        pm.set_data({"privacy_released": 10 * RELEASED})
    with pytest.warns(UserWarning, match="released 1310 is"):
        step.setup_chain(1, 10, 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # told once
        step.setup_chain(1, 10, 10)
        with model:
            pm.set_data({"privacy_released": RELEASED})
        step.setup_chain(1, 10, 10)
    with pm.Model() as counted:
        table = pm.Multinomial("table", n=100, p=np.ones(3) / 3)
        pmd.GaussianMechanism(5.0).potential("privacy", table, released=[1e3, 30.0, 45.0])
    with pytest.warns(UserWarning, match="released 1000 is"):
        pmd.CountStep([table], model=counted)


def test_the_difference_from_what_was_released_is_found_among_others():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.5, shape=40)
        total = 2 - (1 - x).sum()
        pm.Potential("privacy", -0.5 * ((500.0 - total) / 3) ** 2 - np.log(3.0))
    with pytest.warns(UserWarning, match="released 500 is 166 noise .* -38 to 2"):
        check(model, "x", "40 records")


def test_other_data_change_what_is_compared():
    with pm.Model() as model:
        weight = pm.Data("weight", [1.0, 2.0, 3.0])
        x = pm.Bernoulli("x", 0.5, shape=3)
        pmd.LaplaceMechanism(2.0).potential("privacy", (weight * x).sum(), released=7.0)
    checked = check(model, "x", "3 records")
    with model:
        pm.set_data({"weight": [1e3, 2e3, 3e3], "privacy_released": 7e3})
    checked.data_changed([model["weight"], model["privacy_released"]])
    with model:
        pm.set_data({"weight": [1.0, 2.0, 3.0]})
    with pytest.warns(UserWarning, match="released 7000 is"):
        checked.data_changed([model["weight"]])


def test_what_is_compared_is_not_sent_to_workers():
    model = applicants(laplace, RELEASED)
    copy = cloudpickle.loads(cloudpickle.dumps(check(model)))
    copy._model["privacy_released"].set_value(10 * RELEASED)
    with pytest.warns(UserWarning, match="released 1310 is"):
        copy.data_changed([copy._model["privacy_released"]])
