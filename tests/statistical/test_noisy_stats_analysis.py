"""The analysis of a private line, as the example builds it, against importance sampling.

The judge knows the algorithm and no likelihood: it simulates pairs from the prior and the noise on
n times their variance, and weights them by the two Laplace densities that are left.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dapper.mechanisms import NoisyStats
from tests.statistical.agreement import assert_agrees, assert_disagrees, compare
from tests.test_examples import load

pytestmark = pytest.mark.long

N, EPSILON = 12, 10.0
LIMITS = {"clamp_x": (0.0, 1.0), "clamp_y": (-6.0, 6.0)}  # narrow enough to matter
LINE = np.array([0.3, 0.25])
RELEASES = {"line": LINE, "NA": np.array(NoisyStats.NA)}


@pytest.fixture(scope="module")
def example():
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield load("noisy_stats", monkeypatch)


class Weighted:
    """A weighted sample, as an answer."""

    def __init__(self, values, weights):
        order = np.argsort(values)
        self._values, weights = values[order], weights[order] / weights.sum()
        self._cumulative = np.cumsum(weights) - weights / 2
        self.mean = float(weights @ self._values)
        self.sd = float(np.sqrt(weights @ (self._values - self.mean) ** 2))
        self.ess = float(1 / np.sum(weights**2))

    def quantile(self, q):
        return float(np.interp(q, self._cumulative, self._values))


def simulate_posteriors(priors, simulations=3_000_000, chunk=100_000, seed=2):
    """Parameters from their prior, with the weights that each of the releases gives to them."""
    rng, scale = np.random.default_rng(seed), 3 * (1 - 1 / N) / EPSILON
    draws, weights = [], []
    for _ in range(simulations // chunk):
        theta = np.array([rng.normal(*prior, chunk) for prior in priors.values()])
        alpha, beta, mu_x, log_sd_x, log_sd_y = theta
        x = mu_x + np.exp(log_sd_x) * rng.normal(size=(N, chunk))
        y = alpha + beta * x + np.exp(log_sd_y) * rng.normal(size=(N, chunk))
        u, v = np.clip(x, 0, 1), (np.clip(y, -6, 6) + 6) / 12
        du = u - u.mean(axis=0)
        noisy_var = (du**2).sum(axis=0) + rng.laplace(0, scale, chunk)

        slope, intercept = LINE
        noise = slope * noisy_var - (du * v).sum(axis=0)
        error = intercept - (v.mean(axis=0) - slope * u.mean(axis=0))
        of_slope = np.maximum(noisy_var, 0) * np.exp(-abs(noise) / scale)
        of_intercept = np.exp(-abs(error) * N * EPSILON / (3 * (1 + abs(slope))))
        draws.append(theta)
        weights.append([of_slope * of_intercept, noisy_var <= 0])
    values, by_release = np.concatenate(draws, axis=1), np.concatenate(weights, axis=1)
    return {
        release: {name: Weighted(row, w) for name, row in zip(priors, values, strict=True)}
        for release, w in zip(RELEASES, by_release, strict=True)
    }


@pytest.fixture(scope="module")
def exact(example):
    return simulate_posteriors(example.PRIORS)


@pytest.fixture(scope="module")
def chain(example):
    """The model and its steps, compiled once: `pm.set_data` changes the release."""
    model = example.build_model(NoisyStats(EPSILON, N), LINE, LIMITS)
    return model, example.assign_steps(model)


@pytest.mark.parametrize("release", RELEASES)
def test_five_parameters_given_a_release(chain, exact, release):
    model, steps = chain
    with model:
        pm.set_data({"line_released": RELEASES[release]})
    agreement = compare(model, steps, exact[release], draws=6_000)
    assert_agrees(agreement)
    # The judge's own error is left out of the tolerance: it is a small part of the chains'.
    assert min(answer.ess for answer in exact[release].values()) > 10 * agreement.ess


class Unclamped(NoisyStats):
    """Scales the records, and forgets to clamp them."""

    def statistic(self, x, y, *, clamp_x, clamp_y):
        u, v = ((z - low) / (high - low) for z, (low, high) in ((x, clamp_x), (y, clamp_y)))
        return pt.stack([u, v, u * v, u * u], axis=-1).sum(axis=0)


def test_a_wrong_model_of_the_release_is_detected(example, exact):
    model = example.build_model(Unclamped(EPSILON, N), LINE, LIMITS)
    assert_disagrees(compare(model, example.assign_steps(model), exact["line"], draws=3_000))


def smallest_p_value(example, release, replicates=400, seed=5):
    """Of the truth's ranks among naive draws, if truth and pairs come from the analyst's model."""
    rng, ranks = np.random.default_rng(seed), []
    for _ in range(replicates):
        alpha, beta, mu_x, log_sd_x, log_sd_y = (rng.normal(*p) for p in example.PRIORS.values())
        x = rng.normal(mu_x, np.exp(log_sd_x), N)
        y = rng.normal(alpha + beta * x, np.exp(log_sd_y))
        drawn = example.sample_naive(release(x, y, rng), N, 500, rng, simulations=5_000)
        ranks.append([np.mean(drawn["alpha"] < alpha), np.mean(drawn["beta"] < beta)])
    return min(stats.kstest(column, "uniform").pvalue for column in np.transpose(ranks))


def least_squares(x, y, rng):
    return np.polyfit(x, y, 1)[::-1]


def test_the_naive_analysis_is_right_of_least_squares_and_wrong_of_a_private_line(example):
    """So that what the example shows is what naivety does, and not a fault."""
    limits = {"clamp_x": (-3.0, 4.0), "clamp_y": (-60.0, 60.0)}  # clamping does nothing
    mechanism = NoisyStats(EPSILON, N)

    def private(x, y, rng):
        released = np.array(NoisyStats.NA)
        while np.isinf(released[0]):
            statistic, seed = mechanism.statistic(x, y, **limits), rng.integers(2**32)
            released = mechanism.release(statistic, random_seed=seed)
        return example.in_units_of_the_data(released, limits)

    assert smallest_p_value(example, least_squares) > 1e-3
    assert smallest_p_value(example, private) < 1e-6


def test_the_example_prints_its_table_and_saves_its_figure(example, monkeypatch, tmp_path, capsys):
    """Of the budget whose table `test_tables.py` compares, for which all is compiled once."""
    figure, epsilon = tmp_path / "figure.png", example.EPSILONS[0]
    monkeypatch.setattr(example, "NO_LINE_EPSILON", epsilon)
    example.main(draws=30, tune=30, output=figure, epsilons=[epsilon])
    assert figure.stat().st_size > 10_000
    printed = capsys.readouterr().out
    for word in ("confidential", "naive", "private", "no line", *example.PRIORS):
        assert word in printed
