"""Tests for a private proportion, against quadrature, linear programs and simulation."""

import math
import runpy
from functools import partial
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import brentq, linprog

from pymc_dapper.budget import ZCDP, ApproxDP, PureDP
from pymc_dapper.distributions import Tulap
from pymc_dapper.mechanisms import TulapMechanism
from pymc_dapper.reference._proportion import laplace_noise
from pymc_dapper.reference._tulap import TulapNoise
from pymc_dapper.reference.proportion_tests import (
    NormalProportion,
    UMPProportion,
    laplace_sd,
    normal_test,
    randomized_response,
    randomized_response_sd,
    ump_test,
    umpu_test,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
BUDGETS = [PureDP(1.0), PureDP(0.2), ApproxDP(0.5, 0.05)]
N = 12


def tulap_tail(x, epsilon):
    """P(G + U > x) with G discrete Laplace and U uniform: an integral over U, piece by piece."""
    kink = x - math.floor(x)
    cuts = [kink] if 0 < kink < 1 else []
    value, _ = quad(lambda u: stats.dlaplace.sf(x - (u - 0.5), epsilon), 0, 1, points=cuts or None)
    return value


def best_private_power(n, theta0, theta1, epsilon, delta, level, *, unbiased=False):
    """Power of the most powerful test among all (epsilon, delta)-private ones: a linear program.

    Unbiased tests have the size exactly, and there the power's derivative is 0.
    """
    counts, above = np.arange(n + 1), math.exp(epsilon)
    rows, bounds = [stats.binom.pmf(counts, n, theta0)], [level]
    for x, y in [(x, x + 1) for x in range(n)] + [(x + 1, x) for x in range(n)]:
        rejects = np.zeros(n + 1)
        rejects[x], rejects[y] = 1, -above  # phi(x) <= e^eps phi(y) + delta, and of 1 - phi as well
        rows += [rejects, -rejects]
        bounds += [delta, above - 1 + delta]
    null = rows[0]
    held = ([null, null * (counts - n * theta0)], [level, 0]) if unbiased else (None, None)
    gain = stats.binom.pmf(counts, n, theta1)
    return -linprog(-gain, rows, bounds, *held, bounds=(0, 1)).fun


@pytest.mark.parametrize("budget", BUDGETS)
def test_noise_is_that_of_the_mechanism_and_the_distribution(budget):
    noise, mechanism = TulapNoise.calibrate(budget), TulapMechanism.calibrate(budget)
    assert (noise.b, noise.q) == pytest.approx((mechanism.b, mechanism.q), rel=1e-14)

    x = np.linspace(-7.3, 7.3, 74)
    law = Tulap.dist(0.0, noise.b, noise.q)
    np.testing.assert_allclose(
        noise.cdf(x), np.exp(pm.logcdf(law, x).eval(mode="FAST_COMPILE")), atol=1e-14
    )
    np.testing.assert_allclose(noise.sf(x), 1 - noise.cdf(x), atol=1e-14)
    drawn = mechanism.release(np.zeros(20_000, dtype=int), random_seed=2)
    assert stats.kstest(drawn, noise.cdf).pvalue > 1e-3
    if noise.q == 0:
        variance = stats.dlaplace.var(budget.epsilon) + 1 / 12
    else:
        corners = np.append(np.arange(0.5, noise.edge), noise.edge)
        variance = sum(
            quad(lambda t: 4 * t * float(noise.sf(t)), a, b)[0]
            for a, b in zip(np.append(0, corners[:-1]), corners, strict=True)
        )
    assert noise.sd == pytest.approx(math.sqrt(variance), rel=1e-9)
    if noise.q:
        assert float(noise.sf(noise.edge)) == pytest.approx(0, abs=1e-15)
        assert float(noise.sf(noise.edge - 1e-3)) > 0


@pytest.mark.parametrize("released", [-1.7, 3.0, 6.25, 14.4])
def test_p_value_is_the_probability_of_a_count_as_extreme(released):
    tails = [tulap_tail(released - x, 0.7) for x in range(N + 1)]
    expected = stats.binom.pmf(np.arange(N + 1), N, 0.4) @ tails

    private = UMPProportion(released, N, PureDP(0.7))

    assert private.p_value(0.4) == pytest.approx(expected, rel=1e-7)
    assert private.p_value(0.4, "less") == pytest.approx(1 - expected, rel=1e-7)
    two_sided = 2 * min(expected, 1 - expected)
    assert private.p_value(0.4, "two-sided") == pytest.approx(two_sided, rel=1e-7)


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
@pytest.mark.parametrize("budget", BUDGETS)
def test_p_values_are_uniform_at_the_null_and_a_naive_test_is_not(budget, alternative):
    rng = np.random.default_rng(4)
    released = TulapMechanism.calibrate(budget).release(rng.binomial(N, 0.3, 4000), rng)

    p = UMPProportion(released, N, budget).p_value(0.3, alternative)
    naive = stats.binom.sf(np.rint(released) - 1, N, 0.3)

    assert stats.kstest(p, "uniform").pvalue > 1e-3
    assert stats.kstest(naive, "uniform").pvalue < 1e-12


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(("theta0", "theta1"), [(0.3, 0.6), (0.5, 0.9), (0.6, 0.2)])
def test_one_sided_test_has_the_power_of_the_best_private_test(budget, theta0, theta1):
    alternative = "greater" if theta1 > theta0 else "less"
    test = ump_test(N, theta0, budget, alternative=alternative)
    delta = getattr(budget, "delta", 0.0)
    best = best_private_power(N, theta0, theta1, budget.epsilon, delta, 0.05)

    assert test.size == pytest.approx(0.05, abs=1e-12)
    assert float(test.power(theta1)) == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(("theta0", "theta1"), [(0.3, 0.6), (0.3, 0.1), (0.5, 0.9)])
def test_unbiased_test_has_the_power_of_the_best_unbiased_one(budget, theta0, theta1):
    test = umpu_test(N, theta0, budget)
    delta = getattr(budget, "delta", 0.0)
    best = best_private_power(N, theta0, theta1, budget.epsilon, delta, 0.05, unbiased=True)

    assert test.size == pytest.approx(0.05, abs=1e-12)
    assert float(test.power(theta1)) == pytest.approx(best, abs=1e-7)
    assert test.power([theta0 - 0.01, theta0 + 0.01]).min() > 0.05
    # Equal tails are another test, unless the binomial law is symmetric.
    equal_tails = ump_test(N, theta0, budget, alternative="two-sided")
    if theta0 != 0.5:
        assert abs(float(equal_tails.power(theta1)) - best) > 1e-3


def test_the_linear_program_notices_noise_that_is_too_small_or_too_large():
    best = best_private_power(N, 0.3, 0.6, 1.0, 0.0, 0.05)

    def power(epsilon):
        return float(ump_test(N, 0.3, PureDP(epsilon)).power(0.6))

    assert power(1.02) > best + 1e-3
    assert power(0.98) < best - 1e-3


def test_laplace_noise_costs_power():
    # The best test on a count with Laplace noise: its critical value is chosen for the exact size.
    counts = np.arange(N + 1)

    def rejection(z):
        return stats.laplace.sf(z - counts, scale=0.5)

    null = stats.binom.pmf(counts, N, 0.3)
    z = brentq(lambda z: null @ rejection(z) - 0.05, 0, 50)
    laplace_power = stats.binom.pmf(counts, N, 0.6) @ rejection(z)
    best = best_private_power(N, 0.3, 0.6, 2.0, 0.0, 0.05)
    assert laplace_power < best - 1e-3


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_rejection_is_private(budget, alternative):
    phi = ump_test(N, 0.3, budget, alternative=alternative).rejection
    delta = getattr(budget, "delta", 0.0)
    for one, other in ((phi[1:], phi[:-1]), (phi[:-1], phi[1:])):
        for p, q in ((one, other), (1 - one, 1 - other)):
            assert np.all(p <= math.exp(budget.epsilon) * q + delta + 1e-12)


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_the_test_rejects_where_the_p_value_is_small(alternative):
    test = ump_test(N, 0.4, PureDP(1.0), alternative=alternative)
    for edge, outwards in ((test.lower, -1), (test.upper, 1)):
        if np.isfinite(edge):
            p = UMPProportion(edge + outwards * np.array([1e-6, -1e-6]), N, PureDP(1.0))
            inside, outside = p.p_value(0.4, alternative)
            assert inside < 0.05 < outside


@pytest.mark.parametrize("budget", BUDGETS)
def test_interval_ends_are_where_a_one_sided_test_starts_to_reject(budget):
    released = np.array([2.3, 5.0, 9.1])
    private = UMPProportion(released, N, budget)
    lower, upper = private.interval(0.9)

    for i, value in enumerate(released):
        one = UMPProportion(value, N, budget)
        if lower[i] > 0:
            assert one.p_value(lower[i], "greater") == pytest.approx(0.05, abs=1e-9)
        if upper[i] < 1:
            assert one.p_value(upper[i], "less") == pytest.approx(0.05, abs=1e-9)
    assert np.all((lower >= 0) & (lower < private.estimate) & (private.estimate < upper))


def test_a_release_that_no_proportion_explains_gives_the_nearest_one():
    lower, upper = UMPProportion([-9.0, N + 9.0], N, PureDP(1.0)).interval()
    np.testing.assert_array_equal(lower, [0, 1])
    np.testing.assert_array_equal(upper, [0, 1])


def covers(interval, theta):
    return np.mean((interval.lower <= theta) & (theta <= interval.upper))


THETAS = [0.02, 0.5, 0.9]
PAIRS = [
    pytest.param(budget, THETAS[(i + k) % 3], marks=[pytest.mark.long] if i or k else [])
    for k in range(3)
    for i, budget in enumerate(BUDGETS)
]


@pytest.mark.parametrize(("budget", "theta"), PAIRS)
def test_interval_covers_as_often_as_it_says_and_a_naive_one_does_not(budget, theta):
    rng, repeats = np.random.default_rng(6), 2000
    released = TulapMechanism.calibrate(budget).release(rng.binomial(N, theta, repeats), rng)

    rate = covers(UMPProportion(released, N, budget).interval(0.9), theta)
    naive = covers(UMPProportion(released, N, PureDP(50.0)).interval(0.9), theta)

    mcse = math.sqrt(0.9 * 0.1 / repeats)
    assert abs(rate - 0.9) < 4 * mcse
    assert abs(naive - 0.9) > 4 * mcse


def test_estimate_and_sd_are_those_of_the_released_count():
    budget, rng = PureDP(1.0), np.random.default_rng(8)
    released = TulapMechanism.calibrate(budget).release(rng.binomial(100, 0.4, 40_000), rng)
    private = UMPProportion(released, 100, budget)
    sd = float(UMPProportion(40.0, 100, budget).sd)
    assert abs(private.estimate.mean() - 0.4) < 4 * sd / 200
    assert abs(private.estimate.std() / sd - 1) < 4 / math.sqrt(2 * 40_000) * 1.2  # kurtosis


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_normal_test_has_the_size_and_power_that_a_simulation_finds(alternative):
    budget, rng, repeats = PureDP(0.5), np.random.default_rng(9), 40_000
    test = normal_test(N, 0.7, budget, alternative=alternative)
    for theta in (0.7, 0.3, 0.95):
        released = rng.binomial(N, theta, repeats) / N + laplace_noise(rng, 2 / N, repeats)
        p = NormalProportion(released, N, budget).p_value(0.7, alternative)
        exact = float(test.power(theta))
        mcse = math.sqrt(exact * (1 - exact) / repeats)
        assert abs(np.mean(p <= 0.05) - exact) < 4 * mcse
        assert abs(np.mean(p <= 0.075) - exact) > 4 * mcse


def test_normal_interval_is_what_the_normal_test_does_not_reject():
    budget = PureDP(1.0)
    for value in (0.15, 0.5, 0.8):
        one = NormalProportion(value, 40, budget)
        lower, upper = one.interval(0.9)
        roots = [
            brentq(lambda theta, one=one: float(one.p_value(theta, "two-sided")) - 0.1, a, b)
            for a, b in ((1e-9, value), (value, 1 - 1e-9))
        ]
        np.testing.assert_allclose([lower, upper], roots, rtol=1e-9)
    np.testing.assert_array_equal(NormalProportion(9.0, 40, budget).interval(), [1, 1])


def test_laplace_sd_is_that_of_binomial_and_laplace_added():
    exact = math.sqrt(stats.binom.var(N, 0.3) / N**2 + stats.laplace.var(scale=1 / (0.5 * N)))
    assert float(laplace_sd(0.3, N, PureDP(0.5))) == pytest.approx(exact)
    assert float(NormalProportion(0.3, N, PureDP(0.5)).sd) == pytest.approx(exact)


def test_randomized_response_is_unbiased_with_the_sd_that_it_says():
    n, theta, budget = 15, 0.2, PureDP(1.5)
    keep = math.exp(1.5) / (1 + math.exp(1.5))
    yes = np.arange(n + 1)
    law = stats.binom.pmf(yes, n, theta * keep + (1 - theta) * (1 - keep))
    estimates = np.array([randomized_response(int(y), n, budget).estimate for y in yes])

    assert law @ estimates == pytest.approx(theta)
    assert law @ (yes / n) != pytest.approx(theta, rel=0.1)  # the share of yes is biased
    sd = math.sqrt(law @ (estimates - theta) ** 2)
    assert float(randomized_response_sd(theta, n, budget)) == pytest.approx(sd)


def test_randomized_response_pays_in_the_rate():
    budget, n = PureDP(0.1), np.array([10**4, 10**6])
    local = randomized_response_sd(0.5, n, budget)
    noise = np.sqrt(laplace_sd(0.5, n, budget) ** 2 - 0.25 / n)
    assert local[0] / local[1] == pytest.approx(10)
    assert noise[0] / noise[1] == pytest.approx(100)


def test_randomized_response_interval_is_normal_and_cut():
    one = randomized_response(60, 100, PureDP(1.0), prob=0.9)
    half = stats.norm.ppf(0.95) * one.sd
    assert one.interval == pytest.approx((one.estimate - half, min(1.0, one.estimate + half)))
    assert randomized_response(100, 100, PureDP(1.0)).interval == (1.0, 1.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: UMPProportion(1.0, 0, PureDP(1.0)), ValueError, "n, the number of records"),
        (lambda: UMPProportion(math.nan, 5, PureDP(1.0)), ValueError, "must be finite"),
        (lambda: UMPProportion(1.0, 5, ZCDP(1.0)), TypeError, "PureDP or an ApproxDP"),
        (lambda: UMPProportion(1.0, 5, PureDP(800.0)), ValueError, "epsilon between"),
        (lambda: UMPProportion(1.0, 5, PureDP(1.0)).p_value(0.0), ValueError, "theta0 must be"),
        (lambda: UMPProportion(1.0, 5, PureDP(1.0)).p_value(0.5, "up"), ValueError, "alternative"),
        (lambda: UMPProportion(1.0, 5, PureDP(1.0)).interval(1.0), ValueError, "prob must be"),
        (lambda: NormalProportion(0.5, 5, ApproxDP(1.0, 1e-6)), TypeError, "PureDP"),
        (lambda: ump_test(5, 0.5, PureDP(1.0), level=0), ValueError, "level must be"),
        (lambda: ump_test(5, 0.5, PureDP(1.0)).power(1.2), ValueError, "theta must be within"),
        (lambda: umpu_test(5, 0.5, PureDP(1.0), level=1.0), ValueError, "level must be"),
        (lambda: normal_test(5, 1.0, PureDP(1.0)), ValueError, "theta0 must be"),
        (lambda: randomized_response(6, 5, PureDP(1.0)), ValueError, "from 0 to n = 5"),
        (lambda: randomized_response_sd(0.5, 5, ZCDP(1.0)), TypeError, "PureDP"),
        *(
            (partial(call, PureDP(1.0, neighbours="add_remove")), ValueError, "joins or leaves")
            for call in (
                lambda budget: UMPProportion(1.0, 5, budget),
                lambda budget: NormalProportion(0.5, 5, budget),
                lambda budget: randomized_response(3, 5, budget),
            )
        ),
    ],
)
def test_senseless_problems_are_refused_with_the_reason(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.long
def test_the_example_prints_its_table_and_saves_its_figure(monkeypatch, tmp_path, capsys):
    # A script finds its neighbours because its folder is first on the path.
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = runpy.run_path(str(EXAMPLES / "private_proportion.py"))
    figure = tmp_path / "figure.png"
    example["main"](draws=1000, output=figure)
    assert figure.stat().st_size > 10_000
    printed = capsys.readouterr().out
    for words in ("p-value", "most powerful", "fiducial", "normal", "randomised response"):
        assert words in printed
