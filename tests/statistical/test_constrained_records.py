"""Records that PyMC transforms: proposed in their own space, kept in that of their value variable.

In most models, a function of the records with Laplace noise is released that
follows Gamma(shape, rate) in total: the exact posterior of the rate is an integral over that total.
"""

from functools import cache
from math import exp

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import Interval, ordered
from scipy.special import expit, logit, logsumexp
from scipy.stats import binom, gamma, kstest, laplace, norm

from pymc_dapper import DapperStep
from pymc_dapper.reading import read_model
from tests import broken
from tests.evaluated_in_python import evaluated_in_python
from tests.quadrature import Normal, Tabulated
from tests.statistical.agreement import FEW, assert_agrees, assert_disagrees, compare
from tests.statistical.parameters import Given, slice_sample
from tests.statistical.twins import with_decide, with_propose
from tests.sweep_parts import PythonFunction, take_apart

N = 6
NOISE = 1.5
RELEASED = 4.2


def exponential(rate):
    return pm.Exponential("record", rate, shape=N).sum()


def gamma_two(rate):
    return pm.Gamma("record", 2, rate, shape=N).sum()


def half_normal(rate):
    return (pm.HalfNormal("record", 1 / pt.sqrt(2 * rate), shape=N) ** 2).sum()


def beta_power(rate):
    return -pt.log(pm.Beta("record", rate, 1, shape=N)).sum()


def dirichlet_rows(rate):
    a = pt.stack([rate, 0.4, 0.6])
    return -pt.log(pm.Dirichlet("record", a, shape=(N, 3))[:, 0]).sum()


SHAPES = {
    exponential: N,
    gamma_two: 2 * N,
    half_normal: N / 2,
    beta_power: N,
    dirichlet_rows: N,
}


def model_of_rate(total):
    with pm.Model() as m:
        rate = pm.Gamma("rate", 2, 1)
        pm.Laplace("s_dp", total(rate), NOISE, observed=RELEASED)
    return m


@cache
def exact_rate(shape):
    rate = np.linspace(1e-9, 16, 1601)
    # An even grid with a node where the Laplace density has its kink.
    total = np.linspace(0, 16 * RELEASED, 16 * 210 + 1)[1:]
    law = gamma.logpdf(total, shape, scale=1 / rate[:, None])
    log_likelihood = logsumexp(law + laplace.logpdf(RELEASED, total, NOISE), axis=1)
    return Tabulated(rate, gamma.logpdf(rate, 2) + log_likelihood)


def total_of(total, value):
    """What is released of records as the chain keeps them, but for the noise."""
    if total is dirichlet_rows:
        value = np.column_stack([value, -value.sum(axis=-1)])
        return (logsumexp(value, axis=-1) - value[:, 0]).sum()
    if total is beta_power:
        return np.logaddexp(0, -value).sum()
    return np.exp(2 * value if total is half_normal else value).sum()


def run(model, step, exact, total=exponential, **kwargs):
    """The total follows Gamma(shape, rate), so the rate given it is a gamma variable, too."""
    [value] = step.vars

    def rate(rng, point):
        given = rng.gamma(2 + SHAPES[total]) / (1 + total_of(total, point[value.name]))
        return [np.log(given)]

    return compare(
        model, [step, Given([model["rate"]], rate, model=model)], {"rate": exact}, **kwargs
    )


@pytest.fixture(scope="module")
def model():
    return model_of_rate(exponential)


@pytest.fixture(scope="module")
def step(model):
    return DapperStep([model["record"]], model=model)


@pytest.mark.long
def test_rate_of_records_kept_as_logarithms_given_a_noisy_total(model, step):
    assert_agrees(run(model, step, exact_rate(N)))


# In every run, what is proposed for them is compared with their prior (below), and what is decided
# with the model, in records/compiled/test_op.py.
@pytest.mark.long
@pytest.mark.parametrize("total", [gamma_two, half_normal, beta_power, dirichlet_rows])
def test_rate_of_other_transformed_records_given_a_noisy_total(total):
    model = model_of_rate(total)
    step = DapperStep([model["record"]], model=model)
    assert_agrees(run(model, step, exact_rate(SHAPES[total]), total))


def proposals(model, log_parameter, draws=300):
    record = [model.rvs_to_values[model["record"]]]
    reading = read_model(model, record, model.initial_point())
    propose, rng = take_apart(reading, function=PythonFunction).propose, np.random.default_rng(2)
    # A generator each: in Python, the function leaves its input as it is.
    return [propose(each, np.array(log_parameter))[0] for each in rng.spawn(draws)]


def p_value_of_proposals(total, change=None, rate=1.7):
    """P-value of totals of proposals, which follow Gamma(shape, rate)."""
    proposed = proposals(model_of_rate(total), np.log(rate))
    totals = [total_of(total, value if change is None else change(value)) for value in proposed]
    return kstest(totals, gamma(SHAPES[total], scale=1 / rate).cdf).pvalue


@pytest.mark.parametrize("total", SHAPES)
def test_records_are_proposed_from_their_prior(total):
    assert p_value_of_proposals(total) > 1e-3
    # As they are before the transform.
    natural = expit if total is beta_power else np.exp
    assert p_value_of_proposals(total, natural) < 1e-6


@pytest.mark.long
def test_proposals_written_without_the_transform_are_told_apart(model, step):
    def untransformed(propose, rng, *given):
        [log_record] = propose(rng, *given)
        return [np.exp(log_record)]

    twin = with_propose(step, untransformed)
    assert_disagrees(run(model, twin, exact_rate(N), draws=FEW))


@pytest.mark.long
def test_a_jacobian_that_decides_on_proposals_is_detected(model, step):
    # It belongs to the prior in the value variable's space, and cancels with it.
    def with_jacobian(decide, records, proposals, log_uniforms, given):
        return decide(*records, *proposals, log_uniforms - (proposals[0] - records[0]), *given)

    twin = with_decide(step, with_jacobian)
    assert_disagrees(run(model, twin, exact_rate(N), draws=FEW))


@pytest.mark.long
def test_another_noise_is_detected(model):
    step = broken.broken_step(broken.FLATTENED)([model["record"]], model=model)
    assert_disagrees(run(model, step, exact_rate(N)))


# A log-normal's logarithms have a normal total ----------------------------------------------------


@pytest.mark.long
def test_log_normal_records():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2)
        record = pm.LogNormal("record", mu, 1.2, shape=N)
        pm.Normal("s_dp", pt.log(record).sum(), 3, observed=RELEASED)
    precision = 1 / 2**2 + N**2 / (N * 1.2**2 + 3**2)
    exact = Normal(RELEASED * N / (N * 1.2**2 + 3**2) / precision, precision**-0.5)
    steps = [DapperStep([record], model=model), pm.Slice([mu], model=model)]
    assert_agrees(compare(model, steps, {"mu": exact}))


# Uniform records up to an unknown bound: the transform itself depends on a parameter -------------


UNIFORM_N = 4
UNIFORM_RELEASED = 6.3


@pytest.fixture(scope="module")
def uniform_model():
    with pm.Model() as m:
        upper = pm.Gamma("upper", 4, 1)
        record = pm.Uniform("record", 0, upper, shape=UNIFORM_N)
        pm.Normal("s_dp", record.sum(), 1.0, observed=UNIFORM_RELEASED)
    return m


@pytest.fixture(scope="module")
def uniform_step(uniform_model):
    return DapperStep([uniform_model["record"]], model=uniform_model)


def exact_upper():
    # The total of four standard uniforms is a cubic spline (Irwin 1927, Hall 1927).
    total = np.linspace(0, 4, 2001)
    knots = np.arange(5)
    signs = np.array([1, -4, 6, -4, 1])
    density = (signs * np.clip(total[:, None] - knots, 0, None) ** 3).sum(axis=1) / 6
    upper = np.linspace(1e-9, 25, 2501)
    noise = norm.pdf(UNIFORM_RELEASED, upper[:, None] * total, 1.0)
    return Tabulated(upper, gamma.logpdf(upper, 4) + np.log(noise @ density))


def draw_upper(rng, point):
    total = expit(point["record_interval__"]).sum()

    def log_density(v):
        return 4 * v - exp(v) - (UNIFORM_RELEASED - exp(v) * total) ** 2 / 2

    return [slice_sample(rng, float(point["upper_log__"]), log_density, 1.0)]


def run_uniform(model, step, draws=8_000):
    return compare(
        model,
        [step, Given([model["upper"]], draw_upper, model=model)],
        {"upper": exact_upper()},
        draws=draws,
    )


@pytest.mark.long
def test_uniform_records_up_to_an_unknown_bound(uniform_model, uniform_step):
    assert_agrees(run_uniform(uniform_model, uniform_step))


def at_start(model, logits, log_upper):
    """Drawn at the present bound, but transformed as if the bound was still that at the start."""
    start = model.initial_point()[model.rvs_to_values[model["upper"]].name]
    return logit(np.clip(np.exp(log_upper - start) * expit(logits), 1e-9, 1 - 1e-9))


@pytest.mark.long
def test_a_transform_with_the_bound_at_the_start_is_detected(uniform_model, uniform_step):
    def moved(propose, rng, log_upper):
        [logits] = propose(rng, log_upper)
        return [at_start(uniform_model, logits, log_upper)]

    twin = with_propose(uniform_step, moved)
    assert_disagrees(run_uniform(uniform_model, twin, draws=FEW))


def test_uniform_records_are_proposed_up_to_the_present_bound(uniform_model):
    """In every run; and with the twin above, what the posterior is in long ones."""
    log_upper = np.log(5.0)
    logits = np.ravel(proposals(uniform_model, log_upper, draws=100))
    assert kstest(expit(logits), "uniform").pvalue > 1e-3
    shares = expit(at_start(uniform_model, logits, log_upper))
    assert kstest(shares, "uniform").pvalue < 1e-6


# A transform that isn't the prior's own cuts the prior off ---------------------------------------


CUT_N = 20


@pytest.fixture(scope="module")
def cut_step():
    # Normal records, kept positive: a record is above 1 with probability 2 (1 - Phi(1)).
    with pm.Model() as model:
        record = pm.Normal(
            "record", 0, 1, shape=CUT_N, transform=Interval(0, None), initval=np.ones(CUT_N)
        )
        pm.Normal("s_dp", (record > 1).sum(), 1.5, observed=9.0)
    with evaluated_in_python():
        return DapperStep([record], model=model)


def z_of_count(step, sweeps=2_000):
    """How far the number of records above 1 lies from its exact mean, in standard errors."""
    k = np.arange(CUT_N + 1)
    weights = binom.pmf(k, CUT_N, 2 * norm.sf(1)) * norm.pdf(9.0, k, 1.5)
    exact = (k * weights).sum() / weights.sum()
    step.setup_chain(np.random.default_rng(5), tune=0, draws=sweeps)
    point, counts = {"record_interval__": np.zeros(CUT_N)}, []
    for _ in range(sweeps):
        point, _ = step.step(point)
        counts.append((np.exp(point["record_interval__"]) > 1).sum())
    assert np.all(np.isfinite(point["record_interval__"]))
    batches = np.reshape(counts, (100, -1)).mean(axis=1)
    return abs(batches.mean() - exact) / (batches.std(ddof=1) / np.sqrt(len(batches)))


def test_draws_outside_of_a_transform_are_impossible(cut_step):
    assert z_of_count(cut_step) < 4


def test_draws_moved_to_the_inside_are_told_apart(cut_step):
    def moved(propose, rng, *given):
        [value] = propose(rng, *given)
        return [np.where(np.isnan(value), -3.0, value)]

    assert z_of_count(with_propose(cut_step, moved, PythonFunction), sweeps=1_000) > 8


def ends_of_a_beta():
    record = pm.Beta("record", 0.1, 0.1, shape=50)
    return record, record.sum()


def rows_in_order():
    start = np.tile([0.0, 1.0], (50, 1))
    record = pm.Normal("record", 0, 1, shape=(50, 2), transform=ordered, initval=start)
    return record, record[:, 0].sum()  # finite even where the second entry is nan


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("records", [ends_of_a_beta, rows_in_order])
def test_a_chain_never_leaves_what_its_values_can_reach(records):
    with pm.Model() as model:
        record, statistic = records()
        pm.Laplace("s_dp", statistic, 100.0, observed=25.0)
    step = DapperStep([record], model=model)
    point = model.initial_point()
    step.setup_chain(np.random.default_rng(0), tune=0, draws=50)
    propose = take_apart(step._reading, function=PythonFunction).propose
    lost = 0
    for _ in range(50):
        [value] = propose(step.rng)
        lost += np.count_nonzero(~np.isfinite(value))
        point, _ = step.step(point)
    assert lost > 10
    assert np.isfinite(model.compile_logp(mode="FAST_COMPILE")(point))


def test_a_draw_without_a_value_is_not_taken_from_an_impossible_state_either():
    with pm.Model() as model:
        x = pm.Exponential("x", 1, shape=3)
        y = pm.Normal("y", x, 1, shape=3)
        pm.Potential("impossible", pt.switch((x + y).sum() > -np.inf, -np.inf, 0.0))
    reading = read_model(model, model.value_vars, model.initial_point())
    records = [np.zeros(3), np.zeros(3)]
    proposals = [np.array([1.0, np.nan, -np.inf]), np.ones(3)]
    *new, accepted, _ = take_apart(reading, function=PythonFunction).decide(
        *records, *proposals, np.full(3, -1.0)
    )
    assert accepted.tolist() == [True, False, False]
    np.testing.assert_array_equal(new, [[1, 0, 0], [1, 0, 0]])
