"""Monte Carlo EM against exact likelihoods; its errors against their spread over seeds."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

from examples._errors_in_counts import CountRegression
from examples._poisson_laplace import PoissonLaplace
from pymc_dapper.reference.monte_carlo_em import importance_weights, louis, monte_carlo_em

ESTIMATE, INFORMATION = PoissonLaplace(37.4, 5).maximum()
# `import` would find the function of this name in the package, not the module.
MODULE = sys.modules[monte_carlo_em.__module__]


def simulate(theta, size, rng):
    return rng.poisson(theta[0], size)


def log_mechanism(s):
    return -np.abs(37.4 - s) / 5


def log_likelihood(theta, s):
    return s * np.log(theta[0]) - theta[0]


def score(theta, s):
    return (s / theta[0] - 1)[:, None]


def weighted_mean(s, weights):
    return weights @ s


def run(**kwargs):
    options = {
        "start": 30.0,
        "maximise": weighted_mean,
        "score": score,
        "random_seed": 1,
        "progressbar": False,
        **kwargs,
    }
    functions = [options.pop(f.__name__, f) for f in (simulate, log_mechanism, log_likelihood)]
    return monte_carlo_em(*functions, **options)


def z_scores(result):
    """Monte Carlo standard errors between estimate and information and the exact ones."""
    return np.array(
        [
            (result.estimate[0] - ESTIMATE) / result.estimate_mc_se[0],
            (result.information[0, 0] - INFORMATION) / result.information_mc_se[0, 0],
        ]
    )


@pytest.fixture(scope="module")
def precise():
    return run(final_draws=400_000)


class TestThePublishedExample:
    def test_estimate_and_information_agree(self, precise):
        assert precise.converged
        assert np.all(np.abs(z_scores(precise)) < 4)
        # Close enough to tell the printed 37.237 and 1.582e-2 from the next best guesses.
        assert precise.estimate_mc_se[0] < 0.01
        assert precise.information_mc_se[0, 0] < 3e-5

    def test_complete_and_missing_information(self, precise):
        # At the maximum the complete information is 1 / theta.
        assert precise.complete_information[0, 0] == pytest.approx(1 / ESTIMATE, rel=2e-3)
        missing = precise.complete_information - precise.missing_information
        np.testing.assert_allclose(precise.information, missing)
        assert precise.standard_errors[0] == pytest.approx(INFORMATION**-0.5, rel=5e-3)

    def test_squared_weights_are_told_apart(self, monkeypatch):
        def squared(log_weights, theta):
            return importance_weights(2 * log_weights, theta)

        monkeypatch.setattr(MODULE, "importance_weights", squared)
        assert np.all(np.abs(z_scores(run(final_draws=400_000))) > 4)

    def test_complete_information_in_place_of_observed_is_detected(self, monkeypatch):
        def without_missing(*arguments):
            moments = louis(*arguments)
            nothing = 0 * moments.missing_information
            return replace(moments, missing_information=nothing)

        monkeypatch.setattr(MODULE, "louis", without_missing)
        assert abs(z_scores(run())[1]) > 4

    def test_monte_carlo_errors_are_what_they_say(self):
        z = np.array([z_scores(run(random_seed=seed, final_draws=5_000)) for seed in range(100)])
        low, high = chi2.ppf([0.0005, 0.9995], len(z))
        for column in z.T:
            assert low < (column**2).sum() < high
            # Errors half as large would not pass.
            assert ((2 * column) ** 2).sum() > high

    def test_a_numerical_m_step_and_numerical_derivatives_give_the_same(self):
        given = run()
        for left_out in ({"maximise": None}, {"score": None}, {"maximise": None, "score": None}):
            numerical = run(bounds=[(1e-3, None)], **left_out)
            np.testing.assert_allclose(numerical.estimate, given.estimate, rtol=1e-4)
            np.testing.assert_allclose(numerical.information, given.information, rtol=1e-3)

    @pytest.mark.parametrize("start", [5.0, 120.0])
    def test_the_start_does_not_matter(self, start):
        assert np.all(np.abs(z_scores(run(start=start))) < 4)

    def test_a_seed_gives_the_same_numbers(self):
        one, same, other = run(), run(), run(random_seed=2)
        assert one.estimate == same.estimate
        assert one.estimate != other.estimate


class TestTheStoppingRule:
    def test_steps_count_only_if_they_rise_above_noise(self):
        result = run(draws=20, start=36.0, tolerance=1e-4)
        assert {step.counted for step in result.iterations} == {True, False}
        for before, after in zip(result.iterations, result.iterations[1:], strict=False):
            lower = before.gain - 0.6745 * before.gain_se
            assert before.counted == (lower > 0)
            if not before.counted:
                assert after.draws > before.draws
        last = result.iterations[-1]
        assert last.gain + 0.6745 * last.gain_se < 1e-4
        assert all(0 < step.ess <= step.draws for step in result.iterations)

    def test_a_smaller_tolerance_takes_more_steps_and_ends_closer(self):
        errors = []
        for tolerance in (1e-1, 1e-5):
            last = run(tolerance=tolerance).iterations[-1]
            errors.append(abs(last.estimate[0] - ESTIMATE))
        assert errors[1] < errors[0]

    def test_the_last_steps_make_up_for_an_early_stop(self):
        early = run(tolerance=1e-1)
        assert abs(early.iterations[-1].estimate[0] - ESTIMATE) > 10 * early.estimate_mc_se[0]
        assert np.all(np.abs(z_scores(early)) < 4)

    def test_too_few_draws_end_with_a_warning(self):
        with pytest.warns(UserWarning, match="can't be told from noise"):
            result = run(tolerance=1e-6, max_draws=1_000, draws=100, start=37.0)
        assert not result.converged

    def test_too_few_steps_end_with_a_warning(self):
        with pytest.warns(UserWarning, match="after max_iterations = 2"):
            result = run(max_iterations=2)
        assert not result.converged
        assert len(result.iterations) == 2

    def test_progress_is_shown_and_can_be_left_out(self, capsys):
        run()
        assert capsys.readouterr().out == ""
        run(progressbar=True)
        assert "Monte Carlo EM" in capsys.readouterr().out


REGRESSION = CountRegression(rate=10, sd=5, scale=5)


@pytest.fixture(scope="module")
def noisy_pairs():
    rng = np.random.default_rng(2)
    return REGRESSION.release(*REGRESSION.simulate([-5, 4], 10, rng), rng)


@pytest.fixture(scope="module")
def regression(noisy_pairs):
    return REGRESSION.monte_carlo_em(*noisy_pairs, random_seed=1, progressbar=False)


def exact_maximum(model, pairs, start):
    """The maximum of the exact likelihood, and its curvature by differences."""

    def minus(line):
        return -model.loglik(line, *pairs)

    options = {"xatol": 1e-8, "fatol": 1e-11, "maxiter": 4_000}
    maximum = minimize(minus, start, method="Nelder-Mead", options=options).x
    h = np.array([0.05, 0.005])
    curvature = np.empty((2, 2))
    for i, j in np.ndindex(2, 2):
        a, b = h * np.eye(2)[i], h * np.eye(2)[j]
        corners = minus(
            np.stack([maximum + a + b, maximum + a - b, maximum - a + b, maximum - a - b])
        )
        curvature[i, j] = corners @ [1, -1, -1, 1] / (4 * h[i] * h[j])
    return maximum, curvature


class TestTheRegression:
    """Blocks: each pair has weights of its own."""

    def test_estimate_and_information_agree(self, noisy_pairs, regression):
        maximum, curvature = exact_maximum(REGRESSION, noisy_pairs, regression.estimate)
        assert regression.converged
        assert np.all(np.abs(regression.estimate - maximum) < 4 * regression.estimate_mc_se)
        error = np.abs(regression.information - curvature) / regression.information_mc_se
        assert np.all(error < 4)
        # The noise scale matters: half of it gives another answer.
        halved = CountRegression(rate=10, sd=5, scale=2.5)
        other, _ = exact_maximum(halved, noisy_pairs, maximum)
        assert np.any(np.abs(regression.estimate - other) > 4 * regression.estimate_mc_se)

    def test_one_weight_for_all_pairs_gives_the_same_with_fewer_effective_draws(self, noisy_pairs):
        x, y = (values[:4] for values in noisy_pairs)

        def of_all_pairs(function):
            return lambda *arguments: function(*arguments).sum(axis=1)

        def distance(pairs):
            return -(np.abs(x - pairs[0]) + np.abs(y - pairs[1])) / 5

        def log_normal(line, pairs):
            return -0.5 * ((pairs[1] - line[0] - line[1] * pairs[0]) / 5) ** 2

        def pairs_at(line, size, rng):
            counts = rng.poisson(10, (size, 4))
            return counts, rng.normal(line[0] + line[1] * counts, 5)

        apart = REGRESSION.monte_carlo_em(x, y, random_seed=1, progressbar=False)
        together = monte_carlo_em(
            pairs_at,
            of_all_pairs(distance),
            of_all_pairs(log_normal),
            apart.estimate,
            tolerance=0.01,
            final_draws=400_000,
            random_seed=1,
            progressbar=False,
        )
        assert together.ess / 400_000 < apart.ess / 50_000 / 4
        error = np.hypot(together.estimate_mc_se, apart.estimate_mc_se)
        assert np.all(np.abs(together.estimate - apart.estimate) < 4 * error)


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"start": np.nan}, "start must be"),
            ({"start": [[1.0]]}, "start must be"),
            ({"bounds": [(0, 1), (0, 1)]}, "a pair for each of the 1"),
            ({"tolerance": 0.0}, "tolerance must be"),
            ({"draws": 1}, "draws must be"),
            ({"max_draws": 0}, "max_draws must be"),
            ({"final_draws": 0}, "final_draws must be"),
            ({"max_iterations": 0}, "max_iterations must be"),
            ({"log_mechanism": lambda s: 0.0}, "log_mechanism must have shape"),
            ({"log_mechanism": lambda s: s * np.nan}, "log_mechanism is nan"),
            ({"log_mechanism": lambda s: s + np.inf}, "log_mechanism is nan or inf"),
            ({"log_mechanism": lambda s: s - np.inf}, "impossible for all 1000 data sets"),
            ({"log_likelihood": lambda theta, s: 0.0}, "log_likelihood must have shape"),
            ({"log_likelihood": lambda theta, s: s * np.nan}, "log_likelihood isn't finite"),
            ({"score": lambda theta, s: s}, "score must have shape"),
            ({"maximise": lambda s, weights: [1.0, 2.0]}, "maximise must return 1 finite"),
            ({"maximise": lambda s, weights: np.nan}, "maximise must return 1 finite"),
            ({"maximise": lambda s, weights: 3.0}, "maximise doesn't fit log_likelihood"),
        ],
    )
    def test_arguments_that_make_no_sense(self, options, message):
        with pytest.raises(ValueError, match=message):
            run(**options)

    def test_a_numerical_m_step_that_fails_says_so(self):
        def nowhere(theta, s):
            return np.full(s.shape, np.nan)

        with pytest.raises(ValueError, match="numerical M-step failed"):
            run(log_likelihood=nowhere, maximise=None, score=None)

    def test_data_that_say_nothing_have_no_information(self):
        with pytest.warns(UserWarning, match="isn't positive definite"):
            result = run(log_mechanism=lambda s: np.zeros(s.shape), final_draws=100)
        assert not result.converged
        assert np.isnan(result.estimate_mc_se).all()
        with pytest.raises(ValueError, match="isn't positive definite"):
            _ = result.standard_errors

    def test_few_effective_draws_are_told(self):
        with pytest.warns(UserWarning, match="effective draws, too few"):
            result = run(final_draws=50)
        assert result.ess < 50
        assert not result.converged

    def test_errors_that_are_large_beside_the_standard_error_are_told(self):
        with pytest.warns(UserWarning, match="isn't small beside its standard error"):
            result = run(final_draws=150, log_mechanism=lambda s: -np.abs(37.4 - s) / 100)
        assert not result.converged

    def test_a_maximum_at_the_end_of_the_range_is_told(self):
        with pytest.warns(UserWarning, match="towards the end of the parameters' range"):
            result = run(bounds=[(1.0, 35.0)], maximise=None)
        assert not result.converged
        assert result.estimate[0] <= 35.0
