"""Rejection draws against exact posteriors, and refusals."""

import sys

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import ordered

import pymc_dapper as pmd
from examples._poisson_laplace import PoissonLaplacePosterior
from pymc_dapper.reference import TablePosterior
from pymc_dapper.reference.dirichlet_table import gaussian_cell_loglik
from pymc_dapper.reference.rejection_abc import (
    mechanism_log_bound,
    mechanism_log_density,
    rejection_abc,
    rejection_abc_model,
)
from tests.monte_carlo import z_scores

pytestmark = pytest.mark.long

EXACT = PoissonLaplacePosterior(37.4, 5, 25, 1)
LAPLACE = pmd.LaplaceMechanism(5.0)
# `import` would find the function of this name in the package, not the module.
MODULE = sys.modules[rejection_abc.__module__]


def half_log_ratio(log_ratio, rng):
    return -rng.exponential(size=log_ratio.shape) < log_ratio / 2


def everything(log_ratio, rng):
    return np.ones(log_ratio.shape, dtype=bool)


TWINS = [half_log_ratio, everything]


def prior(size, rng):
    return {"theta": rng.gamma(25, 1, size)}


def count(parameters, rng):
    return rng.poisson(parameters["theta"])


def log_noise(s):
    return -np.abs(37.4 - s) / 5


def worst(draws, exact):
    return max(abs(z) for z in z_scores(draws[None], exact).values())


def from_functions(mechanism=log_noise, **kwargs):
    options = {"draws": 20_000, "random_seed": 1, "progressbar": False, **kwargs}
    return rejection_abc(prior, count, mechanism, **options)


@pytest.fixture(scope="module")
def poisson_models():
    """The same posterior, with the mechanism as a Potential and as an observed variable."""
    with pm.Model() as potential:
        s = pm.Poisson("s", pm.Gamma("theta", 25, 1), shape=1)
        LAPLACE.potential("noisy", s.sum(), released=37.4)
    with pm.Model() as observed:
        s = pm.Poisson("s", pm.Gamma("theta", 25, 1))
        LAPLACE.observe("noisy", s, released=37.4)
    return {"potential": potential, "observed": observed}


def from_model(model, **kwargs):
    options = {"draws": 4_000, "random_seed": 1, "progressbar": False, **kwargs}
    return rejection_abc_model(model, options.pop("bounds", {"noisy": LAPLACE}), **options)


class TestExactness:
    def test_draws_from_functions(self):
        result = from_functions(log_bound=0.0)
        assert worst(result.draws["theta"], EXACT) < 4

    @pytest.mark.parametrize("twin", TWINS)
    def test_other_acceptance_is_detected(self, twin, monkeypatch):
        monkeypatch.setattr(MODULE, "accept", twin)
        assert worst(from_functions(log_bound=0.0).draws["theta"], EXACT) > 4

    def test_draws_by_a_mechanism(self):
        result = from_functions(LAPLACE, released=37.4)
        assert worst(result.draws["theta"], EXACT) < 4
        assert abs(result.log_evidence - EXACT.log_evidence) < 4 * result.log_evidence_se
        assert result.log_evidence_se < 0.01

    def test_a_bound_higher_than_needed_costs_simulations_only(self):
        tight, loose = from_functions(log_bound=0.0), from_functions(log_bound=1.0)
        assert worst(loose.draws["theta"], EXACT) < 4
        difference = np.log(tight.acceptance / loose.acceptance)
        error = np.hypot(tight.log_evidence_se, loose.log_evidence_se)
        assert abs(difference - 1) < 4 * error
        assert loose.largest_log_density == pytest.approx(-0.4 / 5)

    @pytest.mark.parametrize("form", ["potential", "observed"])
    def test_draws_from_a_model(self, poisson_models, form):
        result = from_model(poisson_models[form])
        assert worst(result.draws["theta"], EXACT) < 4
        assert abs(result.log_evidence - EXACT.log_evidence) < 4 * result.log_evidence_se

    @pytest.mark.parametrize("twin", TWINS)
    def test_other_acceptance_in_a_model_is_detected(self, poisson_models, twin, monkeypatch):
        monkeypatch.setattr(MODULE, "accept", twin)
        assert worst(from_model(poisson_models["potential"]).draws["theta"], EXACT) > 4

    def test_the_statistic_comes_with_its_posterior(self):
        result = from_functions(log_bound=0.0)
        s, weights = EXACT.counts
        mean = weights @ s
        error = np.sqrt(weights @ (s - mean) ** 2 / result.accepted)
        assert abs(result.draws["statistic"].mean() - mean) < 4 * error


FIRST, OTHER, SECOND = np.array([7, 2, 5]), np.array([2, 7, 5]), np.array([6, 4, 3])


def table_posterior(first):
    loglik = gaussian_cell_loglik(first, 2.0, 12) + gaussian_cell_loglik(SECOND, 3.0, 12)
    return TablePosterior(np.ones(3), loglik)


@pytest.fixture(scope="module")
def table():
    """A table with two releases of it, one given as data."""
    cells = ["a", "b", "c"]
    with pm.Model(coords={"cell": cells}) as model:
        p = pm.Dirichlet("p", np.ones(3), dims="cell")
        record = pm.Categorical("record", p=p, shape=12)
        counts = pm.Deterministic("counts", pt.eye(3)[record].sum(axis=0), dims="cell")
        first = pmd.DiscreteGaussianMechanism(2.0)
        first.potential("first", counts, released=pm.Data("first_released", FIRST))
        second = pmd.DiscreteGaussianMechanism(3.0)
        second.observe("second", counts, released=SECOND)
    return model, {"first": first, "second": second}, table_posterior(FIRST)


class TestATableInAModel:
    def test_all_cells_agree_and_have_their_names(self, table):
        model, bounds, exact = table
        result = rejection_abc_model(
            model, bounds, var_names=["p", "counts"], draws=4_000, random_seed=2, progressbar=False
        )
        for k in range(3):
            assert worst(result.draws["p"][:, k], exact.cell(k)) < 4
        tree = result.to_datatree()
        assert tree.posterior["p"].dims == ("chain", "draw", "cell")
        assert list(tree.posterior["cell"].values) == ["a", "b", "c"]
        assert tree.posterior.attrs["acceptance"] == result.acceptance
        np.testing.assert_array_equal(tree.posterior["counts"].sum("cell"), 12)

    def test_another_release_is_taken_over(self, table):
        model, bounds, before = table
        with model:
            pm.set_data({"first_released": OTHER})
        try:
            result = rejection_abc_model(
                model, bounds, draws=4_000, random_seed=2, progressbar=False
            )
        finally:
            with model:
                pm.set_data({"first_released": FIRST})
        p = result.draws["p"][:, 0]
        assert worst(p, table_posterior(OTHER).cell(0)) < 4
        assert worst(p, before.cell(0)) > 4


class TestSeedsAndBudget:
    def test_a_seed_gives_the_same_draws(self, poisson_models):
        model = poisson_models["potential"]
        for run in (
            lambda **k: from_functions(log_bound=0.0, **k),
            lambda **k: from_model(model, **k),
        ):
            one, same, other = (run(draws=50, random_seed=seed) for seed in (3, 3, 4))
            np.testing.assert_array_equal(one.draws["theta"], same.draws["theta"])
            assert one.simulations == same.simulations
            assert not np.array_equal(one.draws["theta"], other.draws["theta"])

    def test_the_models_own_generators_are_left_alone(self, poisson_models):
        model = poisson_models["observed"]
        before = pm.draw(model["theta"], random_seed=5)
        from_model(model, draws=10)
        assert pm.draw(model["theta"], random_seed=5) == before

    def test_acceptance_counts_up_to_the_last_draw(self):
        few = from_functions(log_bound=0.0, draws=3, batch_size=10_000)
        assert few.accepted == 3
        assert few.simulations < 1_000
        assert few.acceptance == 3 / few.simulations

    def test_the_budget_ends_a_run_with_a_warning(self):
        with pytest.warns(UserWarning, match="budget of 1500 simulations gave"):
            result = from_functions(log_bound=0.0, draws=10_000, max_simulations=1_500)
        assert result.simulations == 1_500
        assert 0 < result.accepted < 1_500

    def test_progress_is_shown_and_can_be_left_out(self, capsys):
        from_functions(log_bound=0.0, draws=10)
        assert capsys.readouterr().out == ""
        from_functions(log_bound=0.0, draws=10, progressbar=True)
        assert "Rejection ABC" in capsys.readouterr().out


STATISTICS = np.linspace(-60, 60, 24_001)


@pytest.mark.parametrize(
    ("mechanism", "released"),
    [
        (pmd.LaplaceMechanism(2.0), 3.3),
        (pmd.LaplaceMechanism(2.0).rounded(), 3),
        (pmd.LaplaceMechanism(2.0).clamped(0, None), 0.0),
        (pmd.LaplaceMechanism(2.0).clamped(0, None), 1.5),
        (pmd.GaussianMechanism(3.0).clamped(None, 4), 4.0),
        (pmd.GaussianMechanism(3.0), -2.0),
        (pmd.DiscreteLaplaceMechanism(2.0), 3),
        (pmd.DiscreteGaussianMechanism(2.0), 3),
        (pmd.LaplaceMechanism(2.0).rounded(5, ties="down").published_if(">", 4), np.array(10)),
        (pmd.LaplaceMechanism(2.0).published_if(">=", 4).rounded(5), np.array(5)),
        (pmd.GaussianMechanism(2.0).in_ranges([0, 5, 9]), np.array(1)),
        (pmd.DiscreteLaplaceMechanism(2.0).rounded(5), 5),
        (pmd.DiscreteLaplaceMechanism(2.0).nonempty().published_if(">=", -5), -3),
        (pmd.TulapMechanism(0.6), 3.3),
        (pmd.TulapMechanism(0.6, 0.1), 3.3),
    ],
)
def test_the_bound_is_the_largest_density(mechanism, released):
    statistics = np.arange(-60, 60) if isinstance(released, int) else STATISTICS
    densities = mechanism.logp(released, statistics).eval(mode="FAST_COMPILE")
    assert mechanism_log_bound(mechanism, released) == pytest.approx(densities.max(), abs=1e-4)


def test_suppressed_entries_may_have_been_anything_low():
    mechanism = pmd.LaplaceMechanism(2.0).published_if(">=", 4)
    there = mechanism_log_bound(mechanism, np.array([7.0]))
    assert mechanism_log_bound(mechanism, [7.0, np.nan]) == there
    assert mechanism_log_bound(mechanism, pmd.published_rows([7.0], [1], 3)) == there
    log_density = mechanism_log_density(mechanism, [7.0, np.nan])
    assert log_density(np.array([[7.0, -1e3]])) == pytest.approx(there)


def test_the_bound_of_a_vector_is_that_of_all_entries():
    mechanism = pmd.KNormMechanism(2.0, norm=2)
    released = np.array([1.0, -3.0])
    nearby = released + np.random.default_rng(1).normal(0, 0.01, (1_000, 2))
    densities = mechanism.logp(released, nearby).eval(mode="FAST_COMPILE")
    bound = mechanism_log_bound(mechanism, released)
    assert densities.max() < bound < densities.max() + 0.01
    answers = pmd.RandomizedResponse(0.75, categories=2)
    assert mechanism_log_bound(answers, [1, 0, 1]) == pytest.approx(3 * np.log(0.75))


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "log_bound is needed"),
            ({"log_bound": np.inf}, "must be a finite number"),
            ({"log_bound": -1.0}, "above its bound -1"),
            ({"log_bound": 0.0, "draws": 0}, "draws must be"),
            ({"log_bound": 0.0, "max_simulations": 0}, "max_simulations must be"),
            ({"log_bound": 0.0, "batch_size": -1}, "batch_size must be"),
            ({"log_bound": 0.0, "released": 37.4}, "released goes with a mechanism object"),
            ({"mechanism": LAPLACE}, "released is needed"),
            ({"mechanism": LAPLACE, "released": [37.4]}, r"statistics must have shape \(any, 1\)"),
            ({"mechanism": LAPLACE, "released": np.inf}, "finite numbers"),
            ({"mechanism": lambda s: s * np.nan, "log_bound": 0.0}, "is nan"),
            ({"mechanism": lambda s: 0.0, "log_bound": 0.0}, "must have shape"),
        ],
    )
    def test_arguments_that_make_no_sense(self, options, message):
        with pytest.raises(ValueError, match=message):
            from_functions(**options)

    @pytest.mark.parametrize(
        ("wrong_prior", "wrong_statistic", "message"),
        [
            (lambda size, rng: np.ones(size), count, "must return a mapping"),
            (lambda size, rng: {"theta": np.ones(3)}, count, "prior: 'theta' must have one entry"),
            (prior, lambda parameters, rng: 3.0, "statistic must have one entry"),
        ],
    )
    def test_wrong_shapes(self, wrong_prior, wrong_statistic, message):
        with pytest.raises(ValueError, match=message):
            rejection_abc(wrong_prior, wrong_statistic, log_noise, log_bound=0, progressbar=False)

    def test_no_acceptance_says_why(self):
        with pytest.raises(RuntimeError, match="impossible for every statistic"):
            from_functions(lambda s: np.full(s.shape, -np.inf), log_bound=0, max_simulations=100)
        with pytest.raises(RuntimeError, match="Raise max_simulations"):
            from_functions(lambda s: -1e4 * (s + 10.0), log_bound=0, max_simulations=100)

    def test_a_mechanism_whose_bound_is_not_known(self):
        custom = pmd.CustomMechanism(lambda released, s: -abs(released - s))
        with pytest.raises(TypeError, match="upper bound of its log-density"):
            from_functions(custom, released=37.4)
        assert from_functions(custom, released=37.4, log_bound=0, draws=5).accepted == 5

    def test_an_impossible_release(self):
        with pytest.raises(ValueError, match="releases integers"):
            mechanism_log_bound(pmd.DiscreteLaplaceMechanism(2.0), 1.5)

    @pytest.mark.parametrize(
        ("bounds", "message"),
        [
            ({}, "lacks \\['noisy'\\]"),
            ({"noisy": 0.0, "other": 0.0}, "aren't among them"),
            ({"noisy": -5.0}, "density of 'noisy' is .* above its bound"),
            ({"noisy": np.nan}, "bound of 'noisy' must be a finite"),
        ],
    )
    def test_bounds_of_a_model(self, poisson_models, bounds, message):
        with pytest.raises(ValueError, match=message):
            from_model(poisson_models["potential"], bounds=bounds)

    def test_a_mechanism_for_a_potential_of_unknown_release(self):
        with pm.Model() as model:
            theta = pm.Gamma("theta", 25, 1)
            pm.Potential("noisy", LAPLACE.logp(37.4, theta))
        with pytest.raises(ValueError, match="mechanism_log_bound"):
            from_model(model)

    def test_models_whose_prior_differs_from_its_draws(self):
        def flat():
            return pm.Flat("x", shape=2)

        def in_order():
            return pm.Normal("x", [0, 1], 1, transform=ordered)

        for build, message in ((flat, "improper prior"), (in_order, "has the transform")):
            with pm.Model() as model:
                pm.Laplace("noisy", build().sum(), 1, observed=3)
            with pytest.raises(ValueError, match=message):
                from_model(model)

    def test_models_without_factors_or_variables(self, poisson_models):
        with pm.Model() as no_factor:
            pm.Normal("x", 0, 1)
        with pytest.raises(ValueError, match="no Potential and no observed"):
            from_model(no_factor)
        with pm.Model() as nothing_free:
            pm.Laplace("noisy", 0, 1, observed=3)
        with pytest.raises(ValueError, match="no free variables"):
            from_model(nothing_free)
        with pytest.raises(ValueError, match="the model has no free or deterministic variable"):
            from_model(poisson_models["potential"], var_names=["mu"])
