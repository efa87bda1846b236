"""Statistics that aren't sums: a median, a maximum; and one that is evaluated from all records."""

from contextlib import nullcontext
from functools import cache

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.special import logsumexp
from scipy.stats import laplace, norm

from pymc_dapper import DapperStep
from pymc_dapper.records.reading.orders import ByOrder
from pymc_dapper.records.reading.plan import ByFullEvaluation
from tests.against_python import assert_same_in_python
from tests.enumerate_sweep import transition_matrix
from tests.enumeration import conditional_posterior
from tests.quadrature import Tabulated
from tests.statistical.agreement import assert_agrees, assert_disagrees, compare
from tests.statistical.parameters import Given, regression
from tests.statistical.twins import with_decide
from tests.sweep_parts import parts_of

PRIOR = np.array([0.5, 0.3, 0.2])
VALUES = np.array([0.0, 1.0, 3.0])
NOISE = 0.8
RELEASED = 1.7
TOTAL = 3.0
# Answers of randomised response: kept with probability 0.6, else one of the others.
TOLD = np.full((3, 3), 0.2) + 0.4 * np.eye(3)
ANSWERS = np.array([2, 0, 1])


def median(record):
    return pt.sort(pt.as_tensor(VALUES)[record])[1]


def maximum(record):
    return pt.as_tensor(VALUES)[record].max()


def by_its_place(record):
    """The maximum, written so that it isn't read as one."""
    value = pt.as_tensor(VALUES)[record]
    return value[pt.argmax(value)]


STATISTICS = {median: np.median, maximum: np.max, by_its_place: np.max}


def step_of(model, *, is_full=False):
    with pytest.warns(UserWarning, match="isn't a") if is_full else nullcontext():
        step = DapperStep([model["record"]], model=model)
    assert isinstance(step._reading.plan, ByFullEvaluation if is_full else ByOrder)
    return step


@cache
def discrete_step(statistic, other_factors):
    """A step, by statistic and by whether the model has other factors, too."""
    with pm.Model() as m:
        record = pm.Categorical("record", p=PRIOR, shape=3)
        pm.Laplace("s_dp", statistic(record), NOISE, observed=RELEASED)
        if other_factors:
            pm.Potential("total", -0.5 * (TOTAL - record.sum()) ** 2)
            pm.Categorical("answer", p=pt.as_tensor(TOLD)[record], observed=ANSWERS)
    return step_of(m, is_full=statistic is by_its_place)


CASES = pytest.mark.parametrize(
    "case",
    [
        # An order statistic as the maximum is.
        pytest.param((median, False), id="median", marks=pytest.mark.long),
        pytest.param((maximum, True), id="maximum and other factors", marks=pytest.mark.long),
        pytest.param((by_its_place, True), id="from all records"),
    ],
)


def invariance_error(step, statistic, other_factors):
    """Largest change that one sweep makes to the exact conditional posterior."""

    def log_mechanism(x):
        x = np.array(x)
        result = laplace.logpdf(RELEASED, STATISTICS[statistic](VALUES[x]), NOISE)
        if other_factors:
            result += -0.5 * (TOTAL - x.sum()) ** 2 + np.log(TOLD[x, ANSWERS]).sum()
        return float(result)

    posterior = conditional_posterior(PRIOR, log_mechanism, n_records=3)
    # Where records answer one by one, proposals heed the answers.
    laws = PRIOR * TOLD[:, ANSWERS].T if other_factors else np.tile(PRIOR, (3, 1))
    laws = laws / laws.sum(axis=1, keepdims=True)
    probabilities = laws[np.arange(3), posterior.states].prod(axis=1)
    matrix = transition_matrix(parts_of(step).decide, posterior.states, probabilities)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    return np.abs(posterior.probabilities @ matrix - posterior.probabilities).max()


@CASES
def test_a_sweep_leaves_the_posterior_invariant(case):
    assert invariance_error(discrete_step(*case), *case) < 1e-10


@CASES
def test_the_kernel_does_the_same_in_python(case):
    step = discrete_step(*case)
    assert_same_in_python(step, step.sweep.function, step._reading.model.initial_point())


def all_against_the_same_state(decide, records, proposals, log_uniforms, given):
    """Decide on each record as if all the others stayed as they were before the sweep."""
    accepted = np.zeros(len(log_uniforms), dtype=bool)
    for i in range(len(log_uniforms)):
        only = np.full(len(log_uniforms), np.inf)
        only[i] = log_uniforms[i]
        accepted[i] = decide(*records, *proposals, only, *given)[-2][i]
    kept = [np.where(accepted, new, old) for old, new in zip(records, proposals, strict=True)]
    return *kept, accepted, 0.0


def half_the_noise(decide, records, proposals, log_uniforms, given):
    """Decide as if the mechanism's log-density was twice what it is."""
    return decide(*records, *proposals, log_uniforms / 2, *given)


def mechanism_ignored(decide, records, proposals, log_uniforms, given):
    """Accept every proposal."""
    always = np.where(log_uniforms < 0, -np.inf, log_uniforms)
    return decide(*records, *proposals, always, *given)


FAULTS = [all_against_the_same_state, half_the_noise, mechanism_ignored]


@pytest.mark.parametrize("fault", FAULTS)
@CASES
def test_a_faulty_sweep_is_detected(case, fault):
    assert invariance_error(with_decide(discrete_step(*case), fault), *case) > 1e-3


# Continuous records: the noisy maximum of four normals --------------------------------------------
# In every run, decisions are those by sorting: records/kernels/test_order_sweep.py.

N = 4
MAXIMUM = 2.6


@pytest.fixture(scope="module")
def model():
    with pm.Model() as m:
        mu = pm.Normal("mu", 0, 1.5)
        record = pm.Normal("record", mu, 1, shape=N)
        pm.Normal("s_dp", record.max(), NOISE, observed=MAXIMUM)
    return m


@pytest.fixture(scope="module")
def step(model):
    return step_of(model)


@pytest.fixture(scope="module")
def exact():
    mu, highest = np.linspace(-7, 8, 901), np.linspace(-12, 14, 2601)
    law = norm.logpdf(highest, mu[:, None]) + (N - 1) * norm.logcdf(highest, mu[:, None])
    log_likelihood = logsumexp(law + norm.logpdf(MAXIMUM, highest, NOISE), axis=1)
    return {"mu": Tabulated(mu, norm.logpdf(mu, 0, 1.5) + log_likelihood)}


def run(model, step, exact):
    mean = Given([model["mu"]], regression(np.ones((N, 1)), 1.5), model=model)
    return compare(model, [step, mean], exact)


@pytest.mark.long
def test_mean_given_a_noisy_maximum(model, step, exact):
    assert_agrees(run(model, step, exact))


@pytest.mark.long
@pytest.mark.parametrize("fault", [half_the_noise, mechanism_ignored])
def test_a_faulty_maximum_is_detected(model, step, exact, fault):
    assert_disagrees(run(model, with_decide(step, fault), exact))
