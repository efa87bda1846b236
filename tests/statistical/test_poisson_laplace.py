"""The closed forms of a Poisson count with Laplace noise, against direct sums; and the sampler."""

import math

import numpy as np
import pymc as pm
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import gamma, laplace, poisson

import pymc_dapper as pmd
from examples._poisson_laplace import PoissonLaplace, PoissonLaplacePosterior
from tests.long_cases import one_in_three
from tests.statistical.agreement import assert_agrees, assert_disagrees, compare
from tests.statistical.twins import with_half_the_log_ratio

COUNTS = np.arange(5_000)
RELEASES = [
    (37.4, 5.0),
    (37.0, 5.0),
    (37.4, 0.05),
    (37.4, 0.001),
    (0.3, 2.0),
    (-3.2, 5.0),
    (400, 1),
]


def summed(theta, released, scale):
    """Log-likelihood, term by term."""
    terms = poisson.logpmf(COUNTS, theta) + laplace.logpdf(released, COUNTS, scale)
    return logsumexp(terms)


@pytest.mark.parametrize(("released", "scale"), RELEASES)
def test_the_likelihood_is_the_sum_over_counts(released, scale):
    means = [1e-3, 1.0, 20.0, 37.0, 100.0, 1000.0]
    expected = [summed(theta, released, scale) for theta in means]
    loglik = PoissonLaplace(released, scale).loglik(means)
    np.testing.assert_allclose(loglik, expected, rtol=1e-12, atol=1e-12)


def test_a_likelihood_split_one_count_too_high_is_detected():
    class Late(PoissonLaplace):
        def _log_below(self, means):
            return PoissonLaplace._log_below(PoissonLaplace(self.released + 1, self.scale), means)

    loglik = Late(37.4, 5).loglik(37.0)
    assert abs(loglik - summed(37.0, 37.4, 5)) > 0.01


def test_score_and_information_are_its_derivatives():
    likelihood = PoissonLaplace(37.4, 5)
    theta, step = 33.0, 1e-3
    low, middle, high = (summed(theta + shift, 37.4, 5) for shift in (-step, 0, step))
    assert likelihood.score(theta) == pytest.approx((high - low) / (2 * step), rel=1e-6)
    curvature = (high - 2 * middle + low) / step**2
    assert likelihood.information(theta) == pytest.approx(-curvature, rel=1e-5)


def test_the_published_example():
    # Numbers printed in the talk: theta_hat, its information, and that of the naive analysis.
    estimate, information = PoissonLaplace(37.4, scale=1 / 0.2).maximum()
    assert f"{estimate:.3f}" == "37.237"
    assert f"{information:.3e}" == "1.582e-02"
    assert f"{1 / 37.4:.3e}" == "2.674e-02"

    found = minimize_scalar(
        lambda t: -summed(t, 37.4, 5), bounds=(20, 60), method="bounded", options={"xatol": 1e-9}
    )
    assert estimate == pytest.approx(found.x, abs=1e-5)
    # Louis: complete information less that of the count, which is uncertain given its release.
    log_weights = poisson.logpmf(COUNTS, estimate) + laplace.logpdf(37.4, COUNTS, 5)
    weights = np.exp(log_weights - logsumexp(log_weights))
    mean = weights @ COUNTS
    variance = weights @ (COUNTS - mean) ** 2
    assert information == pytest.approx((mean - variance) / estimate**2, rel=1e-8)
    # A noise scale that isn't 1 / epsilon wouldn't give the printed numbers.
    for scale in (0.2, 2.5, 10, 5 / math.sqrt(2)):
        assert f"{PoissonLaplace(37.4, scale).maximum()[0]:.3f}" != "37.237"


@pytest.mark.parametrize("released", [0.6, 1.0, 37.4, 800.2])
def test_the_maximum_is_that_of_the_sum(released):
    estimate, _ = PoissonLaplace(released, 3).maximum()
    around = [summed(estimate * (1 + h), released, 3) for h in (-0.01, 0, 0.01)]
    assert np.argmax(around) == 1


@pytest.mark.parametrize(
    ("released", "scale", "shape", "rate"),
    one_in_three(
        [
            (37.4, 5, 25, 1),
            (37.4, 0.05, 25, 1),
            (400, 1, 2, 1),
            (0.3, 2, 3, 0.01),
            (-3.2, 5, 0.7, 0.1),
        ]
    ),
)
def test_the_posterior_is_that_of_the_sum(released, scale, shape, rate):
    posterior = PoissonLaplacePosterior(released, scale, shape, rate)

    # Integrals by the substitution theta = exp(u), under which nothing has a pole.
    def integrate(function, upper):
        def integrand(u):
            theta = math.exp(u)
            log_prior = gamma.logpdf(theta, shape, scale=1 / rate)
            return function(theta) * math.exp(log_prior + summed(theta, released, scale) + u - peak)

        points = np.log([posterior.mean / 2, posterior.mean])
        lower = math.log(posterior.mean) - 45 / max(shape, 1)
        return quad(integrand, lower, math.log(upper), points=points, limit=500, epsrel=1e-11)[0]

    peak = gamma.logpdf(posterior.mean, shape, scale=1 / rate)
    peak += summed(posterior.mean, released, scale)
    far = posterior.mean + 40 * posterior.sd
    total = integrate(lambda theta: 1.0, far)
    mean = integrate(lambda theta: theta, far) / total
    variance = integrate(lambda theta: (theta - mean) ** 2, far) / total

    assert posterior.log_evidence == pytest.approx(math.log(total) + peak, abs=1e-8)
    assert posterior.mean == pytest.approx(mean, rel=1e-7)
    assert posterior.sd == pytest.approx(math.sqrt(variance), rel=1e-6)
    for q in (0.05, 0.5, 0.99):
        x = float(posterior.quantile(q))
        assert integrate(lambda theta: 1.0, x) / total == pytest.approx(q, abs=1e-7)
        step = 1e-4 * min(x, posterior.sd)
        slope = (posterior.cdf(x + step) - posterior.cdf(x - step)) / (2 * step)
        assert posterior.pdf(x) == pytest.approx(float(slope), rel=1e-6)
    # The test can tell posteriors apart: a prior a little different doesn't pass.
    twin = PoissonLaplacePosterior(released, scale, shape * 1.001, rate)
    assert twin.mean != pytest.approx(mean, rel=1e-7)


def test_the_density_is_zero_below_zero():
    posterior = PoissonLaplacePosterior(37.4, 5, 25, 1)
    np.testing.assert_array_equal(posterior.pdf([-1, 0]), 0)
    np.testing.assert_array_equal(posterior.cdf([-1, 0]), 0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: PoissonLaplace(math.nan, 5), "released must be a finite"),
        (lambda: PoissonLaplace(37.4, 0), "scale must be a finite number above 0"),
        (lambda: PoissonLaplace(37.4, 5).loglik([1, -1]), "theta must be positive"),
        (lambda: PoissonLaplace(0.5, 5).maximum(), "largest at a mean of 0"),
        (lambda: PoissonLaplacePosterior(37.4, 5, -1, 1), "shape must be a finite number above 0"),
        (
            lambda: PoissonLaplacePosterior(37.4, 5, 25, math.inf),
            "rate must be a finite number above 0",
        ),
        (lambda: PoissonLaplacePosterior(math.inf, 5, 25, 1), "released must be a finite"),
        (lambda: PoissonLaplacePosterior(37.4, 5, 25, 1).quantile(1.0), "strictly between"),
    ],
)
def test_bad_input_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.fixture(scope="module")
def sampled_model():
    with pm.Model() as model:
        theta = pm.Gamma("theta", 25, 1)
        s = pm.Poisson("s", theta, shape=1)
        pmd.LaplaceMechanism(5.0).potential("privacy", s.sum(), released=37.4)
        step = pmd.DapperStep([s])
    return model, step


# The posterior is held against sums above, and samplers with Laplace noise against other answers.
@pytest.mark.long
def test_the_sampler_agrees(sampled_model):
    model, step = sampled_model
    exact = PoissonLaplacePosterior(37.4, 5, 25, 1)
    assert_agrees(compare(model, [step], {"theta": exact}))


@pytest.mark.long
def test_a_sampler_with_half_the_log_ratio_is_detected(sampled_model):
    model, step = sampled_model
    exact = PoissonLaplacePosterior(37.4, 5, 25, 1)
    assert_disagrees(compare(model, [with_half_the_log_ratio(step)], {"theta": exact}))
