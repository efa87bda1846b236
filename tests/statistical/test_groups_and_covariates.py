"""Normal records whose mean depends on a public group and on a public covariate of each.

Group totals and a weighted total with Gaussian noise are released: everything is normal, and so is
the exact posterior.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper import DapperStep
from tests import broken
from tests.quadrature import linear_gaussian, normals
from tests.statistical.agreement import FEW, assert_agrees, assert_disagrees, compare
from tests.statistical.parameters import Given, regression
from tests.statistical.twins import with_propose

pytestmark = pytest.mark.long

GROUP = np.array([0, 1, 1, 2, 0, 1, 2, 1])
Z = np.array([-1.1, 0.3, 1.2, -0.4, 0.8, -1.6, 2.0, 0.1])
N = len(GROUP)
SIGMA = 1.3
NOISE = 2.5
RELEASED = np.array([1.5, 6.8, -2.4, 7.7])
PRIOR_SD = np.array([1.5, 1.5, 1.5, 1.0])


@pytest.fixture(scope="module")
def model():
    with pm.Model(coords={"person": np.arange(N), "group": ["a", "b", "c"]}) as m:
        mu = pm.Normal("mu", 0, PRIOR_SD[:3], dims="group")
        slope = pm.Normal("slope", 0, PRIOR_SD[3])
        record = pm.Normal("record", mu[GROUP] + slope * Z, SIGMA, dims="person")
        totals = pt.stack([*(record[g == GROUP].sum() for g in range(3)), (Z * record).sum()])
        pm.Normal("s_dp", totals, NOISE, observed=RELEASED)
    return m


@pytest.fixture(scope="module")
def step(model):
    return DapperStep([model["record"]], model=model)


@pytest.fixture(scope="module")
def exact():
    indicators = np.eye(3)[GROUP]
    design = np.column_stack([indicators, Z])  # means of the records, from (mu, slope)
    totals = np.column_stack([indicators, Z]).T  # what is released, from the records
    mean, cov, _ = linear_gaussian(
        np.zeros(4),
        np.diag(PRIOR_SD**2),
        totals @ design,
        SIGMA**2 * totals @ totals.T + NOISE**2 * np.eye(4),
        RELEASED,
    )
    *mu, slope = normals(mean, cov)
    return {"mu": mu, "slope": slope}


def run(model, step, exact, **kwargs):
    coefficients = regression(np.column_stack([np.eye(3)[GROUP], Z]), PRIOR_SD, SIGMA)

    def mu_and_slope(rng, point):
        *mu, slope = coefficients(rng, point)
        return mu, slope

    parameters = Given([model["mu"], model["slope"]], mu_and_slope, model=model)
    return compare(model, [step, parameters], exact, **kwargs)


def test_group_means_and_slope_given_noisy_totals(model, step, exact):
    assert_agrees(run(model, step, exact))


def test_proposals_with_the_next_records_covariates_are_told_apart(model, step, exact):
    def shifted(propose, rng, *given):
        return [np.roll(propose(rng, *given)[0], 1)]

    assert_disagrees(run(model, with_propose(step, shifted), exact, draws=FEW))


def test_another_noise_is_detected(model, exact):
    step = broken.broken_step(broken.FLATTENED)([model["record"]], model=model)
    assert_disagrees(run(model, step, exact))
