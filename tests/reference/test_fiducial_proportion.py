"""Fiducial draws against the seeds they are made of, closed forms, quadrature and simulation."""

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from pymc_dapper.budget import ApproxDP, PureDP
from pymc_dapper.reference import _proportion
from pymc_dapper.reference._proportion import laplace_noise
from pymc_dapper.reference.fiducial_proportion import (
    fiducial_cdf,
    fiducial_proportion,
    fiducial_test,
)

N, SIZE = 10, 20_000
BUDGET = PureDP(1.0)


def from_seeds(k, mixing, rng, size=SIZE):
    """What the method says, word for word: order statistics of uniform seeds, mixed."""
    seeds = np.sort(rng.random((size, N)), axis=1)
    ends = np.column_stack([np.zeros(size), seeds, np.ones(size)])
    d = rng.beta(0.5, 0.5, size) if mixing == "jeffreys" else rng.random(size)
    return ends[:, k] + d * (ends[:, k + 1] - ends[:, k])


def without_noise(k, mixing, seed=3):
    fitted = fiducial_proportion(k / N, N, None, mixing=mixing, draws=SIZE, random_seed=seed)
    return fitted.draws.ravel()


@pytest.mark.parametrize("k", [0, 3, N])
def test_jeffreys_mixing_gives_a_beta_law(k):
    law = stats.beta(k + 0.5, N - k + 0.5)
    assert stats.kstest(from_seeds(k, "jeffreys", np.random.default_rng(1)), law.cdf).pvalue > 1e-3
    assert stats.kstest(without_noise(k, "jeffreys"), law.cdf).pvalue > 1e-3
    assert stats.kstest(without_noise(k, "flat-prior"), law.cdf).pvalue < 1e-12


@pytest.mark.parametrize("k", [0, 3, N])
def test_uniform_mixing_is_not_the_flat_priors_beta_law(k):
    seeds = from_seeds(k, "uniform", np.random.default_rng(1))
    flat = stats.beta(k + 1, N - k + 1)

    assert stats.ks_2samp(without_noise(k, "uniform"), seeds).pvalue > 1e-3
    assert stats.kstest(seeds, flat.cdf).pvalue < 1e-12
    assert stats.kstest(without_noise(k, "flat-prior"), flat.cdf).pvalue > 1e-3


@pytest.mark.parametrize("k", [0, 2, 5])
def test_uniform_mixing_has_the_moments_of_a_mixed_dirichlet(k):
    # Of (S, G) = (u_k, u_(k+1) - u_k), two cells of a Dirichlet(k, 1, n - k), and D uniform.
    total = N * (N + 1) + 2 * (N + 1)  # (N + 1) (N + 2)
    mean = (k + 0.5) / (N + 1)
    second = (k * (k + 1) + 2 * k * 0.5 + 2 / 3) / total
    draws = without_noise(k, "uniform")
    for power, exact in ((1, mean), (2, second)):
        mcse = (draws**power).std() / math.sqrt(SIZE)
        assert abs((draws**power).mean() - exact) < 4 * mcse
    flat = (k + 1) / (N + 2)
    if k != 5:  # At one half both means are one half.
        assert abs(draws.mean() - flat) > 4 * draws.std() / math.sqrt(SIZE)


def test_laplace_noise_is_laplace_and_the_printed_formula_is_not():
    rng = np.random.default_rng(5)
    noise = laplace_noise(rng, 0.3, SIZE)
    w = rng.uniform(-0.5, 0.5, SIZE)
    printed = -0.3 * np.sign(w) * np.log(1 - np.abs(w))
    law = stats.laplace(scale=0.3)
    assert stats.kstest(noise, law.cdf).pvalue > 1e-3
    assert stats.kstest(printed, law.cdf).pvalue < 1e-12


@pytest.mark.parametrize("mixing", ["jeffreys", "flat-prior"])
@pytest.mark.parametrize("released", [-0.15, 0.4, 0.97, 1.3])
def test_cdf_is_beta_laws_averaged_over_the_noise(released, mixing):
    shift = 0.5 if mixing == "jeffreys" else 1.0
    noise = stats.laplace(scale=1 / N)
    for theta in (0.0, 0.2, 0.55, 0.98):
        kinks = [released] if 0 < released < 1 else None
        inside, _ = quad(
            lambda t, theta=theta: (
                noise.pdf(released - t) * stats.beta.cdf(theta, N * t + shift, N * (1 - t) + shift)
            ),
            0,
            1,
            points=kinks,
            epsabs=1e-12,
        )
        expected = noise.sf(released) + inside
        cdf = fiducial_cdf(theta, released, N, BUDGET, mixing=mixing)
        assert cdf == pytest.approx(expected, abs=1e-9)
    assert fiducial_cdf(-0.1, released, N, BUDGET) == 0
    assert fiducial_cdf(1.0, released, N, BUDGET) == 1


def test_cdf_of_hardly_any_noise():
    """Catches points of integration that rounding shifts, as noise has a scale of 1e-11."""
    assert fiducial_cdf(0.8, 0.5, 10**8, PureDP(1000.0)) == pytest.approx(1, abs=1e-10)


def cdf_z_scores(released, mixing="jeffreys"):
    draws = fiducial_proportion(released, N, BUDGET, mixing=mixing, draws=SIZE, random_seed=7).draws
    z = []
    for theta in (0.0, 0.3, 0.6, 1 - 1e-12):  # the atoms at 0 and 1, and between
        exact = fiducial_cdf(theta, released, N, BUDGET, mixing=mixing)
        z.append((np.mean(draws <= theta) - exact) / math.sqrt(exact * (1 - exact) / SIZE))
    return np.abs(z)


@pytest.mark.parametrize("mixing", ["jeffreys", "flat-prior"])
@pytest.mark.parametrize("released", [-0.05, 0.4, 0.95])
def test_draws_have_the_cdf(released, mixing):
    assert cdf_z_scores(released, mixing).max() < 4


def test_draws_with_the_printed_noise_have_not(monkeypatch):
    def printed(rng, scale, size):
        w = rng.uniform(-0.5, 0.5, size)
        return -scale * np.sign(w) * np.log(1 - np.abs(w))

    monkeypatch.setattr(_proportion, "laplace_noise", printed)
    assert cdf_z_scores(0.4).max() > 4


def test_with_a_large_budget_the_rules_agree_with_those_without_noise():
    for mixing in ("jeffreys", "uniform", "flat-prior"):
        fitted = fiducial_proportion(0.3, N, PureDP(1e6), mixing=mixing, draws=SIZE, random_seed=8)
        assert stats.ks_2samp(fitted.draws.ravel(), without_noise(3, mixing)).pvalue > 1e-3


def test_summaries_are_those_of_the_draws():
    fitted = fiducial_proportion([0.4, 0.9], N, BUDGET, draws=5000, chains=2, random_seed=9)
    assert fitted.draws.shape == (2, 2, 5000)
    lower, upper = fitted.interval(0.9)
    for i, released in enumerate([0.4, 0.9]):
        for end, tail in ((lower[i], 0.05), (upper[i], 0.95)):
            cdf = fiducial_cdf(float(end), released, N, BUDGET)
            before = fiducial_cdf(float(end) - 1e-12, released, N, BUDGET)
            mcse = math.sqrt(tail * (1 - tail) / 10_000)
            assert before - 4 * mcse < tail < cdf + 4 * mcse  # an end may be an atom
    below = fiducial_cdf(0.5, 0.4, N, BUDGET)
    mcse = math.sqrt(below * (1 - below) / 10_000)
    assert abs(fitted.p_value(0.5)[0] - below) < 4 * mcse
    assert abs(fitted.p_value(0.5, "less")[0] - (1 - below)) < 4 * mcse
    two_sided = 2 * min(below, 1 - below)
    assert abs(fitted.p_value(0.5, "two-sided")[0] - two_sided) < 8 * mcse
    np.testing.assert_array_equal(fitted.estimate, np.median(fitted.draws, axis=(1, 2)))
    np.testing.assert_array_equal(fitted.mean, fitted.draws.mean(axis=(1, 2)))
    np.testing.assert_array_equal(fitted.sd, fitted.draws.std(axis=(1, 2)))


def test_same_seed_same_draws_and_arviz_takes_them():
    one, two = (fiducial_proportion(0.4, N, BUDGET, chains=2, random_seed=1) for _ in range(2))
    np.testing.assert_array_equal(one.draws, two.draws)
    assert one.to_datatree()["posterior"]["theta"].shape == (2, 10_000)
    with pytest.raises(ValueError, match="one release"):
        fiducial_proportion([0.4, 0.5], N, BUDGET).to_datatree()


@cache
def simulated_p_values(mixing):
    """Of tests against "greater", by what the proportion is."""
    rng, repeats, p = np.random.default_rng(10), 1500, {}
    for theta in (0.8, 0.5):
        released = rng.binomial(N, theta, repeats) / N + laplace_noise(rng, 1 / N, repeats)
        p[theta] = np.array([fiducial_cdf(0.8, r, N, BUDGET, mixing=mixing) for r in released])
    return p


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
@pytest.mark.parametrize("mixing", [pytest.param("jeffreys", marks=pytest.mark.long), "flat-prior"])
def test_size_and_power_are_what_a_simulation_finds(mixing, alternative):
    test = fiducial_test(N, 0.8, BUDGET, mixing=mixing, alternative=alternative)
    for theta, p in simulated_p_values(mixing).items():
        if alternative == "less":
            p = 1 - p
        elif alternative == "two-sided":
            p = 2 * np.minimum(p, 1 - p)
        exact = float(test.power(theta))
        mcse = math.sqrt(exact * (1 - exact) / p.size)
        assert abs(np.mean(p <= 0.05) - exact) < 4 * mcse
        if theta == 0.5 and alternative != "greater":
            assert abs(np.mean(p <= 0.1) - exact) > 4 * mcse


@pytest.mark.parametrize("theta", [0.5, 0.9])
def test_coverage_is_nearly_nominal_and_that_of_a_naive_interval_is_not(theta):
    n, rng, repeats = 30, np.random.default_rng(11), 2000
    released = rng.binomial(n, theta, repeats) / n + laplace_noise(rng, 1 / n, repeats)
    error = 4 * math.sqrt(0.95 * 0.05 / repeats)
    lower, upper = fiducial_proportion(released, n, BUDGET, draws=1000, random_seed=rng).interval()
    rate = np.mean((lower <= theta) & (theta <= upper))
    assert abs(rate - (1 - fiducial_test(n, theta, BUDGET, alternative="two-sided").size)) < error
    assert abs(rate - 0.95) < error

    naive = fiducial_proportion(np.clip(released, 0, 1), n, None, draws=1000, random_seed=rng)
    lower, upper = naive.interval()
    assert np.mean((lower <= theta) & (theta <= upper)) < 0.95 - error


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fiducial_proportion(0.5, 0, BUDGET), ValueError, "number of records"),
        (lambda: fiducial_proportion(math.inf, N, BUDGET), ValueError, "finite"),
        (lambda: fiducial_proportion(1.2, N, None), ValueError, "give its budget"),
        (lambda: fiducial_proportion(0.5, N, BUDGET, mixing="half"), ValueError, "mixing must"),
        (lambda: fiducial_proportion(0.5, N, BUDGET, draws=0), ValueError, "draws must"),
        (lambda: fiducial_proportion(0.5, N, ApproxDP(1.0, 1e-6)), TypeError, "PureDP"),
        (lambda: fiducial_cdf(0.5, 0.5, N, BUDGET, mixing="uniform"), ValueError, "use draws"),
        (lambda: fiducial_test(N, 0.0, BUDGET), ValueError, "theta0 must"),
    ],
)
def test_senseless_problems_are_refused_with_the_reason(call, error, message):
    with pytest.raises(error, match=message):
        call()
