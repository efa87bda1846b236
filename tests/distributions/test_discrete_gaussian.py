"""The discrete Gaussian against sums in many digits, PyMC's harness, and its own draws."""

import math
from decimal import Decimal, localcontext
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
    assert_support_point_is_expected,
    check_logccdf,
    check_logcdf,
    check_logp,
    check_selfconsistency_discrete_logcdf,
)
from scipy.integrate import quad
from scipy.special import comb, factorial2, zeta
from scipy.stats import norm

from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.distributions import DiscreteGaussian, DiscreteLaplace
from pymc_dapper.distributions import discrete_gaussian as module
from pymc_dapper.distributions.discrete_gaussian import DiscreteGaussianRV
from tests.distributions.exact import ExactGaussian, exact_gaussian
from tests.distributions.law import FAIL, PASS, integer_edges, p_value
from tests.long_cases import one_in_three

# At and next to all thresholds of the code, and from 1e-3 to 2000.
SIGMAS = [1e-3, 0.01, 0.1, 0.3, 1 / math.sqrt(2 * math.pi), 0.49999, 0.5, 0.7, 0.99, 1.0, 1.49999]
SIGMAS += [1.5, 2.0, 2.99999, 3.0, 6.32, 20.0, 300.0, 2000.0]
MUS = [0.0, 0.5, -0.5, 1.5, 0.25, 1 / 3, -0.1, 0.4999999, 1e-9, -7.3, 1234567.89]


@pytest.fixture(scope="module")
def log_probabilities():
    """logp, logcdf and logccdf of vectors of integers, float locations and scales."""
    value, mu, sigma = pt.lvector("value"), pt.dvector("mu"), pt.dvector("sigma")
    law = DiscreteGaussian.dist(mu, sigma)
    outputs = [function(law, value) for function in (pm.logp, pm.logcdf, pm.logccdf)]
    return pytensor.function([value, mu, sigma], outputs, mode="FAST_COMPILE")


@pytest.fixture(scope="module")
def grid():
    """Integers near and far for all scales and locations, with exact answers."""
    points, answers = [], []
    for sigma in SIGMAS:
        for mu in MUS if sigma < 100 else MUS[:3]:
            law = exact_gaussian(mu, sigma)
            away = sigma * np.array([0, 0.3, 1, 3, 10, 39, 300])
            steps = np.unique(np.rint(np.concatenate([-away, away, [-1, 1, 2]])))
            for k in law.nearest + steps.astype(int):
                points.append((k, mu, sigma))
                answers.append((law.logp(k), *law.log_tails(k)))
    k, mu, sigma = np.array(points).T
    return (k.astype("int64"), mu, sigma), np.array(answers).T


# The log-density


def test_logp_is_exact_to_1e_12(log_probabilities, grid):
    points, (logp, *_) = grid
    np.testing.assert_allclose(log_probabilities(*points)[0], logp, rtol=1e-12, atol=1e-100)


def test_normaliser_is_exact_to_1e_12(grid):
    _, mu, sigma = grid[0]
    nearest, mu, sigma = np.unique([np.round(mu), mu, sigma], axis=1)
    remainder = pt.dvector("remainder")
    log_sum = module._log_weights_sum(remainder, pt.as_tensor(sigma))
    z = np.exp(log_sum.eval({remainder: mu - nearest}, mode="FAST_COMPILE"))
    exact = [float(exact_gaussian(m, s).log_sum.exp()) for m, s in zip(mu, sigma, strict=True)]
    np.testing.assert_allclose(z, exact, rtol=2e-13)


@pytest.mark.parametrize("mu", one_in_three([0.25, 0.0, 0.5]))
def test_normaliser_at_sigma_1e6_is_the_sum_of_ten_million_weights(log_probabilities, mu):
    sigma, reach = 1e6, 9_000_000
    weights = np.exp(-0.5 * ((np.arange(-reach, reach + 1) - mu) / sigma) ** 2)
    logp, *_ = log_probabilities([0], [mu], [sigma])
    assert logp[0] == pytest.approx(-0.5 * (mu / sigma) ** 2 - math.log(weights.sum()), rel=1e-13)


@pytest.mark.parametrize("mu", [0.0, 0.3, 0.5])
def test_normaliser_at_sigma_1e8_is_that_of_its_residue_classes(log_probabilities, mu):
    # The weights of the integers B k + j at sigma = 100 B sum to those of k + (j - mu) / B at
    # sigma = 100. That sum is the same for all j, to 35 digits.
    classes = 10**6
    sums = []
    with localcontext(prec=50):
        for j in (0, 1, 123_456, 500_000, 999_999):
            law = ExactGaussian((mu - j) / classes, 100.0)
            sums.append((law.log_sum - law.h * law.remainder**2).exp())
    assert max(sums) - min(sums) < Decimal("1e-35")
    logp, *_ = log_probabilities([0], [mu], [1e8])
    exact = -0.5 * (mu / 1e8) ** 2 - math.log(classes * sums[0])
    assert logp[0] == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("mu", [0.0, 0.5, 0.3, -12.85])
@pytest.mark.parametrize("sigma", [1e-3, 0.3, 0.5, 1.0, 6.32, 1000.0])
def test_probabilities_sum_to_one(log_probabilities, mu, sigma):
    k = np.arange(-math.ceil(10 * sigma) - 2, math.ceil(10 * sigma) + 3) + round(mu)
    logp, *_ = log_probabilities(k, np.full(k.shape, mu), np.full(k.shape, sigma))
    assert math.fsum(np.exp(logp)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("sigma", [1e-3, 0.3, 0.7, 1.0, 2.0, 6.32, 1e8])
@pytest.mark.parametrize("dtype", ["int8", "int64", "float64"])
def test_constant_scales_and_integer_locations_take_shortcuts_to_the_same(
    log_probabilities, sigma, dtype
):
    # 100 - (-100) doesn't fit into 8 bits, nor does the square of a difference of 1e10 into 64.
    value, mu = np.array([100, 3, 0], dtype="int8"), np.array([-100, 3, 1], dtype=dtype)
    if dtype == "int64":
        value, mu = np.append(value, 0), np.append(mu, 10**10)
    expected = log_probabilities(value.astype("int64"), mu.astype(float), np.full(mu.shape, sigma))
    law = DiscreteGaussian.dist(mu, sigma)
    outputs = [function(law, pt.as_tensor(value)) for function in (pm.logp, pm.logcdf, pm.logccdf)]
    shortcuts = pytensor.function([], outputs, mode="FAST_COMPILE")()
    for shortcut, answer in zip(shortcuts, expected, strict=True):
        np.testing.assert_allclose(shortcut, answer, rtol=1e-13)


def test_an_integer_scale_is_not_squared_as_an_8_bit_integer():
    law = DiscreteGaussian.dist(0, 20)
    exact = exact_gaussian(0, 20).logp(7)
    assert pm.logp(law, 7).eval(mode="FAST_COMPILE") == pytest.approx(exact, rel=1e-13)


def test_what_is_not_an_integer_has_probability_zero():
    value, sigma = pt.dvector("value"), pt.dscalar("sigma")
    law = DiscreteGaussian.dist(0.5, sigma)
    outputs = [pm.logp(law, value), pm.logcdf(law, value)]
    evaluate = pytensor.function([value, sigma], outputs, mode="FAST_COMPILE")
    logp, _ = evaluate([0.5, 1.0, 1.0001, np.nan], 2.0)
    np.testing.assert_array_equal(np.isfinite(logp), [False, True, False, False])
    np.testing.assert_array_equal(logp[[0, 2, 3]], -np.inf)
    _, (at_zero, at_half) = evaluate([0.0, 0.5], 2.0)
    assert at_half == at_zero


@pytest.mark.parametrize("make", [DiscreteGaussian.dist, DiscreteLaplace.dist])
@pytest.mark.parametrize("mu", [2**63, -(2**63), 2**64, np.array([0, 2**63], dtype="uint64")])
def test_locations_that_do_not_fit_into_64_bits_are_refused(make, mu):
    with pytest.raises(ValueError, match="mu must be within 2"):
        make(mu, 1.0)


@pytest.mark.parametrize("mu", [-(2**62), -5, 2**62])
@pytest.mark.parametrize("value", [2**63 - 1, -(2**63) + 1, 2**62 + 1])
def test_differences_do_not_wrap_around(value, mu):
    steps = abs(value - mu) / 1e16
    for make, exact in (
        (DiscreteGaussian.dist, -0.5 * steps**2 - math.log(1e16 * math.sqrt(2 * math.pi))),
        (DiscreteLaplace.dist, -steps - math.log(2e16)),
    ):
        logp = pm.logp(make(mu, 1e16), value).eval(mode="FAST_COMPILE")
        assert logp == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("sigma", [1e-300, 1e-160, 1e-20])
def test_at_a_tiny_sigma_two_nearest_integers_share_all_probability(log_probabilities, sigma):
    values = log_probabilities([0, 1, 2], np.full(3, 0.5), np.full(3, sigma))
    np.testing.assert_allclose(np.exp(values[0]), [0.5, 0.5, 0.0])
    np.testing.assert_allclose(np.exp(values[1]), [0.5, 1.0, 1.0])
    drawn = DiscreteGaussianRV.rng_fn(np.random.default_rng(1), 0.5, sigma, 1000)
    assert set(drawn) == {0, 1}
    assert abs(drawn.mean() - 0.5) < 4 * 0.5 / math.sqrt(1000)


# Tails


def test_both_tails_are_exact_to_1e_12(log_probabilities, grid):
    points, (_, *tails) = grid
    _, *computed = log_probabilities(*points)
    # Where one tail is nearly all there is, its log is about minus the other tail.
    np.testing.assert_allclose(computed, tails, rtol=1e-12, atol=1e-100)


@pytest.mark.parametrize("z", one_in_three([1.0, 0.0, 8.0]))
def test_tail_at_sigma_1e6_is_the_sum_of_ten_million_weights(log_probabilities, z):
    mu, sigma = 0.3, 1e6
    k = int(z * sigma)
    n = np.arange(1, 9_500_000)
    weights = np.exp(-n * (n + 2 * (k - mu)) / (2 * sigma**2)).sum()
    logp, _, logccdf = log_probabilities([k], [mu], [sigma])
    assert logccdf[0] - logp[0] == pytest.approx(math.log(weights), rel=1e-13, abs=1e-12)


def test_there_is_no_underflow_at_39_nor_at_300_sigma(log_probabilities):
    sigma = np.array([1e-3, 0.1, 1.0, 6.32, 1e4, 1e8])
    for z in (39, 300):
        k = np.ceil(z * sigma).astype("int64")
        for values in log_probabilities(k, np.zeros(6), sigma):
            assert np.isfinite(values).all()
    np.testing.assert_allclose(
        log_probabilities(k, np.zeros(6), sigma)[0][3:],
        -0.5 * (k / sigma)[3:] ** 2 - np.log(sigma * math.sqrt(2 * math.pi))[3:],
        rtol=1e-14,
    )


def test_stated_bounds_on_what_the_tails_leave_out():
    """The two bounds of the module's docstring, at sigma = 3 and s = 3/2."""
    sigma, s, terms = module.SMOOTH_FROM, module.MAX_SMOOTH_SLOPE, 2 * len(module.PLANA_NODES)
    z, h = s * sigma, 0.5 / sigma**2

    def tail_density(x):
        return math.exp(-z * x - x * x / 2)

    mass = quad(tail_density, 0, math.inf)[0]
    remainder = 0.0
    for j in range(terms + 1):  # E (Z^2 + Y^2)^M by the binomial formula
        power = 2 * (terms - j)
        moment = quad(lambda x, p=power: ((z + x) / z) ** p * tail_density(x), 0, 30)[0] / mass
        y_moment = float(factorial2(2 * j - 1)) if j else 1.0
        remainder += comb(terms, j) * moment * y_moment * z**power
    remainder *= 2 * zeta(2 * terms) / (2 * math.pi * sigma) ** (2 * terms)
    assert remainder < 2.6e-18

    odd = np.array([s ** (2 * m + 1) / math.factorial(2 * m + 1) for m in range(60)])
    even = np.array([h**m / math.factorial(m) for m in range(60)])
    left_out = np.convolve(odd, even)[terms:60]
    powers = module.PLANA_NODES[:, None] ** (2 * np.arange(terms, 60) + 1)
    assert module.PLANA_WEIGHTS @ powers @ left_out < 4.4e-16

    n = module.DIRECT_TERMS
    assert math.exp(-n * s) / (1 - math.exp(-s)) < 2e-17
    assert math.exp(-n * n * h) / (1 - math.exp(-2 * n * h)) < 6e-17


def test_quadrature_rule_has_the_moments_it_is_made_for():
    for m in range(1, 2 * len(module.PLANA_NODES) + 1):
        moment = module.PLANA_WEIGHTS @ module.PLANA_NODES ** (2 * m - 1)
        exact = 2 * math.factorial(2 * m - 1) * zeta(2 * m) / (2 * math.pi) ** (2 * m)
        assert moment == pytest.approx(exact, rel=1e-13)


@pytest.mark.long
@pytest.mark.parametrize(
    ("mode", "functions"),
    [
        pytest.param(numba_mode(None), (pm.logp, pm.logcdf, pm.logccdf), id="as steps are"),
        pytest.param("NUMBA", (pm.logp,), id="as by PyMC"),  # each would have twenty loops more
    ],
)
def test_all_is_the_same_when_compiled_by_numba(log_probabilities, grid, mode, functions):
    points, _ = grid
    value, mu, sigma = pt.lvector("value"), pt.dvector("mu"), pt.dvector("sigma")
    law = DiscreteGaussian.dist(mu, sigma)
    outputs = [function(law, value) for function in functions]
    compiled = pytensor.function([value, mu, sigma], outputs, mode=mode)
    expected = log_probabilities(*points)[: len(functions)]
    np.testing.assert_allclose(compiled(*points), expected, 1e-12, 1e-100)


# Gradients


@pytest.mark.parametrize("function", [pm.logp, pm.logcdf, pm.logccdf])
def test_gradients_are_finite_and_right(function):
    value, mu, sigma = pt.lvector("value"), pt.dvector("mu"), pt.dvector("sigma")
    result = function(DiscreteGaussian.dist(mu, sigma), value)
    evaluate = pytensor.function(
        [value, mu, sigma], [result, *pt.grad(result.sum(), [mu, sigma])], mode="FAST_COMPILE"
    )
    k, m, s = (x.ravel() for x in np.meshgrid([-3, 0, 1, 9], [0.0, 0.2, -0.45, 0.5], SIGMAS))
    _, by_mu, by_sigma = evaluate(k, m, s)
    assert np.isfinite(by_mu).all()
    assert np.isfinite(by_sigma).all()

    # A derivative in h, relative to s: cubic error of a central difference.
    inner = (s >= 0.1) & (np.abs(s - 0.5) > 0.01) & (m != 0.5)
    k, m, s, by_mu, by_sigma = k[inner], m[inner], s[inner], by_mu[inner], by_sigma[inner]
    step = 1e-5 * s
    difference = (evaluate(k, m + step, s)[0] - evaluate(k, m - step, s)[0]) / (2 * step)
    np.testing.assert_allclose(s * difference, s * by_mu, rtol=1e-6, atol=1e-8)
    difference = (evaluate(k, m, s + step)[0] - evaluate(k, m, s - step)[0]) / (2 * step)
    np.testing.assert_allclose(s * difference, s * by_sigma, rtol=1e-6, atol=1e-8)


def test_gradient_where_the_nearest_integer_changes_is_that_of_either_side():
    mu = pt.dvector("mu")
    logp = pm.logp(DiscreteGaussian.dist(mu, 0.4), np.array([2, 2, 2]))
    slope = pt.grad(logp.sum(), mu).eval({mu: [0.5 - 1e-9, 0.5, 0.5 + 1e-9]}, mode="FAST_COMPILE")
    np.testing.assert_allclose(slope, slope[1], rtol=1e-7)


# PyMC's harness

SCALES = Domain([0, 0.1, 0.5, 0.9, 1.5, 2.0, 4.0, 20.0, np.inf])


def test_logp_by_pymc_harness():
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        check_logp(
            DiscreteGaussian,
            I,
            {"mu": R, "sigma": SCALES},
            lambda value, mu, sigma: exact_gaussian(float(mu), float(sigma)).logp(value),
        )


@pytest.mark.parametrize(("check", "which"), [(check_logcdf, 0), (check_logccdf, 1)])
def test_tails_by_pymc_harness(check, which):
    def log_tail(value, mu, sigma):
        return exact_gaussian(float(mu), float(sigma)).log_tails(value)[which]

    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        check(DiscreteGaussian, I, {"mu": R, "sigma": SCALES}, log_tail)


def test_cdf_is_the_sum_of_probabilities_by_pymc_harness():
    integers = Domain([-3, -1, 0, 1, 4], "int64", edges=(-60, 60))
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        check_selfconsistency_discrete_logcdf(
            DiscreteGaussian,
            integers,
            {"mu": R, "sigma": Domain([0, 0.1, 0.9, 4.0, np.inf])},
            n_samples=10,
        )


@pytest.mark.parametrize(
    ("mu", "sigma", "size", "expected"),
    [
        (2.6, 0.7, None, 3),
        (2.6, 0.7, 3, [3, 3, 3]),
        ([-1.2, 5.0], [[1.0], [2.0]], None, [[-1, 5], [-1, 5]]),
        ([-1, 5], 4.0, (2, 2), [[-1, 5], [-1, 5]]),
    ],
)
def test_support_point_is_the_nearest_integer(mu, sigma, size, expected):
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        with pm.Model() as model:
            DiscreteGaussian("x", mu, sigma, size=size)
        assert_support_point_is_expected(model, expected)


class TestShapes(BaseTestDistributionRandom):
    pymc_dist = DiscreteGaussian
    pymc_dist_params: ClassVar = {"mu": 0.4, "sigma": 2.5}
    expected_rv_op_params: ClassVar = {"mu": 0.4, "sigma": 2.5}
    checks_to_run: ClassVar = ["check_pymc_params_match_rv_op", "check_rv_size"]

    def test_distribution(self):
        with pytensor.config.change_flags(mode="FAST_COMPILE"):
            super().test_distribution()


@pytest.mark.filterwarnings("error")
class TestDrawsInNumba(BaseTestDistributionRandom):
    """Compiled draws are those of the same function run by Python."""

    pymc_dist = DiscreteGaussian
    pymc_dist_params: ClassVar = {"mu": 0.4, "sigma": np.tile([1e-3, 0.3, 0.9, 1.0, 200.0], 40)}
    size = (200,)
    reference_dist_params = pymc_dist_params
    checks_to_run: ClassVar = ["check_pymc_draws_match_reference"]

    def reference_dist(self):
        rng = np.random.default_rng(20160911)
        return lambda mu, sigma, size: [module._draw_step(rng, mu, s) for s in sigma]


# Draws

LAWS = [
    (0.5, 1e-3),
    (0.3, 0.35),
    (0.5, 0.5),
    (-7.5, 0.999),
    (-7.3, 1.0),
    (0.0, 1.7),
    (2.25, 6.32),
    (1e6 + 0.3, 1e5),
]
N_DRAWS = 200_000


@pytest.fixture(scope="module")
def draw_in_numba():
    mu, sigma = pt.dscalar("mu"), pt.dscalar("sigma")
    law = DiscreteGaussian.dist(mu, sigma, size=N_DRAWS)
    return pm.compile([mu, sigma], law, random_seed=1)


def draw_in_numpy(mu, sigma):
    rng = np.random.default_rng(1)
    return DiscreteGaussian.rv_op.rng_fn(rng, mu, sigma, (N_DRAWS,))


def goodness(draws, mu, sigma):
    edges = integer_edges(mu, sigma)
    if sigma > 1000:
        # The normal limit is off by less than 1 / sigma^2, which so few draws can't see.
        return p_value(draws, norm.cdf(edges + 0.5, mu, sigma), edges)
    law = exact_gaussian(mu, sigma)
    return p_value(draws, np.exp([law.log_tails(k)[0] for k in edges]), edges)


@pytest.mark.parametrize("remainder", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("sigma", [1.0, 1.3, 4.0, 50.0, 1e8])
def test_rejection_leaves_each_integer_its_weight(remainder, sigma):
    # What is accepted of the normal density is constant over an integer's cell, and its weight.
    normal = np.linspace(-9, 9, 100_001)
    step, cost = module._propose(remainder, sigma, normal)
    assert cost.min() > -1e-12
    log_weight = -step * (step - 2 * remainder) / (2 * sigma**2)
    accepted = -(normal**2 + cost) / 2 - log_weight
    np.testing.assert_allclose(accepted, accepted[0], atol=1e-11)


@pytest.mark.parametrize(("mu", "sigma"), LAWS)
def test_draws_follow_the_law(draw_in_numba, mu, sigma):
    for draws in (draw_in_numpy(mu, sigma), draw_in_numba(mu, sigma)):
        assert draws.dtype == "int64"
        assert goodness(draws, mu, sigma) > PASS


@pytest.mark.parametrize(("mu", "sigma"), LAWS[1:])
@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_draws_at_a_scale_30_percent_off_fail(draw_in_numba, mu, sigma, factor):
    for draws in (draw_in_numpy(mu, factor * sigma), draw_in_numba(mu, factor * sigma)):
        assert goodness(draws, mu, sigma) < FAIL


@pytest.mark.parametrize("mu", [0.0, 2.25])
def test_draws_of_a_rounded_gaussian_fail(mu):
    rounded = np.rint(np.random.default_rng(1).normal(mu, 0.6, N_DRAWS))
    assert goodness(rounded, mu, 0.6) < FAIL


def test_every_scale_of_a_vector_is_drawn_from():
    mu = np.array([0.25, 0.5, -3.4, 10.0])
    sigma = np.array([0.4, 0.9, 1.1, 30.0])
    draws = DiscreteGaussian.rv_op.rng_fn(np.random.default_rng(5), mu, sigma, (N_DRAWS, 4))
    for column, m, s in zip(draws.T, mu, sigma, strict=True):
        assert goodness(column, m, s) > PASS


@pytest.mark.parametrize("sigma", one_in_three([1e-3, 0.3, 0.99, 1.0, 6.32, 1e8]))
def test_a_million_draws(sigma):
    draws = DiscreteGaussian.rv_op.rng_fn(np.random.default_rng(3), 0.5, sigma, (1_000_000,))
    assert draws.dtype == "int64"
    assert abs(draws.mean() - 0.5) < 5 * draws.std() / 1000


def test_draws_come_from_the_generator_given_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (draw_in_numpy(0.3, np.array([0.5, 3.0]).repeat(100_000)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize(
    ("mu", "sigma"), [(0, -1.0), (0, 0.0), (0, np.nan), (np.inf, 1), (np.nan, 1), (1e19, 1)]
)
def test_impossible_parameters_are_refused_when_drawing(mu, sigma):
    with pytest.raises(ValueError, match="sigma must be positive"):
        DiscreteGaussian.rv_op.rng_fn(np.random.default_rng(1), mu, sigma, None)


# In a model


@pytest.mark.long
def test_prior_predictive_draws_of_a_model_with_dims_compile_without_a_warning():
    with pm.Model(coords={"cell": list("abc"), "year": [1, 2]}):
        mu = pm.Normal("mu", 100.4, 3, dims="cell")
        DiscreteGaussian("noisy", mu[:, None], np.array([0.5, 6.32]), dims=("cell", "year"))
        DiscreteGaussian("seen", mu, 6.32, observed=[98, 110, 101], dims="cell")
        prior = pm.sample_prior_predictive(50, random_seed=1)
    noisy = prior["prior"]["noisy"]
    assert noisy.shape == (1, 50, 3, 2)
    assert noisy.dtype == "int64"
    assert noisy.dims[2:] == ("cell", "year")
    assert prior["prior_predictive"]["seen"].dtype == "int64"


def test_an_invalid_scale_is_pymcs_usual_error_and_impossible_in_a_model():
    sigma = pt.dscalar("sigma")
    logp = pm.logp(DiscreteGaussian.dist(0.0, sigma), 0)
    with pytest.raises(pm.logprob.utils.ParameterValueError, match="sigma > 0"):
        logp.eval({sigma: -1.0}, mode="FAST_COMPILE")
    with pm.Model() as model:
        sigma = pm.Normal("sigma")
        DiscreteGaussian("x", 0.0, sigma, observed=[1, 2])
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        assert model.compile_logp(mode="FAST_COMPILE")({"sigma": -1.0}) == -np.inf
