"""A clipped sum with Laplace noise, of records in a centred and in a non-centred model.

Both have the same posterior of mean and standard deviation. In the non-centred one the statistic
depends on the parameters, and must be computed anew whenever they move.
"""

from math import exp

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.stats import gamma, laplace, norm

from pymc_dapper import DapperStep
from tests import broken
from tests.quadrature import (
    linear_gaussian,
    log_density_of_noisy_clipped_sum,
    marginals,
)
from tests.statistical.agreement import assert_agrees, assert_disagrees, compare
from tests.statistical.parameters import Given, slice_sample
from tests.statistical.twins import with_decide, with_propose

N = 4
BOUNDS = (-1.0, 1.5)
NOISE = 0.6
RELEASED = 3.1


def centred(mu, sigma):
    return pm.Normal("record", mu, sigma, shape=N)


def non_centred(mu, sigma):
    return mu + sigma * pm.Normal("record", 0, 1, shape=N)


def model_of(data):
    with pm.Model() as m:
        mu = pm.Normal("mu", 0, 1)
        sigma = pm.Gamma("sigma", 4, 4)
        total = pt.clip(data(mu, sigma), *BOUNDS).sum()
        pm.Potential("privacy", pm.logp(pm.Laplace.dist(total, NOISE), RELEASED))
    return m


MODELS = [centred, non_centred]


@pytest.fixture(scope="module")
def models():
    return {data: model_of(data) for data in MODELS}


@pytest.fixture(scope="module")
def steps(models):
    return {data: DapperStep([m["record"]], model=m) for data, m in models.items()}


@pytest.fixture(scope="module")
def exact():
    grids = np.linspace(-4, 5, 181), np.linspace(1e-9, 5, 101)
    mu, sigma = np.meshgrid(*grids, indexing="ij")
    log_likelihood = log_density_of_noisy_clipped_sum(
        RELEASED, lambda error: laplace.logpdf(error, 0, NOISE), N, mu, sigma, BOUNDS, cells=100
    )
    log_prior = norm.logpdf(mu) + gamma.logpdf(sigma, 4, scale=1 / 4)
    return dict(zip(("mu", "sigma"), marginals(grids, log_prior + log_likelihood), strict=True))


def draw_centred(rng, point):
    x, log_sigma = point["record"], point["sigma_log__"]
    precision = 1 + N * np.exp(-2 * log_sigma)
    mu = rng.normal(x.sum() * np.exp(-2 * log_sigma) / precision, precision**-0.5)
    squares = ((x - mu) ** 2).sum() / 2

    def log_density(v):
        return (4 - N) * v - 4 * exp(v) - squares * exp(-2 * v)

    return mu, slice_sample(rng, float(log_sigma), log_density, 1.0)


def draw_non_centred(rng, point):
    z, mu, log_sigma = point["record"], float(point["mu"]), float(point["sigma_log__"])

    def log_density(mu, v):
        total = (mu + exp(v) * z).clip(*BOUNDS).sum()
        return 4 * v - 4 * exp(v) - mu**2 / 2 - abs(RELEASED - total) / NOISE

    mu = slice_sample(rng, mu, lambda m: log_density(m, log_sigma), 1.0)
    return mu, slice_sample(rng, log_sigma, lambda v: log_density(mu, v), 1.0)


DRAWS = {centred: draw_centred, non_centred: draw_non_centred}


def run(models, data, step, exact, **kwargs):
    model = models[data]
    parameters = Given([model["mu"], model["sigma"]], DRAWS[data], model=model)
    return compare(model, [step, parameters], exact, **kwargs)


def test_the_quadrature_is_that_of_a_normal_where_nothing_is_clipped():
    log_density = log_density_of_noisy_clipped_sum(
        1.3, lambda e: norm.logpdf(e, 0, 0.7), 4, np.array(0.4), np.array(0.9), (-8, 8), cells=4000
    )
    expected = linear_gaussian(
        np.full(4, 0.4), 0.9**2 * np.eye(4), np.ones((1, 4)), np.array([[0.7**2]]), [1.3]
    )[2]
    assert log_density == pytest.approx(expected, abs=1e-5)


# In every run, what a sweep decides on in such models: records/compiled/test_op.py.
@pytest.mark.long
@pytest.mark.parametrize("data", MODELS)
def test_mean_and_sd_given_a_clipped_sum(models, steps, exact, data):
    assert_agrees(run(models, data, steps[data], exact, draws=8_000))


class Late:
    """Hands over the parameters of the sweep before."""

    def __init__(self):
        self.before = None

    def __call__(self, given):
        before, self.before = self.before or given, [x.copy() for x in given]
        return before


@pytest.mark.long
def test_contributions_at_old_parameters_are_told_apart(models, steps, exact):
    late = Late()

    def with_old_parameters(decide, records, proposals, log_uniforms, given):
        return decide(*records, *proposals, log_uniforms, *late(given))

    twin = with_decide(steps[non_centred], with_old_parameters)
    assert_disagrees(run(models, non_centred, twin, exact))


@pytest.mark.long
def test_proposals_from_old_parameters_are_told_apart(models, steps, exact):
    late = Late()

    def from_old_parameters(propose, rng, *given):
        return propose(rng, *late(list(given)))

    twin = with_propose(steps[centred], from_old_parameters)
    assert_disagrees(run(models, centred, twin, exact))


# In every run, `exactness/` and test_transition_matrix.py tell them.
@pytest.mark.long
@pytest.mark.parametrize("data", MODELS)
def test_sums_left_behind_are_told_apart(models, exact, data):
    model = models[data]
    step = broken.broken_step(broken.STALE_SUMS)([model["record"]], model=model)
    assert_disagrees(run(models, data, step, exact))
