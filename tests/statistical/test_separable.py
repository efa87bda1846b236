"""Factors with one value per record: randomised response and noisy microdata.

Records don't interact here. Those with few possible values are drawn from their exact conditional
distribution given the answer; others are updated all at once.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import beta, laplace, norm

from pymc_dapper import DapperStep
from tests import broken
from tests.enumerate_sweep import transition_matrix
from tests.enumeration import conditional_posterior, dirichlet_posterior
from tests.evaluated_in_python import evaluated_in_python
from tests.quadrature import Tabulated
from tests.statistical.agreement import FEW, assert_agrees, assert_disagrees, compare
from tests.statistical.parameters import Given, regression
from tests.statistical.twins import with_decide, with_propose
from tests.sweep_parts import PythonFunction, broken_parts, parts_of

# Yes or no, told rightly with probability 3/4 -----------------------------------------------------

ANSWERS = np.array([1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1])


@pytest.fixture(scope="module")
def yes_no_model():
    with pm.Model() as m:
        p = pm.Beta("p", 2, 2)
        record = pm.Bernoulli("record", p, shape=len(ANSWERS))
        pm.Bernoulli("answer", p=0.25 + 0.5 * record, observed=ANSWERS)
    return m


@pytest.fixture(scope="module")
def yes_no_step(yes_no_model):
    return DapperStep([yes_no_model["record"]], model=yes_no_model)


@pytest.fixture(scope="module")
def exact_p():
    p = np.linspace(1e-9, 1 - 1e-9, 2001)
    yes = ANSWERS.sum()
    log_likelihood = yes * np.log(0.25 + 0.5 * p) + (len(ANSWERS) - yes) * np.log(0.75 - 0.5 * p)
    return {"p": Tabulated(p, beta.logpdf(p, 2, 2) + log_likelihood)}


def run_yes_no(model, step, exact, **kwargs):
    return compare(model, [step, Given([model["p"]], share, model=model)], exact, **kwargs)


def share(rng, point):
    yes, n = point["record"].sum(), len(ANSWERS)
    p = rng.beta(2 + yes, 2 + n - yes)
    return [np.log(p / (1 - p))]


@pytest.mark.long
def test_share_given_randomised_response(yes_no_model, yes_no_step, exact_p):
    assert_agrees(run_yes_no(yes_no_model, yes_no_step, exact_p))


@pytest.mark.long
def test_answers_ignored_are_told_apart(yes_no_model, yes_no_step, exact_p):
    twin = with_propose(yes_no_step, from_prior)
    assert_disagrees(run_yes_no(yes_no_model, twin, exact_p, draws=FEW))


def from_prior(propose, rng, log_odds):
    return [rng.binomial(1, expit(log_odds), len(ANSWERS))]


def expit(log_odds):
    return 1 / (1 + np.exp(-log_odds))


@pytest.mark.long
def test_answers_that_count_twice_are_told_apart(yes_no_model, yes_no_step, exact_p):
    # Proposed by what the answers say, and then decided on by what the answers say.
    rng = np.random.default_rng(12)

    def by_the_answers_again(decide, records, proposals, log_uniforms, given):
        probability = 0.25 + 0.5 * np.stack([records[0], proposals[0]])
        present, proposed = np.where(ANSWERS == 1, probability, 1 - probability)
        accepted = -rng.standard_exponential(len(ANSWERS)) < np.log(proposed / present)
        kept = [np.where(accepted, proposals[0], records[0])]
        return *kept, accepted, decide(*kept, *kept, log_uniforms, *given)[-1]

    twin = with_decide(yes_no_step, by_the_answers_again)
    assert_disagrees(run_yes_no(yes_no_model, twin, exact_p, draws=FEW))


def deviations_from_conditional(step, draws=1_000):
    """How far proposals lie from p(x_i | p, answer_i), in standard errors, at several p."""
    rng = np.random.default_rng(5)
    z = []
    for p in (0.1, 0.4, 0.85):
        log_odds = np.array(np.log(p / (1 - p)))
        propose = parts_of(step, PythonFunction).propose
        x = np.array([propose(rng, log_odds)[0] for _ in range(draws)])
        prior = np.array([1 - p, p])
        told = np.array([0.25, 0.75])
        likelihood = np.where(ANSWERS[:, None] == 1, told, 1 - told)
        exact = (prior * likelihood / (likelihood @ prior)[:, None])[:, 1]
        z.append((x.mean(axis=0) - exact) / np.sqrt(exact * (1 - exact) / draws))
        # Independent of each other: correlations of n draws have standard error n^-1/2.
        z.append(np.corrcoef(x.T)[np.triu_indices(len(ANSWERS), k=1)] * np.sqrt(draws))
    return np.abs(np.concatenate(z))


@pytest.fixture(scope="module")
def yes_no_in_python(yes_no_model):
    with evaluated_in_python():
        return DapperStep([yes_no_model["record"]], model=yes_no_model)


def test_records_are_drawn_from_their_exact_conditional(yes_no_in_python):
    assert deviations_from_conditional(yes_no_in_python).max() < 4.5


def test_draws_from_the_prior_are_not(yes_no_in_python):
    twin = with_propose(yes_no_in_python, from_prior, PythonFunction)
    assert deviations_from_conditional(twin).max() > 9


# Four cells, told rightly with probability 3/4 ----------------------------------------------------

CELL_ANSWERS = np.array([0, 3, 0, 1, 0, 3, 1, 0])
MATRIX = np.full((4, 4), 1 / 12) + np.eye(4) * (3 / 4 - 1 / 12)


@pytest.fixture(scope="module")
def cell_model():
    with pm.Model() as m:
        p = pm.Dirichlet("p", np.ones(4))
        record = pm.Categorical("record", p=p, shape=len(CELL_ANSWERS))
        pm.Categorical("answer", p=pt.as_tensor(MATRIX)[record], observed=CELL_ANSWERS)
    return m


@pytest.fixture(scope="module")
def cell_step(cell_model):
    return DapperStep([cell_model["record"]], model=cell_model)


class Cell:
    """Marginal of one cell's probability, by its distribution function."""

    def __init__(self, posterior, k):
        self.mean, self.sd = posterior.mean[k], posterior.sd[k]
        self._cdf = lambda x: posterior.cdf(k, x)

    def quantile(self, q):
        return brentq(lambda x: self._cdf(x) - q, 0.0, 1.0)


@pytest.fixture(scope="module")
def exact_cells():
    log_told = np.log(MATRIX)
    posterior = dirichlet_posterior(
        np.ones(4), len(CELL_ANSWERS), lambda x: log_told[list(x), CELL_ANSWERS].sum()
    )
    return {"p": [Cell(posterior, k) for k in range(4)]}


# In every run, yes and no are drawn from their exact conditional (above).
@pytest.mark.long
def test_cell_probabilities_given_randomised_response(cell_model, cell_step, exact_cells):
    # NUTS takes p.
    assert_agrees(compare(cell_model, [cell_step], exact_cells, draws=4_000))


def cell_deviations(model, step, draws=20_000):
    """How far the cells' proposals lie from p(x_i | p, answer_i), in standard errors."""
    rng = np.random.default_rng(7)
    p = np.array([0.5, 0.2, 0.05, 0.25])
    value = model.rvs_to_transforms[model["p"]].forward(p).eval(mode="FAST_COMPILE")
    x = np.array([parts_of(step).propose(rng, value)[0] for _ in range(draws)])
    exact = p * MATRIX[:, CELL_ANSWERS].T
    exact /= exact.sum(axis=1, keepdims=True)
    shares = (x[:, :, None] == np.arange(4)).mean(axis=0)
    return np.abs((shares - exact) / np.sqrt(exact * (1 - exact) / draws))


@pytest.mark.long
def test_cells_are_drawn_from_their_exact_conditional(cell_model, cell_step):
    assert cell_deviations(cell_model, cell_step).max() < 4.5


@pytest.mark.long
def test_cells_drawn_for_the_next_answer_are_not(cell_model, cell_step):
    twin = with_propose(cell_step, next_one)
    assert cell_deviations(cell_model, twin).max() > 4.5


def next_one(propose, rng, *given):
    return [np.roll(propose(rng, *given)[0], 1)]


@pytest.mark.long
def test_cells_taken_as_told_are_told_apart(cell_model, cell_step, exact_cells):
    twin = with_propose(cell_step, lambda propose, rng, *given: [CELL_ANSWERS.copy()])
    assert_disagrees(compare(cell_model, [twin], exact_cells, draws=FEW))


# Randomised response and a noisy total: conditional draws, then a decision ------------------------

PRIOR = np.array([0.6, 0.4])
TOLD = np.array([[0.75, 0.25], [0.25, 0.75]])  # by record, then answer
THREE_ANSWERS = np.array([1, 0, 1])


@pytest.fixture(scope="module")
def three_model():
    with pm.Model() as m:
        record = pm.Bernoulli("record", PRIOR[1], shape=3)
        pm.Bernoulli("answer", p=pt.as_tensor(TOLD[:, 1])[record], observed=THREE_ANSWERS)
        pm.Laplace("s_dp", (np.array([1.0, 2.0, 4.0]) * record).sum(), 1.5, observed=2.2)
    return m


def invariance_error(decide, proposal_laws):
    """Largest change that a sweep makes to the exact posterior, proposing by these laws."""
    posterior = conditional_posterior(
        PRIOR,
        lambda x: (
            np.log(TOLD[list(x), THREE_ANSWERS]).sum()
            + laplace.logpdf(2.2, np.dot([1.0, 2.0, 4.0], x), 1.5)
        ),
        n_records=3,
    )
    probabilities = proposal_laws[np.arange(3), posterior.states].prod(axis=1)
    matrix = transition_matrix(decide, posterior.states, probabilities)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    return np.abs(posterior.probabilities @ matrix - posterior.probabilities).max()


CONDITIONAL = PRIOR * TOLD[:, THREE_ANSWERS].T
CONDITIONAL /= CONDITIONAL.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def three_step(three_model):
    with evaluated_in_python():
        return DapperStep([three_model["record"]], model=three_model)


def test_conditional_draws_with_a_noisy_total_leave_the_posterior_invariant(three_step):
    assert invariance_error(parts_of(three_step, PythonFunction).decide, CONDITIONAL) < 1e-10


def test_conditional_draws_are_what_is_proposed(three_step):
    # The matrix above takes the proposals' law for granted.
    rng, draws = np.random.default_rng(6), 2_000
    propose = parts_of(three_step, PythonFunction).propose
    x = np.array([propose(rng)[0] for _ in range(draws)])
    exact = CONDITIONAL[:, 1]
    assert np.all(np.abs(x.mean(axis=0) - exact) < 4.5 * np.sqrt(exact * (1 - exact) / draws))


def test_proposals_from_the_prior_do_not(three_step):
    assert (
        invariance_error(parts_of(three_step, PythonFunction).decide, np.tile(PRIOR, (3, 1))) > 1e-3
    )


def test_answers_that_decide_once_more_do_not(three_step):
    def again(decide, records, proposals, log_uniforms, given):
        told = np.log(TOLD[:, THREE_ANSWERS].T)
        rows = np.arange(3)
        gain = told[rows, proposals[0]] - told[rows, records[0]]
        return decide(*records, *proposals, log_uniforms - gain, *given)

    twin = with_decide(three_step, again, PythonFunction)
    assert invariance_error(parts_of(twin).decide, CONDITIONAL) > 1e-3


@pytest.mark.parametrize("fault", [broken.STALE_SUMS, broken.UPSIDE_DOWN, broken.ACCEPT_ALL])
def test_a_broken_sweep_of_conditional_draws_is_detected(three_step, fault):
    decide = broken_parts(three_step._reading, fault).decide
    assert invariance_error(decide, CONDITIONAL) > 1e-3


# Two variables for each record, and an answer that depends on both --------------------------------

Y_GIVEN_X = np.array([0.2, 0.7])
SAME = np.array([1, 0, 1])  # whether x and y are the same, told rightly with probability 0.9


@pytest.fixture(scope="module")
def pair_step():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.3, shape=3)
        y = pm.Bernoulli("y", pt.as_tensor(Y_GIVEN_X)[x], shape=3)
        pm.Bernoulli("answer", pt.switch(pt.eq(x, y), 0.9, 0.1), observed=SAME)
    with evaluated_in_python():
        return DapperStep([y, x], model=model)


def pair_deviations(step, draws=1_000):
    """How far proposals of (x_i, y_i) lie from p(x_i, y_i | answer_i), in standard errors."""
    rng = np.random.default_rng(8)
    propose = parts_of(step, PythonFunction).propose
    y, x = np.moveaxis([propose(rng) for _ in range(draws)], 1, 0)
    prior = np.array([0.7, 0.3])[:, None] * np.column_stack([1 - Y_GIVEN_X, Y_GIVEN_X])
    exact = prior * np.where(np.eye(2) == SAME[:, None, None], 0.9, 0.1)
    exact /= exact.sum(axis=(1, 2), keepdims=True)
    shares = np.array([[((x == a) & (y == b)).mean(axis=0) for b in (0, 1)] for a in (0, 1)])
    error = np.moveaxis(shares, -1, 0) - exact
    return np.abs(error / np.sqrt(exact * (1 - exact) / draws))


def test_records_given_records_are_drawn_together_from_their_exact_conditional(pair_step):
    assert pair_deviations(pair_step).max() < 4.5


def test_records_drawn_apart_from_each_other_are_not(pair_step):
    def apart(propose, rng):
        return propose(rng)[0], propose(rng)[1]

    twin = with_propose(pair_step, apart, PythonFunction)
    assert pair_deviations(twin).max() > 4.5


# Noisy microdata of continuous records: updated all at once ---------------------------------------

MICRODATA = np.array([2.3, -0.4, 1.9, 3.8, 0.7, 1.1])
MICRO_NOISE = 0.8


@pytest.fixture(scope="module")
def micro_model():
    with pm.Model() as m:
        mu = pm.Normal("mu", 0, 2)
        record = pm.Normal("record", mu, 1, shape=len(MICRODATA))
        pm.Laplace("answers", record, MICRO_NOISE, observed=MICRODATA)
    return m


@pytest.fixture(scope="module")
def micro_step(micro_model):
    return DapperStep([micro_model["record"]], model=micro_model)


@pytest.fixture(scope="module")
def exact_micro():
    mu = np.linspace(-8, 10, 901)
    x = np.linspace(-12, 14, 2601)  # with nodes where the Laplace densities have their kinks
    joint = [
        norm.logpdf(x, mu[:, None], 1) + laplace.logpdf(answer, x, MICRO_NOISE)
        for answer in MICRODATA
    ]
    marginal = [logsumexp(log_density, axis=1) for log_density in joint]
    log_posterior = norm.logpdf(mu, 0, 2) + sum(marginal)
    records = [
        Tabulated(x, logsumexp((log_posterior - total)[:, None] + log_density, axis=0))
        for log_density, total in zip(joint, marginal, strict=True)
    ]
    return {"mu": Tabulated(mu, log_posterior), "record": records}


def run_micro(model, step, exact, **kwargs):
    mean = Given([model["mu"]], regression(np.ones((len(MICRODATA), 1)), 2.0), model=model)
    return compare(model, [step, mean], exact, **kwargs)


@pytest.mark.long
def test_mean_and_records_given_noisy_microdata(micro_model, micro_step, exact_micro):
    assert_agrees(run_micro(micro_model, micro_step, exact_micro, draws=12_000, seed=1))


# In every run: the case "separable, decided on" of exactness, with this fault.
@pytest.mark.long
def test_acceptance_upside_down_is_detected(micro_model, micro_step, exact_micro):
    def upside_down(decide, records, proposals, log_uniforms, given):
        *_, accepted, logp = decide(*proposals, *records, log_uniforms, *given)
        return np.where(accepted, proposals[0], records[0]), accepted, logp

    twin = with_decide(micro_step, upside_down)
    assert_disagrees(run_micro(micro_model, twin, exact_micro, draws=FEW))


@pytest.mark.long
def test_microdata_ignored_are_told_apart(micro_model, micro_step, exact_micro):
    def ignored(decide, records, proposals, log_uniforms, given):
        return decide(*records, *proposals, np.full_like(log_uniforms, -np.inf), *given)

    twin = with_decide(micro_step, ignored)
    assert_disagrees(run_micro(micro_model, twin, exact_micro, draws=FEW))


@pytest.mark.long
def test_answers_of_the_next_record_are_told_apart(micro_model, micro_step, exact_micro):
    def next_record(decide, records, proposals, log_uniforms, given):
        _, accepted, logp = decide(
            *np.roll([*records, *proposals], 1, axis=1), log_uniforms, *given
        )
        accepted = np.roll(accepted, -1)
        return np.where(accepted, proposals[0], records[0]), accepted, logp

    twin = with_decide(micro_step, next_record)
    assert_disagrees(run_micro(micro_model, twin, exact_micro, draws=FEW))
