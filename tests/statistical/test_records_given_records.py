"""Two record variables in one step, one depending on the other: `y` given `x`.

x_i ~ Bernoulli(p) and y_i ~ N(mu[x_i], 1), with noisy sums of x, y and xy released. Given how many
x_i are 1, all else is normal: the exact posterior is a mixture over that number.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.special import betaln, gammaln, logsumexp
from scipy.stats import beta, norm

from pymc_dapper import DapperStep
from tests import broken
from tests.quadrature import Tabulated, linear_gaussian
from tests.statistical.agreement import FEW, assert_agrees, assert_disagrees, compare
from tests.statistical.parameters import Given
from tests.statistical.twins import with_propose

pytestmark = pytest.mark.long

N = 8
NOISE = 2.5
RELEASED = np.array([5.2, 7.1, 11.4])
PRIOR_SD = 2.0


@pytest.fixture(scope="module")
def model():
    with pm.Model() as m:
        p = pm.Beta("p", 2, 2)
        mu = pm.Normal("mu", 0, PRIOR_SD, shape=2)
        x = pm.Bernoulli("x", p, shape=N)
        y = pm.Normal("y", mu[x], 1, shape=N)
        pm.Normal("s_dp", pt.stack([x.sum(), y.sum(), (x * y).sum()]), NOISE, observed=RELEASED)
    return m


@pytest.fixture(scope="module")
def exact():
    counts = np.arange(N + 1)
    log_weights = gammaln(N + 1) - gammaln(counts + 1) - gammaln(N - counts + 1)
    log_weights += betaln(2 + counts, 2 + N - counts) + norm.logpdf(RELEASED[0], counts, NOISE)
    normals = []
    for k in counts:
        # Sums of y where x is 0 and where it is 1, as functions of mu; their sum is released.
        totals = np.array([[1.0, 1.0], [0.0, 1.0]])
        mean, cov, log_evidence = linear_gaussian(
            np.zeros(2),
            PRIOR_SD**2 * np.eye(2),
            totals @ np.diag([N - k, k]),
            totals @ np.diag([N - k, k]) @ totals.T + NOISE**2 * np.eye(2),
            RELEASED[1:],
        )
        normals.append((mean, np.sqrt(np.diag(cov))))
        log_weights[k] += log_evidence
    log_weights -= logsumexp(log_weights)

    def mixture(grid, log_densities):
        return Tabulated(grid, logsumexp(log_densities + log_weights[:, None], axis=0))

    p, mu = np.linspace(1e-6, 1 - 1e-6, 4001), np.linspace(-12, 12, 4001)
    return {
        "p": mixture(p, np.array([beta.logpdf(p, 2 + k, 2 + N - k) for k in counts])),
        "mu": [
            mixture(mu, np.array([norm.logpdf(mu, m[j], s[j]) for m, s in normals]))
            for j in range(2)
        ],
    }


@pytest.fixture(scope="module")
def parameter_step(model):
    def draw(rng, point):
        x, y = point["x"], point["y"]
        group = np.eye(2)[x]
        sizes = group.sum(axis=0)
        p = rng.beta(2 + sizes[1], 2 + sizes[0])
        precision = sizes + 1 / PRIOR_SD**2
        return np.log(p / (1 - p)), rng.normal(y @ group / precision, precision**-0.5)

    return Given([model["p"], model["mu"]], draw, model=model)


@pytest.fixture(scope="module")
def step(model):
    # The dependent variable first: the step finds the order by itself.
    return DapperStep([model["y"], model["x"]], model=model)


def test_y_given_x_with_sums_of_both_and_their_product(model, step, parameter_step, exact):
    assert_agrees(compare(model, [step, parameter_step], exact, draws=10_000))


def test_y_proposed_for_another_x_is_detected(model, step, parameter_step, exact):
    def apart(propose, rng, *given):
        return propose(rng, *given)[0], propose(rng, *given)[1]

    twin = with_propose(step, apart)
    assert_disagrees(compare(model, [twin, parameter_step], exact, draws=FEW))


def test_sums_left_behind_are_told_apart(model, parameter_step, exact):
    step = broken.broken_step(broken.STALE_SUMS)([model["y"], model["x"]], model=model)
    assert_disagrees(compare(model, [step, parameter_step], exact, draws=FEW))
