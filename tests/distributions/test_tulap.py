"""The Tulap law against its definition, its construction, PyMC's harness, and its draws."""

from typing import ClassVar

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.testing import (
    BaseTestDistributionRandom,
    Domain,
    R,
    assert_support_point_is_expected,
    check_icdf,
    check_logccdf,
    check_logcdf,
    check_logp,
    check_selfconsistency_icdf,
)
from scipy.optimize import brentq
from scipy.stats import ks_2samp

from pymc_dapper.distributions import Tulap
from pymc_dapper.distributions import tulap as module
from tests.distributions.law import FAIL, PASS, p_value

B = Domain([0, 0.05, 0.3, 0.6, 0.95, 1])
Q = Domain([0, 0, 0.05, 0.5, 0.9, 1])


def untruncated_cdf(x, b):
    """As Awan & Slavkovic (2018) define it."""
    n = np.round(x)
    lower = b ** np.maximum(-n, 0) / (1 + b) * (b + (x - n + 0.5) * (1 - b))
    upper = 1 - b ** np.maximum(n, 0) / (1 + b) * (b + (n - x + 0.5) * (1 - b))
    return np.where(x <= 0, lower, upper)


def cdf(value, m, b, q):
    return np.clip((untruncated_cdf(value - m, b) - q / 2) / (1 - q), 0, 1)


def logp(value, m, b, q):
    inside = np.abs(untruncated_cdf(value - m, b) - 0.5) <= 0.5 - q / 2
    density = b ** np.abs(np.round(value - m)) * (1 - b) / (1 + b) / (1 - q)
    return np.where(inside, np.log(density), -np.inf)


def log_cdf(value, m, b, q):
    with np.errstate(divide="ignore"):
        return np.log(cdf(value, m, b, q))


def log_ccdf(value, m, b, q):
    return log_cdf(2 * m - value, m, b, q)


def quantile(q_, m, b, q):
    """By root finding."""
    if q_ in (0, 1) and q == 0:
        return -np.inf if q_ == 0 else np.inf
    level = q / 2 + q_ * (1 - q)
    return m + brentq(lambda x: untruncated_cdf(x, b) - level, -1000, 1000, xtol=1e-13)


@pytest.fixture(scope="module")
def log_probabilities():
    """logp, logcdf and logccdf of a vector."""
    value, m, b, q = pt.dvector("value"), pt.dscalar("m"), pt.dscalar("b"), pt.dscalar("q")
    law = Tulap.dist(m, b, q)
    outputs = [function(law, value) for function in (pm.logp, pm.logcdf, pm.logccdf)]
    return pytensor.function([value, m, b, q], outputs, mode="FAST_COMPILE")


LAWS = [(0.0, 0.1, 0.0), (0.3, 0.6, 0.0), (-7.2, 0.9, 0.05), (40.5, 0.4, 0.5), (0.0, 0.99, 0.9)]


@pytest.mark.parametrize(("m", "b", "q"), LAWS)
def test_density_is_the_slope_of_the_cdf_and_integrates_to_one(log_probabilities, m, b, q):
    # Within a cell the density is constant and the cdf linear. Ends of cells and of the support:
    last = quantile(1 - 1e-15 if q == 0 else 1.0, m, b, q) - m
    ends = np.append(np.arange(0.5, last), last)
    ends = m + np.concatenate([-ends[::-1], ends])
    density = np.exp(log_probabilities((ends[1:] + ends[:-1]) / 2, m, b, q)[0])
    masses = density * np.diff(ends)
    np.testing.assert_allclose(masses, np.diff(cdf(ends, m, b, q)), rtol=1e-9, atol=1e-13)
    assert masses.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("m", "b", "q"), LAWS)
def test_log_probabilities_are_those_of_the_definition(log_probabilities, m, b, q):
    x = m + np.concatenate([np.linspace(-30, 30, 200), [0.0, 0.25, -0.25]])
    computed, *tails = log_probabilities(x, m, b, q)
    np.testing.assert_allclose(computed, logp(x, m, b, q), rtol=1e-12)
    for tail, exact in zip(tails, (cdf(x, m, b, q), cdf(2 * m - x, m, b, q)), strict=True):
        np.testing.assert_allclose(np.exp(tail), exact, rtol=1e-11, atol=1e-15)


def test_tails_do_not_underflow(log_probabilities):
    x = np.array([-1e6, -2000.25, 2000.25, 1e6])
    b = 0.3
    logp, logcdf, logccdf = log_probabilities(x, 0.0, b, 0.0)
    np.testing.assert_allclose(
        logp, np.abs(np.round(x)) * np.log(b) + np.log(0.7 / 1.3), rtol=1e-13
    )
    left = np.abs(np.round(x)) + 0.5 - np.abs(x)
    tail = np.abs(np.round(x)) * np.log(b) + np.log((b + left * (1 - b)) / (1 + b))
    np.testing.assert_allclose(logcdf[:2], tail[:2], rtol=1e-13)
    np.testing.assert_allclose(logccdf[2:], tail[2:], rtol=1e-13)
    np.testing.assert_array_equal([logcdf[2:], logccdf[:2]], 0)


def test_infinity_is_never_reached(log_probabilities):
    with np.errstate(invalid="ignore"):  # NumPy's, of the branch not taken
        logp, logcdf, logccdf = log_probabilities([-np.inf, np.inf], 0.0, 0.3, 0.0)
    np.testing.assert_array_equal(logp, -np.inf)
    np.testing.assert_array_equal(logcdf, [-np.inf, 0])
    np.testing.assert_array_equal(logccdf, [0, -np.inf])


def test_it_is_a_discrete_laplace_plus_a_uniform_variate():
    rng, n, b, q = np.random.default_rng(2), 200_000, 0.7, 0.1
    noise = rng.geometric(1 - b, n) - rng.geometric(1 - b, n) + rng.uniform(-0.5, 0.5, n)
    kept = noise[np.abs(untruncated_cdf(noise, b) - 0.5) <= 0.5 - q / 2]
    draws = Tulap.rv_op.rng_fn(rng, 0.0, b, q, (n,))
    assert ks_2samp(draws, kept).pvalue > PASS
    assert ks_2samp(draws, noise).pvalue < FAIL


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("delta", [1e-3, 0.05])
def test_truncation_for_epsilon_and_delta_spends_just_that(log_probabilities, epsilon, delta):
    b = np.exp(-epsilon)
    q = 2 * delta * b / (1 - b + 2 * delta * b)
    last = quantile(1.0, 0.0, b, q)
    # Both densities are constant between these.
    jumps = np.unique([-last, last, 1 - last, 1 + last, *np.arange(-200.5, 201)])
    middle, width = (jumps[1:] + jumps[:-1]) / 2, np.diff(jumps)
    density, neighbour = (np.exp(log_probabilities(middle, m, b, q)[0]) for m in (0.0, 1.0))
    spent = np.maximum(density - np.exp(epsilon) * neighbour, 0) @ width
    assert spent == pytest.approx(delta, rel=1e-9)


def test_gradients_are_finite_and_right():
    m, b, q, value = pt.dvector("m"), pt.dvector("b"), pt.dvector("q"), pt.dvector("value")
    law = Tulap.dist(m, b, q)
    points = np.meshgrid([-2.3, 0.1, 1.2, 5.9], [0.0, 0.3], [0.1, 0.6, 0.9], [0.0, 0.01])
    x, *parameters = (each.ravel() for each in points)
    step = 1e-6
    for function in (pm.logp, pm.logcdf, pm.logccdf):
        result = function(law, value)
        evaluate = pytensor.function(
            [value, m, b, q], [result, *pt.grad(result.sum(), [m, b, q])], mode="FAST_COMPILE"
        )
        present, *slopes = evaluate(x, *parameters)
        assert np.isfinite(slopes).all()
        inner = np.isfinite(present) & (parameters[2] > 0)
        x_inner, at = x[inner], [each[inner] for each in parameters]
        for i, slope in enumerate(slopes):
            shift = step * np.eye(3)[i][:, None]
            above, below = (evaluate(x_inner, *(at + sign * shift))[0] for sign in (1, -1))
            difference = (above - below) / (2 * step)
            np.testing.assert_allclose(slope[inner], difference, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("parameters", [(0.0, 1.0, 0.0), (0, 0, 0), (0, 0.5, 1), (0, 0.5, -0.1)])
def test_impossible_parameters_are_refused(log_probabilities, parameters):
    with pytest.raises(pm.logprob.utils.ParameterValueError, match="0 < b < 1, 0 <= q < 1"):
        log_probabilities([0.0], *parameters)
    with pytest.raises(ValueError, match="b must be between 0 and 1"):
        Tulap.rv_op.rng_fn(np.random.default_rng(1), *parameters, None)


# PyMC's harness


@pytest.mark.parametrize(
    ("check", "reference"),
    [(check_logp, logp), (check_logcdf, log_cdf), (check_logccdf, log_ccdf)],
)
def test_log_probabilities_by_pymc_harness(check, reference):
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        check(Tulap, R, {"m": R, "b": B, "q": Q}, reference)


def test_quantiles_by_pymc_harness():
    class Truncated:
        """The harness names the quantile's level q."""

        @staticmethod
        def dist(m, b):
            return Tulap.dist(m, b, 0.05)

    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        check_icdf(Truncated, {"m": R, "b": B}, lambda q, m, b: quantile(q, m, b, 0.05))
        check_selfconsistency_icdf(Tulap, {"m": R, "b": B, "q": Q})


@pytest.mark.parametrize(("m", "b", "q"), LAWS)
def test_quantiles_are_those_of_the_definition(m, b, q):
    level = pt.dvector("level")
    compiled = pm.icdf(Tulap.dist(m, b, q), level)
    levels = np.array([0, 1e-12, 0.1, 0.5, 0.50001, 0.75, 0.95, 0.99, 1])
    exact = [quantile(each, m, b, q) for each in levels]
    np.testing.assert_allclose(
        compiled.eval({level: levels}, mode="FAST_COMPILE"), exact, rtol=1e-9
    )


@pytest.mark.parametrize(
    ("m", "b", "size", "expected"),
    [(2.6, 0.7, None, 2.6), ([-1.2, 5.0], [[0.1], [0.2]], (2, 2), [[-1.2, 5.0]] * 2)],
)
def test_support_point_is_the_centre(m, b, size, expected):
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        with pm.Model() as model:
            Tulap("x", m, b, 0.1, size=size)
        assert_support_point_is_expected(model, expected)


class TestShapes(BaseTestDistributionRandom):
    pymc_dist = Tulap
    pymc_dist_params: ClassVar = {"m": 0.4, "b": 0.5, "q": 0.1}
    expected_rv_op_params: ClassVar = {"m": 0.4, "b": 0.5, "q": 0.1}
    checks_to_run: ClassVar = ["check_pymc_params_match_rv_op", "check_rv_size"]

    def test_distribution(self):
        with pytensor.config.change_flags(mode="FAST_COMPILE"):
            super().test_distribution()


class TestDrawsInNumba(BaseTestDistributionRandom):
    """Compiled draws are those of the same function run by Python."""

    pymc_dist = Tulap
    pymc_dist_params: ClassVar = {"m": 0.4, "b": np.linspace(0.01, 0.99, 200), "q": 0.1}
    size = (200,)
    reference_dist_params: ClassVar = pymc_dist_params
    checks_to_run: ClassVar = ["check_pymc_draws_match_reference"]

    def reference_dist(self):
        uniform = np.random.default_rng(20160911).random(200)
        return lambda m, b, q, size: module._from_uniform(uniform, m, b, q)


# Draws

N_DRAWS = 200_000


@pytest.fixture(scope="module")
def draw_in_numba():
    parameters = [pt.dscalar("m"), pt.dscalar("b"), pt.dscalar("q")]
    return pm.compile(parameters, Tulap.dist(*parameters, size=N_DRAWS), random_seed=1)


def draw_in_numpy(m, b, q):
    return Tulap.rv_op.rng_fn(np.random.default_rng(1), m, b, q, (N_DRAWS,))


def goodness(draws, m, b, q):
    edges = np.array([quantile(p, m, b, q) for p in np.linspace(0, 1, 41)[1:-1]])
    return p_value(draws, cdf(edges, m, b, q), edges)


@pytest.mark.parametrize(("m", "b", "q"), LAWS)
def test_draws_follow_the_law(draw_in_numba, m, b, q):
    for draws in (draw_in_numpy(m, b, q), draw_in_numba(m, b, q)):
        assert goodness(draws, m, b, q) > PASS


@pytest.mark.parametrize(("m", "b", "q"), LAWS[:-1])  # the last is nearly uniform
@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_draws_at_an_epsilon_30_percent_off_fail(draw_in_numba, m, b, q, factor):
    for draw in (draw_in_numpy, draw_in_numba):
        assert goodness(draw(m, b**factor, q), m, b, q) < FAIL


def test_every_parameter_of_a_vector_is_drawn_from():
    m, b, q = np.array([0.25, 0.5, -3.4]), np.array([0.4, 0.1, 0.9]), np.array([0.0, 0.1, 0.2])
    draws = Tulap.rv_op.rng_fn(np.random.default_rng(5), m, b, q, (N_DRAWS, 3))
    for column, *parameters in zip(draws.T, m, b, q, strict=True):
        assert goodness(column, *parameters) > PASS


@pytest.mark.parametrize("q", [0.0, 0.99])
def test_a_million_draws(q):
    draws = Tulap.rv_op.rng_fn(np.random.default_rng(3), 0.5, 0.9, q, (1_000_000,))
    assert abs(draws.mean() - 0.5) < 5 * draws.std() / 1000
    assert np.isfinite(draws).all()


@pytest.mark.long
def test_prior_predictive_draws_of_a_model_with_dims_compile_without_a_warning():
    with pm.Model(coords={"cell": list("abc"), "year": [1, 2]}):
        m = pm.Normal("m", 100.4, 3, dims="cell")
        Tulap("noisy", m[:, None], np.array([0.5, 0.9]), 0.01, dims=("cell", "year"))
        Tulap("seen", m, 0.5, observed=[98.2, 110.1, 101.7], dims="cell")
        prior = pm.sample_prior_predictive(50, random_seed=1)
    assert prior["prior"]["noisy"].shape == (1, 50, 3, 2)
    assert prior["prior_predictive"]["seen"].shape == (1, 50, 3)
