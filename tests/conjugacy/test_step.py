"""ConjugateStep as a step of PyMC's: protocol, seeds, shared data."""

from dataclasses import replace

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.step_methods.state import equal_dataclass_values
from pytensor.graph.basic import Constant

from pymc_dapper.conjugacy.conditional import read_conditionals
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.steps.building import building
from tests.admissions_and_tiny import N_APPLICANTS, admissions_model
from tests.conjugacy.judge import Judge, given_of
from tests.evaluated_in_python import evaluated_in_python

Y = np.array([0.3, -1.2, 0.8, 2.1])


@pytest.fixture(scope="module")
def model():
    with pm.Model() as m:
        x = pm.Data("x", [0, 1, 2, 1])
        y = pm.Data("y", Y)
        mu = pm.Normal("mu", 0, 2, shape=3)
        v = pm.InverseGamma("v", 2, 1)
        p = pm.Dirichlet("p", np.ones(3))
        pm.Categorical("group", p=p, observed=x)
        pm.Normal("outcome", mu[x], pt.sqrt(v), observed=y)
    return m


# Draws of a compiled step are compared with NumPy's below, and in test_conditional.py.
@pytest.fixture(scope="module")
def step(model):
    with evaluated_in_python():
        return ConjugateStep([model["mu"], model["v"], model["p"]], model=model)


@pytensor.config.change_flags(mode="FAST_COMPILE")
def sample(model, step, **kwargs):
    options = {"draws": 20, "tune": 10, "chains": 2, "cores": 1, "random_seed": 5} | kwargs
    with model:
        return pm.sample(
            step=[step], progressbar=False, compute_convergence_checks=False, **options
        )


def same_draws(a, b):
    return all(np.array_equal(a.posterior[name], b.posterior[name]) for name in ("mu", "v", "p"))


def steps_from(step, model, seed=7, n=1):
    step.setup_chain(np.random.default_rng(seed), tune=0, draws=n)
    point = model.initial_point()
    for _ in range(n):
        point, _ = step.step(point)
    return point


@pytest.fixture(scope="module")
def sequential(model, step):
    return sample(model, step)


@pytest.mark.parametrize("options", [{}, {"cores": 2}], ids=str)
def test_the_same_seed_gives_the_same_draws(model, step, sequential, options):
    assert same_draws(sample(model, step, **options), sequential)


def test_another_seed_gives_other_draws(model, step, sequential):
    assert not same_draws(sample(model, step, random_seed=6), sequential)


def test_chains_differ(sequential):
    first, second = sequential.posterior["p"].values
    assert not np.array_equal(first, second)


def test_a_step_does_not_change_the_point_it_is_given(model, step):
    step.setup_chain(np.random.default_rng(7), tune=0, draws=1)
    point = model.initial_point()
    before = {name: value.copy() for name, value in point.items()}
    new, stats = step.step(point)
    assert stats == [{}]
    assert new.keys() == point.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(point[name], value)
        assert not np.array_equal(new[name], value)
        assert isinstance(new[name], np.ndarray)
        assert (new[name].dtype, new[name].shape) == (value.dtype, value.shape)


def test_a_point_may_be_in_any_memory_layout(model):
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.5, shape=(3, 4))
        p = pm.Beta("p", 1, 1, shape=3)
        pm.Geometric("y", p[:, None], shape=(3, 4))
    step = ConjugateStep([p], model=model)
    point = model.initial_point()
    point["y"] = np.arange(1, 13).reshape(3, 4)
    draws = []
    for y in (point["y"], np.asfortranarray(point["y"])):
        step.setup_chain(np.random.default_rng(1), 0, 1)
        draws.append(step.step({**point, "y": y})[0]["p_logodds__"])
    np.testing.assert_array_equal(*draws)
    assert x is not p


def test_sampling_state_restores_a_draw_exactly(model, step):
    point = steps_from(step, model, n=3)
    saved = step.sampling_state
    first, _ = step.step(point)
    elsewhere, _ = step.step(point)
    assert not np.array_equal(elsewhere["mu"], first["mu"])
    step.sampling_state = saved
    assert equal_dataclass_values(step.sampling_state, saved)
    again, _ = step.step(point)
    for name in first:
        np.testing.assert_array_equal(again[name], first[name])


def test_a_pickled_step_draws_the_same(model):
    step = ConjugateStep([model["v"], model["p"]], model=model)  # compiled: that is what is pickled
    copy = cloudpickle.loads(cloudpickle.dumps(step))
    one, other = (steps_from(each, model, n=2) for each in (step, copy))
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def test_it_describes_itself(step):
    assert step.describe() == (
        "mu ~ Normal, given outcome\nv ~ InverseGamma, given outcome\np ~ Dirichlet, given group"
    )
    assert repr(step).startswith("<ConjugateStep: mu ~ Normal, given outcome; v ~ ")


@pytest.mark.usefixtures("in_python")
def test_value_variables_a_single_variable_and_the_context_are_accepted(model):
    with model:
        step = ConjugateStep(model.rvs_to_values[model["p"]])
    assert [value.name for value in step.vars] == ["p_simplex__"]


@pytest.mark.usefixtures("in_python")
def test_unblocked_variables_get_a_step_each():
    with pm.Model() as model:
        a, b = pm.Normal("a"), pm.Normal("b")
        pm.Normal("y", a + b, 1, observed=Y)
    assert repr(ConjugateStep([a, b], model=model)) == "<ConjugateStep: a, b ~ MvNormal, given y>"
    one_by_one = ConjugateStep([a, b], model=model, blocked=False)
    lines = [step.describe() for step in one_by_one.methods]
    assert lines == ["a ~ Normal, given y", "b ~ Normal, given y"]


def test_shared_data_are_read_again_when_a_chain_starts(model, step):
    before = steps_from(step, model)
    try:
        with model:
            pm.set_data({"x": [2, 2, 2, 2], "y": Y + 5})
        after = steps_from(step, model)
        # The same random numbers: the mean of the last group is where the new data are.
        assert after["mu"][2] > 3
        assert abs(before["mu"][2]) < 3
        judge = Judge(model)
        other = {**after, "mu": after["mu"] + [0.0, 0.0, 1.0]}
        [of_mu] = [x for x in step._conditionals if x.rvs[0].name == "mu"]
        data = [shared.get_value() for shared in of_mu.data]
        values = [after[x.name] for x in given_of(of_mu)]
        of_graph = compile_in_python(
            model, [*given_of(of_mu), *of_mu.data.values()], list(of_mu.parameters)
        )
        parameters = of_graph(*values, *data)
        ours = [of_mu.family.log_density(x["mu"], *parameters) for x in (after, other)]
        np.testing.assert_allclose(np.diff(ours), judge(other) - judge(after), rtol=1e-10)

        with model:
            pm.set_data({"x": [2, 2], "y": Y[:2]})
        with pytest.raises(ValueError, match=r"had shape \(4,\) when ConjugateStep for 'mu'"):
            steps_from(step, model)
    finally:
        with model:
            pm.set_data({"x": [0, 1, 2, 1], "y": Y})


def test_each_block_is_drawn_once_given_those_before_it():
    """What NumPy draws block by block."""
    with pm.Model() as model:
        scale = pm.Gamma("scale", 2, 1)
        v = pm.InverseGamma("v", 3, scale)
        mu = pm.Normal("mu", 0, 2)
        pm.Normal("y", mu, pt.sqrt(v), observed=Y)
    step = ConjugateStep([mu, v, scale], model=model)
    assert len(step._conditionals) == 3
    point = new = model.initial_point()
    step.setup_chain(np.random.default_rng(1), tune=0, draws=2)
    rng = np.random.default_rng(1)
    for _ in range(2):
        new, _ = step.step(new)
        for conditional in step._conditionals:
            at = [np.asarray(point[x.name]) for x in given_of(conditional)]
            parameters = compile_in_python(
                model, list(given_of(conditional)), list(conditional.parameters)
            )(*at)
            [theta] = conditional.split(conditional.family.draw(rng, *map(np.asarray, parameters)))
            [value] = conditional.values
            point = {**point, value.name: np.log(theta) if conditional.family.positive else theta}
        for name, expected in point.items():
            np.testing.assert_allclose(new[name], expected, rtol=1e-9)
    assert step.rng.bit_generator.state == rng.bit_generator.state


def test_parameters_of_one_kind_share_a_function():
    with pm.Model() as model:
        p = [pm.Beta(f"p{k}", 1, 1) for k in range(3)]
        for k, shape in enumerate((1000, 1000, 500)):
            pm.Bernoulli(f"x{k}", p[k], shape=shape)
    with building(own_mode=False):
        steps = [ConjugateStep([x], model=model) for x in p]
    functions = [step._draws.draw for step in steps]
    assert functions[0].jitted is functions[1].jitted is not functions[2].jitted
    assert functions[0] is not functions[1]  # each has its own generator
    point = {**model.initial_point(), "x0": np.zeros(1000, int), "x1": np.ones(1000, int)}
    low, high = (step.step(point)[0] for step in steps[:2])
    assert low["p0_logodds__"] < -3 < 3 < high["p1_logodds__"]


@pytest.fixture(scope="module")
def unequal_tables():
    """Three tables of probabilities, two of one shape: steps that share a function, and others."""
    rng, n = np.random.default_rng(1), 200
    with pm.Model() as model:
        group = pm.Categorical("group", pm.Dirichlet("share", np.ones(2)), shape=n)
        tables = []
        for k, size in enumerate((2, 3, 3)):
            p = pm.Dirichlet(f"p{k}", rng.gamma(2, size=(2, size)))
            pm.Categorical(f"x{k}", p[group], shape=n)
            tables.append(p)
    point = model.initial_point()
    point["group"] = rng.integers(2, size=n)
    for k, p in enumerate(tables):
        point[f"x{k}"] = rng.integers(p.type.shape[1], size=n)
    with building(own_mode=False):
        read = [(read_conditionals(model, [p]), [p]) for p in tables]
        steps = [ConjugateStep.of_reading(*each, model=model) for each in read]
        for step in steps:
            step.compile()
    return steps, [ConjugateStep([p], model=model) for p in tables], point


def drawn_by(step, point):
    step.setup_chain(np.random.default_rng(1), tune=0, draws=1)
    return step.step(point)[0][step.vars[0].name]


def test_tables_that_differ_in_constants_share_a_function(unequal_tables):
    """In shapes and in priors. Each is drawn as if it was alone."""
    steps, alone, point = unequal_tables
    assert len({id(step._draws.draw.jitted) for step in steps}) == 1
    assert len({id(step._draws.draw.jitted) for step in alone}) == len(alone)
    for one, other in zip(steps, alone, strict=True):
        draw = drawn_by(other, point)
        np.testing.assert_allclose(drawn_by(one, point), draw, rtol=1e-12)
        np.testing.assert_allclose(drawn_by(cloudpickle.loads(cloudpickle.dumps(one)), point), draw)


def test_each_table_is_drawn_with_its_own_constants(unequal_tables, monkeypatch):
    steps, alone, point = unequal_tables
    monkeypatch.setattr(steps[1]._draws, "constants", steps[2]._draws.constants)
    assert not np.allclose(drawn_by(steps[1], point), drawn_by(alone[1], point))


def test_their_iterations_are_compiled_calls_with_the_same_draws(unequal_tables):
    steps, _, point = unequal_tables
    for step in steps:
        [transition] = step.transitions
        given = [point[x] if isinstance(x, str) else x for x in transition.takes]
        [value] = transition.function(np.random.default_rng(1), *given)
        np.testing.assert_array_equal(value, drawn_by(step, point))


def test_a_family_without_a_kernel_is_drawn_in_python():
    """Some blocks of a step may be, and all draws are the same."""
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1)
        pm.Poisson("counts", rate, observed=[3, 5])
        p = pm.Beta("p", 1, 1)
        pm.Bernoulli("answers", p, observed=[0, 1, 1])
    in_code = ConjugateStep([rate, p], model=model)
    of_rate, of_p = in_code._conditionals
    family = replace(of_rate.family, kernel=None, draw=lambda rng, a, b: rng.standard_gamma(a) / b)
    conditionals = [replace(of_rate, family=family), of_p]
    in_python = ConjugateStep.of_reading(conditionals, [rate, p], model=model)
    in_python.compile()
    drawn = []
    for step in (in_code, in_python):
        step.setup_chain(np.random.default_rng(1), tune=0, draws=1)
        drawn.append(step.step(model.initial_point())[0])
    assert drawn[0].keys() == drawn[1].keys()
    for name, value in drawn[0].items():
        np.testing.assert_allclose(value, drawn[1][name], rtol=1e-12)
        assert not np.allclose(value, model.initial_point()[name])


def test_only_numba_modes_are_taken():
    model = admissions_model()
    with pytest.raises(ValueError, match="mode 'FAST_COMPILE' doesn't compile with numba"):
        ConjugateStep([model["p"]], model=model, compile_kwargs={"mode": "FAST_COMPILE"})


def test_no_array_as_long_as_the_records_is_compiled_in():
    """Such a constant is kept twice, by the graph and by what was compiled of it."""
    model = admissions_model()
    draws = ConjugateStep([model["p"]], model=model)._draws
    variables = draws.draw._function.maker.fgraph.variables
    constants = [x for x in variables if isinstance(x, Constant)]
    assert constants
    assert all(np.size(x.data) < N_APPLICANTS for x in constants)
