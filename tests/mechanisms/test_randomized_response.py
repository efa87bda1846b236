"""Randomised response: likelihood, budget, answers, guarantee, and exact draws of its records."""

from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.stats import beta, chi2

from pymc_dapper import DapperStep
from pymc_dapper.budget import ZCDP, ApproxDP, PureDP, compose
from pymc_dapper.mechanisms.randomized_response import RandomizedResponse
from pymc_dapper.reading import SeparableFactor, read_model
from tests.evaluated_in_python import evaluated_in_python
from tests.monte_carlo import smallest_ess, z_scores
from tests.quadrature import Tabulated

MECHANISMS = [
    RandomizedResponse(0.75, 2),
    RandomizedResponse(0.75, 4),
    RandomizedResponse(0.2, 7),
]


def log_table(mechanism):
    """Log-probability of each answer (column) for each true category (row)."""
    k = np.arange(mechanism.categories)
    return mechanism.logp(k, k[:, None]).eval(mode="FAST_COMPILE")


# Likelihood -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_probabilities_are_normalised_and_the_true_category_has_the_one_named(mechanism):
    table = np.exp(log_table(mechanism))
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(np.diag(table), mechanism.keep_probability, rtol=1e-14)
    changed = table[~np.eye(mechanism.categories, dtype=bool)]
    np.testing.assert_allclose(changed, changed[0], rtol=1e-14)


def test_what_is_no_category_is_impossible():
    mechanism = RandomizedResponse(0.75, 3)
    released = np.array([-1.0, 0.0, 0.5, 2.0, 3.0])
    logp = mechanism.logp(released, np.zeros(5, dtype=int)).eval(mode="FAST_COMPILE")
    np.testing.assert_array_equal(np.isfinite(logp), [False, True, False, True, False])
    truth = np.array([-1, 0, 2, 3])
    logp = mechanism.logp(np.zeros(4, dtype=int), truth).eval(mode="FAST_COMPILE")
    np.testing.assert_array_equal(np.isfinite(logp), [False, True, True, False])


def test_true_categories_may_be_of_any_integer_type_but_not_floats():
    mechanism = RandomizedResponse(0.75, 2)
    truth = pt.vector("truth", shape=(3,))
    logp = mechanism.logp([1, 0, 1], truth > 0).eval({truth: [0.5, 0.5, -0.5]}, mode="FAST_COMPILE")
    np.testing.assert_allclose(logp, np.log([0.75, 0.25, 0.25]))
    with pytest.raises(TypeError, match=r"astype\('int64'\)"):
        mechanism.logp([1, 0, 1], truth)


# Answers ----------------------------------------------------------------------------------------

TRUTH = np.repeat(np.arange(4), 5_000)


def chi_square(answers, mechanism):
    """Distance of the answers' counts, by true category, from the law, and its 1e-5 quantile."""
    k = mechanism.categories
    counts = np.bincount(k * TRUTH + answers, minlength=k * k).reshape(k, k)
    expected = np.exp(log_table(mechanism)) * counts.sum(axis=1, keepdims=True)
    return ((counts - expected) ** 2 / expected).sum(), chi2.isf(1e-5, k * (k - 1))


@pytest.mark.parametrize("how", ["release", "predictive"])
def test_answers_follow_the_probabilities(how):
    mechanism = RandomizedResponse(0.6, 4)
    if how == "release":
        answers = mechanism.release(TRUTH, random_seed=3)
    else:
        released = mechanism._random(pt.as_tensor(TRUTH), None)
        answers = pm.draw(released, random_seed=3, mode="FAST_COMPILE")
    assert answers.dtype == np.int64
    distance, limit = chi_square(answers, mechanism)
    assert distance < limit
    for factor in (0.7, 1.3):
        distance, limit = chi_square(answers, RandomizedResponse(0.6 * factor, 4))
        assert distance > 5 * limit


def test_the_same_seed_gives_the_same_answers():
    first, second, other = (MECHANISMS[1].release(TRUTH, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("truth", [[0, 2], [-1, 1], [0.5, 1]])
def test_only_categories_are_answered_for(truth):
    with pytest.raises(ValueError, match=r"categories 0, ..., 1"):
        MECHANISMS[0].release(truth)
    if np.asarray(truth).dtype.kind == "i":
        answers = MECHANISMS[0]._random(pt.as_tensor(truth), None)
        with pytest.raises(AssertionError, match=r"true categories must be 0, ..., 1"):
            pm.draw(answers, mode="FAST_COMPILE")


# Budgets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("categories", [2, 3, 50])
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, np.log(3), 8.0])
def test_calibration_and_loss_are_inverse(epsilon, categories):
    budget = PureDP(epsilon)
    mechanism = RandomizedResponse.calibrate(budget, categories=categories)
    keep = np.exp(epsilon) / (np.exp(epsilon) + categories - 1)
    assert mechanism.keep_probability == pytest.approx(keep, rel=1e-14)
    assert mechanism.privacy_loss().epsilon == pytest.approx(epsilon, rel=1e-11)
    assert mechanism.budget is budget
    assert str(budget) in repr(mechanism)


def test_the_papers_answers_cost_log_3_each_and_two_attributes_twice_that():
    sex = status = RandomizedResponse(3 / 4, categories=2)
    total = compose(sex.privacy_loss(), status.privacy_loss())
    assert total.epsilon == pytest.approx(2 * np.log(3))
    # By the definition, with both attributes as one release.
    pair = np.add.outer(log_table(sex), log_table(status)).transpose(0, 2, 1, 3).reshape(4, 4)
    assert largest_log_ratio(pair) == pytest.approx(total.epsilon)


def largest_log_ratio(table):
    """Over all answers and all pairs of true categories."""
    return max(np.abs(a - b).max() for a, b in product(table, table))


@pytest.mark.parametrize("categories", [2, 3, 6])
def test_pure_privacy_bounds_the_ratio_of_probabilities(categories):
    mechanism = RandomizedResponse.calibrate(PureDP(0.9), categories=categories)
    assert largest_log_ratio(log_table(mechanism)) == pytest.approx(0.9, rel=1e-12)
    # A change of the answer is the noise: 30 % less often.
    too_rarely = 1 - 0.7 * (1 - mechanism.keep_probability)
    spendthrift = RandomizedResponse(too_rarely, categories)
    ratio = largest_log_ratio(log_table(spendthrift))
    assert ratio > 1.3
    assert spendthrift.privacy_loss().epsilon == pytest.approx(ratio, rel=1e-12)


@pytest.mark.parametrize(("budget", "enough"), [(ZCDP(0.02), "0.2"), (ApproxDP(1.5, 1e-6), "1.5")])
def test_weaker_budgets_are_refused_with_the_pure_one_that_is_enough(budget, enough):
    with pytest.raises(TypeError, match=f"RandomizedResponse needs a PureDP .*{enough}"):
        RandomizedResponse.calibrate(budget, categories=2)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RandomizedResponse(0.5, 2), ValueError, "for any true value"),
        (lambda: RandomizedResponse(1 / 49, 49), ValueError, "for any true value"),
        (lambda: RandomizedResponse(0.2, 4), ValueError, "uniform redraw .* it is 0.85"),
        (lambda: RandomizedResponse(0.25, 2), ValueError, "changed to another one, 0.75"),
        (lambda: RandomizedResponse(1, 2), ValueError, "the true values themselves"),
        (lambda: RandomizedResponse(75, 2), ValueError, "between 1/2 and 1, got 75"),
        (lambda: RandomizedResponse(np.nan, 2), ValueError, "must be a finite number, got nan"),
        (lambda: RandomizedResponse("0.75", 2), TypeError, "must be a finite number"),
        (lambda: RandomizedResponse(True, 2), TypeError, "must be a finite number"),
        (lambda: RandomizedResponse(0.75, 1), ValueError, "at least 2"),
        (lambda: RandomizedResponse(0.75, 2.0), TypeError, "must be a whole number"),
        (lambda: RandomizedResponse.calibrate(PureDP(1), 1), ValueError, "at least 2"),
        (lambda: RandomizedResponse.calibrate(PureDP(80), 2), ValueError, "must be below 1"),
        (lambda: RandomizedResponse.calibrate(PureDP(1e-16), 2), ValueError, "above 1/2"),
    ],
)
def test_nonsense_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


# In a model -------------------------------------------------------------------------------------

ANSWERS = np.array([1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1])
KEEP = 0.75


def yes_no_model(how):
    mechanism = RandomizedResponse(KEEP, 2)
    with pm.Model() as model:
        p = pm.Beta("p", 2, 2)
        record = pm.Bernoulli("record", p, shape=len(ANSWERS))
        if how == "potential":
            mechanism.potential("answer", record, released=ANSWERS)
        else:
            mechanism.observe("answer", record, released=ANSWERS)
    return model


@pytest.fixture(scope="module")
def model():
    return yes_no_model("potential")


@pytest.fixture(scope="module")
def step(model):
    with evaluated_in_python():
        return DapperStep([model["record"]], model=model)


def test_the_step_reads_one_factor_per_record_and_draws_exactly(model, step):
    np.testing.assert_array_equal(model["answer_released"].get_value(), ANSWERS)
    description = step.describe()
    assert "by an exact draw from their prior times the separable factors" in description
    assert "answer  separable  one value per record" in description


def test_proposals_are_draws_given_the_answers(step):
    rng, p, draws = np.random.default_rng(8), 0.4, 4_000
    given = [np.array(np.log(p / (1 - p))), *step._given.data.values]
    records = [np.zeros(len(ANSWERS), dtype=int)]  # their present values don't matter
    x = np.array([step.sweep.update(rng, records, given)[0] for _ in range(draws)])
    yes = p * np.where(ANSWERS == 1, KEEP, 1 - KEEP)
    no = (1 - p) * np.where(ANSWERS == 1, 1 - KEEP, KEEP)
    exact = yes / (yes + no)
    z = (x.mean(axis=0) - exact) / np.sqrt(exact * (1 - exact) / draws)
    assert np.abs(z).max() < 4.5


def exact_p(keep):
    """Posterior of p with records marginalised."""
    p = np.linspace(1e-9, 1 - 1e-9, 2001)
    says_yes = p * keep + (1 - p) * (1 - keep)
    yes = ANSWERS.sum()
    log_likelihood = yes * np.log(says_yes) + (len(ANSWERS) - yes) * np.log1p(-says_yes)
    return Tabulated(p, beta.logpdf(p, 2, 2) + log_likelihood)


@pytest.mark.long  # what draws the records is compared with their exact conditional above
def test_the_posterior_is_exact(model, step):
    with model:
        draws = pm.sample(
            draws=5_000,
            tune=300,
            chains=2,
            cores=1,
            step=[step, pm.Slice([model["p"]])],
            var_names=["p"],
            random_seed=12,
            progressbar=False,
        ).posterior["p"]
    assert smallest_ess(draws) > 1_000
    z, twin = z_scores(draws, exact_p(KEEP)), z_scores(draws, exact_p(0.7 * KEEP))
    assert max(map(abs, z.values())) < 4
    assert max(map(abs, twin.values())) > 8


def test_two_attributes_of_a_record_are_two_factors():
    sex = status = RandomizedResponse(KEEP, 2)
    with pm.Model() as cells:
        record = pm.Categorical("record", np.ones(4) / 4, shape=3)
        sex.potential("sex", record // 2, released=[1, 0, 0])
        status.potential("status", record % 2, released=[1, 1, 0])
    reading = read_model(cells, [cells.rvs_to_values[record]], cells.initial_point())
    assert [type(factor) for factor in reading.factors] == [SeparableFactor, SeparableFactor]
    assert reading.proposes_conditionally
    total = cells.compile_logp(vars=cells.potentials, mode="FAST_COMPILE")
    assert total({"record": np.array([3, 0, 2])}) == pytest.approx(np.log(0.75**4 * 0.25**2))


def test_observed_answers_have_the_same_log_density_and_can_be_predicted(model):
    observed = yes_no_model("observed")
    point = model.initial_point()
    expected = model.compile_logp(mode="FAST_COMPILE")(point)
    actual = observed.compile_logp(mode="FAST_COMPILE")(point)
    assert actual == pytest.approx(expected, rel=1e-14)
    with observed:
        prior = pm.sample_prior_predictive(
            500, random_seed=1, compile_kwargs={"mode": "FAST_COMPILE"}
        )
    answers, truth = prior.prior_predictive["answer"].values, prior.prior["record"].values
    assert answers.dtype == np.int64
    assert answers.shape == (1, 500, len(ANSWERS))
    kept = np.mean(answers == truth)
    assert abs(kept - KEEP) < 4 * np.sqrt(KEEP * (1 - KEEP) / answers.size)


@pytest.mark.parametrize(
    ("released", "message"),
    [
        ([0, 1, 2, 3], r"'answer': answers are categories 0, ..., 2, but 3 was released"),
        ([0, 1, -1, 2], "but -1 was released: 1 of 4"),
        ([0, 1, 0.5, 2], "releases integers"),
        ([0, 1, np.nan, 2], "finite numbers"),
        ([0, 1, 2], r"has shape \(3,\), where the mechanism releases shape \(4,\)"),
    ],
)
@pytest.mark.parametrize("how", ["potential", "observe"])
def test_impossible_answers_are_refused(how, released, message):
    with pm.Model():
        record = pm.Categorical("record", np.ones(3) / 3, shape=4)
        with pytest.raises(ValueError, match=message):
            getattr(RandomizedResponse(0.75, 3), how)("answer", record, released=released)


def test_there_is_no_budget_for_added_records():
    budget = PureDP(1, neighbours="add_remove")
    with pytest.raises(ValueError, match="each record has its answer, and so their number is"):
        RandomizedResponse.calibrate(budget, 3)
