"""FunctionStep: a user's own draws, checked."""

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from pymc.exceptions import SamplingError
from scipy import stats

from pymc_dapper import DapperStep, FunctionStep, ReadingError
from tests.quadrature import Tabulated
from tests.statistical.agreement import FEW, assert_agrees, assert_disagrees, compare

N, RELEASED, SCALE = 12, 4.2, 1.5


@pytest.fixture(scope="module")
def model():
    """A proportion from a noisy count; p is transformed, the records are not."""
    with pm.Model() as model:
        p = pm.Beta("p", 3, 3)
        record = pm.Bernoulli("record", p, shape=N)
        pm.Potential("privacy", -pm.math.abs(RELEASED - record.sum()) / SCALE)
    return model


def draw_p(rng, point):
    successes = point["record"].sum()
    return {"p": rng.beta(3 + successes, 3 + N - successes)}


@pytest.fixture(scope="module")
def sweep(model):
    return DapperStep([model["record"]], model=model)


def step_of(model, draw, **kwargs):
    return FunctionStep([model["p"]], draw, model=model, **kwargs)


def posterior():
    """Exact: the count is marginalised, and p is a mixture of Betas."""
    counts = np.arange(N + 1)
    log_weights = stats.betabinom.logpmf(counts, N, 3, 3) - np.abs(RELEASED - counts) / SCALE
    weights = np.exp(log_weights - log_weights.max())
    grid = np.linspace(0, 1, 20_001)[1:-1]
    densities = stats.beta.pdf(grid[:, None], 3 + counts, 3 + N - counts)
    return Tabulated(grid, np.log(densities @ (weights / weights.sum())))


def test_with_dapper_step_it_gives_the_exact_posterior(model, sweep):
    steps = [sweep, step_of(model, draw_p)]
    assert_agrees(compare(model, steps, {"p": posterior()}, draws=2_000))


def test_a_draw_from_another_distribution_is_noticed(model, sweep):
    def flat_prior(rng, point):
        successes = point["record"].sum()
        return {"p": rng.beta(1 + successes, 1 + N - successes)}

    steps = [sweep, step_of(model, flat_prior)]
    assert_disagrees(compare(model, steps, {"p": posterior()}, draws=FEW))


def test_the_function_sees_natural_values_and_cannot_change_them(model):
    seen = {}

    def look(rng, point):
        seen.update(point)
        with pytest.raises(ValueError, match="read-only"):
            point["record"][0] = 1
        return {"p": 0.25}

    step = step_of(model, look)
    point = {"p_logodds__": np.array(np.log(3.0)), "record": np.ones(N, dtype=int)}
    new, _ = step.step(point)
    assert seen.keys() == {"p", "record"}
    assert seen["p"] == pytest.approx(0.75)
    np.testing.assert_allclose(new["p_logodds__"], np.log(1 / 3))
    assert point["p_logodds__"] == np.log(3.0)
    assert point["record"].flags.writeable


def test_the_chains_generator_is_the_only_randomness(model):
    step = step_of(model, draw_p)
    point = model.initial_point()

    def drawn(seed):
        step.setup_chain(np.random.default_rng(seed), 0, 1)
        return step.step(point)[0]["p_logodds__"]

    assert drawn(1) == drawn(1) != drawn(2)


@pytest.mark.usefixtures("in_python")
def test_several_variables_whose_bounds_depend_on_each_other():
    with pm.Model() as model:
        low = pm.Uniform("low", 0, 1)
        x = pm.Uniform("x", low, 2, shape=3)
    step = FunctionStep(
        [low, x], lambda rng, point: {"low": 0.5, "x": [0.6, 1.0, 1.9]}, model=model
    )
    values, _ = step.step(model.initial_point())
    natural = model.compile_fn(model.replace_rvs_by_values([low, x]), mode="FAST_COMPILE")(values)
    np.testing.assert_allclose(natural[0], 0.5)
    np.testing.assert_allclose(natural[1], [0.6, 1.0, 1.9])


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda rng, point: 0.5, "returned float, not a dict"),
        (lambda rng, point: {"q": 0.5}, r"returned values for \['q'\], where it draws \['p'\]"),
        (
            lambda rng, point: {"p": [0.5, 0.5]},
            r"'p' of shape \(2,\), where the",
        ),
        (lambda rng, point: {"p": "half"}, "must be real numbers"),
        (lambda rng, point: {"p": 1.5}, "drew 'p' = 1.5, where the log-density of 'p' is -inf"),
        (lambda rng, point: {"p": np.nan}, "drew 'p' = nan"),
        (lambda rng, point: {"p": 1.0}, "drew 'p' = 1.0"),
        (lambda rng, point: {"p": point["theta"]}, "raised KeyError: 'theta'"),
    ],
)
def test_what_is_no_draw_is_refused_before_sampling(model, draw, message):
    with pytest.raises(ValueError, match=f"tried at the initial point.*{message}"):
        step_of(model, draw)


def test_a_fault_in_mid_run_says_which_value_where(model):
    calls = 0

    def later(rng, point):
        nonlocal calls
        calls += 1
        return {"p": 0.5 if calls < 3 else -1.0}

    step = step_of(model, later)
    point, _ = step.step(model.initial_point())
    with pytest.raises(SamplingError, match=r"for 'p' drew 'p' = -1.0, where the log-density of"):
        step.step(point)


@pytest.mark.usefixtures("in_python")
def test_a_draw_that_the_data_exclude_is_refused():
    with pm.Model() as model:
        rate = pm.Exponential("rate", 1)
        pm.Uniform("y", 0, rate, observed=[0.2, 0.9])
    with pytest.raises(
        ValueError, match=r"drew 'rate' = 0.5, where the log-density of 'y' is -inf"
    ):
        FunctionStep([rate], lambda rng, point: {"rate": 0.5}, model=model)


@pytest.mark.usefixtures("in_python")
def test_whole_numbers_must_be_whole():
    with pm.Model() as model:
        k = pm.Poisson("k", 3)
        pm.Normal("y", k, 1, observed=2.0)
    step = FunctionStep([k], lambda rng, point: {"k": 2.0}, model=model)
    assert step.step(model.initial_point())[0]["k"].dtype == np.int64
    with pytest.raises(ValueError, match=r"drew 'k' = 2.5, where the model has whole numbers"):
        FunctionStep([k], lambda rng, point: {"k": 2.5}, model=model)


def test_arguments_are_checked(model):
    with pytest.raises(TypeError, match="draw must be a function"):
        step_of(model, 3)
    with pytest.raises(ValueError, match="blocked must be True"):
        step_of(model, draw_p, blocked=False)
    with pytest.raises(ReadingError, match="'privacy' is computed from other variables"):
        FunctionStep([model["privacy"]], draw_p, model=model)


@pytest.mark.usefixtures("in_python")
def test_new_shared_data_take_effect():
    with pm.Model() as model:
        bound = pm.Data("bound", 1.0)
        x = pm.Uniform("x", 0, bound)
        pm.Normal("y", x, 1, observed=0.0)
    step = FunctionStep([x], lambda rng, point: {"x": 0.8}, model=model)
    with model:
        pm.set_data({"bound": 0.5})
    step.setup_chain(np.random.default_rng(1), 0, 1)
    with pytest.raises(SamplingError, match="log-density of 'x' is -inf"):
        step.step(model.initial_point())


def test_a_pickled_step_draws_the_same(model):
    step = step_of(model, draw_p)
    copy = cloudpickle.loads(cloudpickle.dumps(step))
    point = model.initial_point()
    for each in (step, copy):
        each.setup_chain(np.random.default_rng(5), 0, 1)
    assert step.step(point)[0]["p_logodds__"] == copy.step(point)[0]["p_logodds__"]
