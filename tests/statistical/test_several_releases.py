"""Several releases about the same records: a Potential, observed variables, microdata of some.

A total as a Potential, a group's total as an observed variable, and the values of some records with
noise on each. Everything is normal: the exact posterior of parameters and records is, too.
"""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper import DapperStep
from tests import broken
from tests.quadrature import linear_gaussian, normals
from tests.statistical.agreement import FEW, assert_agrees, assert_disagrees, compare
from tests.statistical.parameters import Given, regression

pytestmark = pytest.mark.long

N = 6
IN_GROUP = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
ANSWERS = np.array([2.4, -0.3, 1.7])  # of the first three records
NOISE = {"total": 2.5, "group_total": 2.0, "answers": 1.2}
TOTAL, GROUP_TOTAL = 3.9, 6.5
PRIOR_SD = 1.5


@pytest.fixture(scope="module")
def model():
    with pm.Model() as m:
        mu = pm.Normal("mu", 0, PRIOR_SD)
        effect = pm.Normal("effect", 0, PRIOR_SD)
        x = pm.Normal("record", mu + effect * IN_GROUP, 1, shape=N)
        pm.Potential("total", -0.5 * ((TOTAL - x.sum()) / NOISE["total"]) ** 2)
        group_total = (IN_GROUP * x).sum()
        pm.Normal("group_total", group_total, NOISE["group_total"], observed=GROUP_TOTAL)
        pm.Normal("answers", x[:3], NOISE["answers"], observed=ANSWERS)
    return m


@pytest.fixture(scope="module")
def exact():
    # The state is (mu, effect, records).
    means = np.column_stack([np.ones(N), IN_GROUP])
    to_state = np.vstack([np.eye(2), means])
    prior_cov = PRIOR_SD**2 * to_state @ to_state.T
    prior_cov[2:, 2:] += np.eye(N)
    seen = np.vstack([np.ones(N), IN_GROUP, np.eye(N)[:3]])
    noise = [NOISE["total"], NOISE["group_total"], *[NOISE["answers"]] * 3]
    mean, cov, _ = linear_gaussian(
        np.zeros(2 + N),
        prior_cov,
        np.column_stack([np.zeros((5, 2)), seen]),
        np.diag(noise) ** 2,
        np.array([TOTAL, GROUP_TOTAL, *ANSWERS]),
    )
    mu, effect, *records = normals(mean, cov)
    return {"mu": mu, "effect": effect, "record": records}


def run(model, step, exact, **kwargs):
    draw = regression(np.column_stack([np.ones(N), IN_GROUP]), PRIOR_SD)
    parameters = Given([model["mu"], model["effect"]], draw, model=model)
    return compare(model, [step, parameters], exact, **kwargs)


def test_parameters_and_records_given_all_releases(model, exact):
    step = DapperStep([model["record"]], model=model)
    assert_agrees(run(model, step, exact, draws=20_000))


@pytest.mark.parametrize(
    "fault",
    [broken.without_separable, broken.SEPARABLE_ONLY, broken.FIRST_CHANGE_ONLY],
    ids=["without answers", "answers only", "first total only"],
)
def test_a_forgotten_release_is_detected(model, exact, fault):
    step = broken.broken_step(fault)([model["record"]], model=model)
    assert_disagrees(run(model, step, exact, draws=FEW))
