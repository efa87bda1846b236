"""The discrete Laplace against its closed form in many digits, SciPy, PyMC's harness, its draws."""

import math
from typing import ClassVar

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.testing import (
    BaseTestDistributionRandom,
    Domain,
    I,
    R,
    Rplusbig,
    assert_support_point_is_expected,
    check_icdf,
    check_logccdf,
    check_logcdf,
    check_logp,
    check_selfconsistency_discrete_logcdf,
)
from scipy.stats import dlaplace

from pymc_dapper.distributions import DiscreteLaplace
from pymc_dapper.distributions import discrete_laplace as module
from tests.distributions.exact import exact_laplace
from tests.distributions.law import FAIL, PASS, integer_edges, p_value

SCALES = [1e-4, 0.01, 0.3, 1.0, 2.5, 40.0, 1e4, 1e8]
MUS = [0.0, 0.5, -0.5, 1.5, 0.25, 1 / 3, -0.1, 0.4999999, 1e-9, -7.3, 1234567.89]


@pytest.fixture(scope="module")
def log_probabilities():
    """logp, logcdf and logccdf of vectors of integers, float locations and scales."""
    value, mu, scale = pt.lvector("value"), pt.dvector("mu"), pt.dvector("scale")
    law = DiscreteLaplace.dist(mu, scale)
    outputs = [function(law, value) for function in (pm.logp, pm.logcdf, pm.logccdf)]
    return pytensor.function([value, mu, scale], outputs, mode="FAST_COMPILE")


@pytest.fixture(scope="module")
def grid():
    """Integers near and far for all scales and locations, with exact answers."""
    points, answers = [], []
    for scale in SCALES:
        for mu in MUS:
            law = exact_laplace(mu, scale)
            away = scale * np.array([0, 0.3, 1, 10, 1000])
            steps = np.unique(np.rint(np.concatenate([-away, away, [-1, 1, 2]])))
            for k in round(mu) + steps.astype(int):
                points.append((k, mu, scale))
                answers.append((law.logp(k), *law.log_tails(k)))
    k, mu, scale = np.array(points).T
    return (k.astype("int64"), mu, scale), np.array(answers).T


def test_logp_and_both_tails_are_exact_to_1e_12(log_probabilities, grid):
    points, answers = grid
    for computed, exact in zip(log_probabilities(*points), answers, strict=True):
        np.testing.assert_allclose(computed, exact, rtol=1e-12, atol=1e-100)


@pytest.mark.parametrize("scale", [0.2, 1.0, 30.0])
def test_at_integer_locations_it_is_the_law_of_scipy_whose_parameter_is_the_rate(
    log_probabilities, scale
):
    k, mu = np.arange(-20, 21), np.full(41, 3.0)
    law = dlaplace(1 / scale, loc=3)
    logp, logcdf, logccdf = log_probabilities(k, mu, np.full(41, scale))
    np.testing.assert_allclose(logp, law.logpmf(k), rtol=1e-12)
    np.testing.assert_allclose(np.exp(logcdf), law.cdf(k), rtol=1e-10)
    np.testing.assert_allclose(np.exp(logccdf), law.sf(k), rtol=1e-7, atol=1e-15)


@pytest.mark.parametrize("mu", [0.0, 0.5, 0.3, -12.85])
@pytest.mark.parametrize("scale", [1e-4, 0.3, 1.0, 6.32, 1000.0])
def test_probabilities_sum_to_one(log_probabilities, mu, scale):
    k = np.arange(-math.ceil(40 * scale) - 2, math.ceil(40 * scale) + 3) + round(mu)
    logp, *_ = log_probabilities(k, np.full(k.shape, mu), np.full(k.shape, scale))
    assert math.fsum(np.exp(logp)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-4, 0.3, 2.0, 1e8])
@pytest.mark.parametrize("dtype", ["int8", "float64"])
def test_constant_scales_and_integer_locations_take_shortcuts_to_the_same(
    log_probabilities, scale, dtype
):
    value, mu = np.array([100, 3, 0], dtype="int8"), np.array([-100, 3, 1], dtype=dtype)
    expected = log_probabilities(value.astype("int64"), mu.astype(float), np.full(3, scale))
    law = DiscreteLaplace.dist(mu, scale)
    for function, answer in zip((pm.logp, pm.logcdf, pm.logccdf), expected, strict=True):
        shortcut = function(law, pt.as_tensor(value)).eval(mode="FAST_COMPILE")
        np.testing.assert_allclose(shortcut, answer, rtol=1e-13)


def test_there_is_no_overflow_at_scale_1e_4_nor_underflow_far_out(log_probabilities):
    k = np.array([0, 1, -1, 1_000_000])
    logp, logcdf, logccdf = log_probabilities(k, np.zeros(4), np.full(4, 1e-4))
    np.testing.assert_allclose(logp, [0, -1e4, -1e4, -1e10], rtol=1e-12)
    np.testing.assert_allclose(logcdf, [0, 0, -1e4, 0], rtol=1e-12)
    np.testing.assert_allclose(logccdf, [-1e4, -2e4, 0, -1e10 - 1e4], rtol=1e-12)


def test_what_is_not_an_integer_has_probability_zero():
    law, value = DiscreteLaplace.dist(0.5, 2.0), pt.dvector("value")
    logp = pm.logp(law, value).eval({value: [0.5, 1.0, 1.0001, np.nan]}, mode="FAST_COMPILE")
    np.testing.assert_array_equal(np.isfinite(logp), [False, True, False, False])


@pytest.mark.parametrize("function", [pm.logp, pm.logcdf, pm.logccdf])
def test_gradients_are_finite_and_right(function):
    value, mu, scale = pt.lvector("value"), pt.dvector("mu"), pt.dvector("scale")
    result = function(DiscreteLaplace.dist(mu, scale), value)
    evaluate = pytensor.function(
        [value, mu, scale], [result, *pt.grad(result.sum(), [mu, scale])], mode="FAST_COMPILE"
    )
    k, m, s = (x.ravel() for x in np.meshgrid([-3, 0, 1, 9], [0.0, 0.2, -0.45, 0.5], SCALES))
    _, by_mu, by_scale = evaluate(k, m, s)
    assert np.isfinite(by_mu).all()
    assert np.isfinite(by_scale).all()

    # At an integer mu the density has a kink, and at a half-integer so has our way to write it.
    inner = (s >= 0.1) & (s <= 40) & (m != 0) & (m != 0.5)
    k, m, s, by_mu, by_scale = k[inner], m[inner], s[inner], by_mu[inner], by_scale[inner]
    step = 1e-5 * s
    difference = (evaluate(k, m + step, s)[0] - evaluate(k, m - step, s)[0]) / (2 * step)
    np.testing.assert_allclose(s * difference, s * by_mu, rtol=1e-6, atol=1e-8)
    difference = (evaluate(k, m, s + step)[0] - evaluate(k, m, s - step)[0]) / (2 * step)
    np.testing.assert_allclose(s * difference, s * by_scale, rtol=1e-6, atol=1e-8)


def test_gradient_at_a_kink_is_the_mean_of_both_sides():
    mu = pt.dvector("mu")
    logp = pm.logp(DiscreteLaplace.dist(mu, 0.4), np.array([2, 2, 2]))
    left, at, right = pt.grad(logp.sum(), mu).eval({mu: [-1e-9, 0, 1e-9]}, mode="FAST_COMPILE")
    assert at == pytest.approx((left + right) / 2, rel=1e-6)


# Quantiles


@pytest.mark.parametrize("scale", [1e-4, 0.3, 2.5, 1e4])
@pytest.mark.parametrize("mu", [0.0, 0.5, -0.3, 17.9])
def test_quantiles_invert_the_cdf(scale, mu):
    law, value, p = DiscreteLaplace.dist(mu, scale), pt.dvector("value"), pt.dvector("p")
    k = np.round(mu) + np.unique(np.rint(np.linspace(-30, 30, 61) * max(scale, 0.1)))
    cdf = pm.logcdf(law, value).exp().eval({value: k}, mode="FAST_COMPILE")
    quantile = pytensor.function([p], pm.icdf(law, p), mode="FAST_COMPILE")
    distinct = (cdf > 1e-290) & (cdf < 1 - 1e-6)
    k, cdf = k[distinct], cdf[distinct]
    np.testing.assert_array_equal(quantile(cdf), k)
    np.testing.assert_array_equal(quantile(cdf * (1 + 1e-12)), k + 1)
    np.testing.assert_array_equal(quantile([0.0, 1.0, -0.1, 1.1]), [-np.inf, np.inf, *[np.nan] * 2])


# PyMC's harness


def test_logp_by_pymc_harness():
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        check_logp(
            DiscreteLaplace,
            I,
            {"mu": R, "scale": Rplusbig},
            lambda value, mu, scale: exact_laplace(float(mu), float(scale)).logp(value),
        )


@pytest.mark.parametrize(("check", "which"), [(check_logcdf, 0), (check_logccdf, 1)])
def test_tails_by_pymc_harness(check, which):
    def log_tail(value, mu, scale):
        return exact_laplace(float(mu), float(scale)).log_tails(value)[which]

    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        check(DiscreteLaplace, I, {"mu": R, "scale": Rplusbig}, log_tail)


def test_cdf_is_the_sum_of_probabilities_by_pymc_harness():
    integers = Domain([-3, -1, 0, 1, 4], "int64", edges=(-100, 100))
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        check_selfconsistency_discrete_logcdf(
            DiscreteLaplace,
            integers,
            {"mu": R, "scale": Domain([0, 0.1, 0.9, 4.0, np.inf])},
            n_samples=30,
        )


def test_quantiles_by_pymc_harness():
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        check_icdf(
            DiscreteLaplace,
            {"mu": R, "scale": Rplusbig},
            lambda q, mu, scale: exact_laplace(float(mu), float(scale)).quantile(q),
        )


@pytest.mark.parametrize(
    ("mu", "scale", "size", "expected"),
    [(2.6, 0.7, None, 3), ([-1.2, 5.0], [[1.0], [2.0]], (3, 2, 2), [[[-1, 5], [-1, 5]]] * 3)],
)
def test_support_point_is_the_nearest_integer(mu, scale, size, expected):
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        with pm.Model() as model:
            DiscreteLaplace("x", mu, scale, size=size)
        assert_support_point_is_expected(model, expected)


class TestShapes(BaseTestDistributionRandom):
    pymc_dist = DiscreteLaplace
    pymc_dist_params: ClassVar = {"mu": 0.4, "scale": 2.5}
    expected_rv_op_params: ClassVar = {"mu": 0.4, "scale": 2.5}
    checks_to_run: ClassVar = ["check_pymc_params_match_rv_op", "check_rv_size"]

    def test_distribution(self):
        with pytensor.config.change_flags(mode="FAST_COMPILE"):
            super().test_distribution()


class TestDrawsInNumba(BaseTestDistributionRandom):
    """Compiled draws are those of the same function run by Python."""

    pymc_dist = DiscreteLaplace
    pymc_dist_params: ClassVar = {"mu": 0.4, "scale": np.tile([1e-4, 0.3, 2.5, 1e6], 50)}
    size = (200,)
    reference_dist_params: ClassVar = pymc_dist_params
    checks_to_run: ClassVar = ["check_pymc_draws_match_reference"]

    def reference_dist(self):
        rng = np.random.default_rng(20160911)

        def draw(mu, scale, size):
            noise = [(rng.random(), rng.standard_exponential()) for _ in scale]
            return [module._from_noise(*pair, mu, s) for pair, s in zip(noise, scale, strict=True)]

        return draw


# Draws

LAWS = [(0.5, 0.3), (-0.3, 0.3), (0.0, 1.0), (-7.3, 1.7), (2.25, 40.0), (1e6 + 0.3, 1e5)]
N_DRAWS = 200_000


@pytest.fixture(scope="module")
def draw_in_numba():
    mu, scale = pt.dscalar("mu"), pt.dscalar("scale")
    law = DiscreteLaplace.dist(mu, scale, size=N_DRAWS)
    return pm.compile([mu, scale], law, random_seed=1)


def draw_in_numpy(mu, scale):
    rng = np.random.default_rng(1)
    return DiscreteLaplace.rv_op.rng_fn(rng, mu, scale, (N_DRAWS,))


def goodness(draws, mu, scale):
    edges, law = integer_edges(mu, scale), exact_laplace(mu, scale)
    return p_value(draws, np.exp([law.log_tails(k)[0] for k in edges]), edges)


@pytest.mark.parametrize(("mu", "scale"), LAWS)
def test_draws_follow_the_law(draw_in_numba, mu, scale):
    for draws in (draw_in_numpy(mu, scale), draw_in_numba(mu, scale)):
        assert draws.dtype == "int64"
        assert goodness(draws, mu, scale) > PASS


@pytest.mark.parametrize(("mu", "scale"), LAWS)
@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_draws_at_a_scale_30_percent_off_fail(draw_in_numba, mu, scale, factor):
    for draws in (draw_in_numpy(mu, factor * scale), draw_in_numba(mu, factor * scale)):
        assert goodness(draws, mu, scale) < FAIL


def test_every_scale_of_a_vector_is_drawn_from():
    mu, scale = np.array([0.25, 0.5, -3.4]), np.array([0.4, 1.1, 30.0])
    draws = DiscreteLaplace.rv_op.rng_fn(np.random.default_rng(5), mu, scale, (N_DRAWS, 3))
    for column, m, s in zip(draws.T, mu, scale, strict=True):
        assert goodness(column, m, s) > PASS


@pytest.mark.parametrize("scale", [1e-4, 0.3, 6.32, 1e8])
def test_a_million_draws(scale):
    draws = DiscreteLaplace.rv_op.rng_fn(np.random.default_rng(3), 0.5, scale, (1_000_000,))
    assert draws.dtype == "int64"
    assert abs(draws.mean() - 0.5) < 5 * draws.std() / 1000


def test_draws_come_from_the_generator_given_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    np.testing.assert_array_equal(draw_in_numpy(0.3, 2.0), draw_in_numpy(0.3, 2.0))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize(("mu", "scale"), [(0, -1.0), (0, 0.0), (0, np.nan), (np.inf, 1)])
def test_impossible_parameters_are_refused_when_drawing(mu, scale):
    with pytest.raises(ValueError, match="scale must be positive"):
        DiscreteLaplace.rv_op.rng_fn(np.random.default_rng(1), mu, scale, None)


@pytest.mark.long
def test_prior_predictive_draws_of_a_model_with_dims_compile_without_a_warning():
    with pm.Model(coords={"cell": list("abc"), "year": [1, 2]}):
        mu = pm.Normal("mu", 100.4, 3, dims="cell")
        DiscreteLaplace("noisy", mu[:, None], np.array([0.5, 6.32]), dims=("cell", "year"))
        DiscreteLaplace("seen", mu, 6.32, observed=[98, 110, 101], dims="cell")
        prior = pm.sample_prior_predictive(50, random_seed=1)
    noisy = prior["prior"]["noisy"]
    assert noisy.shape == (1, 50, 3, 2)
    assert noisy.dtype == "int64"
    assert prior["prior_predictive"]["seen"].dtype == "int64"
