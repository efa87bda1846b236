"""Releases that nothing in the model could produce are noticed before sampling."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.graphs.errors import ReadingError
from tests.long_cases import one_in_three
from tests.plausibility.ways import RELEASED, WAYS, applicants, check, clamped, discrete, laplace


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
    with pytest.warns(UserWarning, match="add up to 0.995, .* from 400, the total in all"):
        check(applicants(way, RELEASED / 400))


@pytest.mark.parametrize("way", [way for way in WAYS if way not in (discrete, clamped)])
def test_what_double_precision_cannot_tell_apart_is_refused(way):
    with pytest.raises(ReadingError, match=r"'privacy': released 1.1e\+17 is so far from anything"):
        check(applicants(way, 1e15 * RELEASED))


def with_a_cell_too_many(way, p, released, of=None):
    with pm.Model(coords={"person": range(400)}) as model:
        p = p(pm.Dirichlet("p", np.ones(3)))
        record = pm.Categorical("record", p=p, **(of or {"shape": 400}))
        way(pt.eye(4)[record].sum(axis=0), released)
    return model


WITHOUT_A_FOURTH = [lambda p: p, lambda p: pt.concatenate([p, [0.0]])]


@pytest.mark.parametrize("way", one_in_three([way for way in WAYS if way is not clamped]))
@pytest.mark.parametrize("p", WITHOUT_A_FOURTH)
def test_a_category_that_the_prior_cannot_give_is_noticed(way, p):
    with pytest.warns(UserWarning, match=r"'privacy': released 110 is at index 3, but all data se"):
        check(with_a_cell_too_many(way, p, RELEASED))
    check(with_a_cell_too_many(way, p, np.array([110.0, 131.0, 149.0, 10.0])))


def with_a_fourth(probability):
    return lambda p: pt.concatenate([p * (1 - probability), [probability]])


def test_a_small_number_in_the_place_of_a_structural_zero_is_noticed():
    with pytest.warns(UserWarning, match="any record counts in it is 0, or below 0.001"):
        check(with_a_cell_too_many(laplace, with_a_fourth(1e-9), RELEASED))


def test_what_hardly_varies_is_told_of_where_a_chain_would_not_find_it():
    """Seven deviations of the noise: records there are far likelier than such noise."""
    rare = with_a_fourth(1e-9)
    with pytest.warns(UserWarning, match="'privacy': released 28 is at index 3"):
        check(with_a_cell_too_many(discrete, rare, np.array([100, 120, 140, 28])))
    check(with_a_cell_too_many(discrete, rare, np.array([100, 120, 140, 12])))


@pytest.mark.parametrize("of", [{"shape": 400}, {"dims": "person"}], ids=str)
def test_a_category_that_is_rare_is_no_reason_to_warn(of):
    check(with_a_cell_too_many(laplace, with_a_fourth(1e-5), RELEASED, of))


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
    with pytest.warns(UserWarning, match="miss linear equations that hold in all data sets, by 30"):
        check(model, "table", "the counts")


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


def adjusted(noisy, total=400):
    return noisy - (noisy.sum() - total) / len(noisy)


NOISY = np.array([110.37, 131.9134, 48.2251, 111.081])


def test_values_that_were_made_consistent_with_a_total_are_refused():
    check(applicants(laplace, NOISY))
    with pytest.raises(ReadingError, match=r"'privacy': .* add up to exactly 400, .* after noise"):
        check(applicants(laplace, adjusted(NOISY)))
    check(applicants(laplace, np.array([110.5, 131.0, 48.5, 110.0])))  # by chance

    def normal(table, released):
        pmd.GaussianMechanism(4.0).potential("privacy", table, released=released)

    check(applicants(normal, adjusted(NOISY)))
    with pytest.raises(ReadingError, match="made consistent"):
        check(applicants(normal, np.array([150.37, 190.2514, 59.3786, 0.0])))


def test_least_squares_onto_a_total_keep_the_likelihood_of_normal_noise():
    """All noise that is adjusted to the same values, by quadrature, against the noisy values'."""
    tables = np.array([[a, b, 6 - a - b] for a in range(7) for b in range(7 - a)], dtype=float)
    released = adjusted(np.array([2.3, 4.9, 0.2]), 6)
    taken_off = np.linspace(-60, 60, 24_001)[:, None]

    def off(mechanism):
        def posterior(log_density):
            p = np.exp(log_density - log_density.max())
            return p / p.sum()

        noise = pt.dmatrix("noise")
        law = mechanism.noise_logp(noise).sum(axis=1)
        exact = [
            np.logaddexp.reduce(law.eval({noise: released + taken_off - x}, mode="FAST_COMPILE"))
            for x in tables
        ]
        as_noisy = mechanism.logp(released, tables).sum(axis=1).eval(mode="FAST_COMPILE")
        return np.abs(posterior(np.array(exact)) - posterior(as_noisy)).max()

    assert off(pmd.GaussianMechanism(2.0)) < 1e-12
    assert off(pmd.LaplaceMechanism(2.0)) > 1e-3


def test_a_statistic_of_a_length_that_records_change_is_refused():
    with pm.Model() as model:
        x = pm.Categorical("record", np.full(4, 1 / 4), shape=6)
        pmd.GaussianMechanism(4.0).potential("cells", pt.bincount(x), released=np.full(4, 1.5))
    with pytest.raises(ReadingError, match=r"'cells': how many numbers .* without a minlength="):
        check(model)
