"""Records with answers of their own, integrated out: models that are just readable or just not."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors

import pymc_dapper as pmd
from pymc_dapper import DapperStep, InterweaveStep, assign_steps
from pymc_dapper.interweaving.reading.model import read_non_centred
from pymc_dapper.reading import read_model
from tests.evaluated_in_python import evaluated_in_python
from tests.moving_at_once import moving_at_once

N = 12


def log_density_at(model, parameter, value, records=("x",)):
    """Log-density of a proposed parameter with the noise held fixed; the model's own there."""
    point = model.initial_point()
    values = [model.rvs_to_values[model[name]] for name in records]
    [moved] = [model.rvs_to_values[model[parameter]]]
    reading = read_non_centred(model, [moved], values, point)
    given = [*reading.parameters, *reading.records, *reading.given, *reading.uniforms]
    at = [point[x.name] for x in given[: -len(reading.uniforms) or None]]
    at += [np.full(u.type.shape, 0.5) for u in reading.uniforms]
    with model:
        evaluate = pm.compile(
            [*given, *reading.proposed],
            reading.log_density,
            mode="FAST_COMPILE",
            on_unused_input="ignore",
        )
    return float(evaluate(*at, value)), float(
        model.compile_logp(mode="FAST_COMPILE")({**point, moved.name: value})
    )


def answered(p, truth=0.8, n=N, answers=None):
    x = pm.Bernoulli("x", p, shape=n)
    observed = np.ones(n, int) if answers is None else answers
    pm.Bernoulli("answer", pt.switch(pt.eq(x, 1), truth, 1 - truth), observed=observed)


def test_parameters_that_the_records_prior_excludes_are_impossible():
    with pm.Model() as integrated_out:
        answered(pm.Normal("p", 0.9, 0.3))
    with pm.Model() as followed:
        sigma = pm.Normal("sigma", 1, 2)
        pm.Potential("privacy", -(pm.Normal("x", 0, sigma, shape=N).sum() ** 2))
    for model, parameter, inside, outside in (
        (integrated_out, "p", 0.5, 1.2),
        (followed, "sigma", 0.5, -1.0),
    ):
        found, _ = log_density_at(model, parameter, np.array(inside))
        assert np.isfinite(found)
        assert log_density_at(model, parameter, np.array(outside)) == (-np.inf, -np.inf)


# Constants that single precision holds, a single record, and certain answers.
DESIGNS = [(0.75, 0.25, 200), (0.3, 0.0, N), (1.0, 0.3, 200), (0.8, 0.2, 1)]


@pytest.mark.parametrize(
    ("yes", "no", "n"),
    [DESIGNS[0], *(pytest.param(*each, marks=pytest.mark.long) for each in DESIGNS[1:])],
)
def test_designs_of_randomised_answers(yes, no, n):
    assert_moved(yes, no, n)


@pytest.mark.parametrize(("yes", "no", "n"), DESIGNS)
def test_designs_of_randomised_answers_in_python(yes, no, n):
    with evaluated_in_python():
        assert_moved(yes, no, min(n, N), n_steps=5)


def assert_moved(yes, no, n, n_steps=20):
    rng = np.random.default_rng(7)
    records = rng.random(n) < 0.5
    answers = (rng.random(n) < np.where(records, yes, no)).astype(int)
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        x = pm.Bernoulli("x", p, shape=n)
        pm.Bernoulli("answer", pt.switch(pt.eq(x, 1), yes, no), observed=answers)
        steps = moving_at_once(assign_steps([x]))
    point = model.initial_point()
    for step in steps:
        step.setup_chain(np.random.default_rng(1), tune=0, draws=n_steps)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(n_steps):
            for step in steps:
                point, _ = step.step(point)
    assert isinstance(steps[-1], InterweaveStep)
    assert np.isfinite(model.compile_logp(mode="FAST_COMPILE")(point))


def test_a_single_categorical_record_with_an_answer():
    with pm.Model():
        x = pm.Categorical("x", [0.2, 0.5, 0.3], shape=1)
        pm.Normal("y", x, 1.0, observed=[0.5])
        DapperStep([x])


@pytest.mark.usefixtures("uncompiled")
def test_a_likelihood_is_not_evaluated_beyond_a_records_own_support():
    lows = np.array([0, 3])
    with pm.Model():
        x = pm.DiscreteUniform("x", lows, lows + 2, shape=2)
        pm.Normal("y", pt.constant(np.array([1.0, 2.0, 4.0]))[x - lows], 1, observed=[0.5, 2.0])
        step = DapperStep([x])
    assert not step._reading.proposes_conditionally


def test_values_whose_parameters_are_invalid_are_not_integrated_over():
    # With q above 0.4, y_i can't be drawn where x_i is 1.
    answers = np.ones(N, int)
    with pm.Model() as model:
        q = pm.Uniform("q", 0, 1)
        x = pm.Bernoulli("x", 0.5, shape=N)
        y = pm.Bernoulli("y", q + 0.6 * x, shape=N)
        pm.Bernoulli("answer", 0.2 + 0.6 * y, observed=answers)
    at = {
        value: log_density_at(model, "q", np.log(value / (1 - value)), ("x", "y"))[0]
        for value in (0.3, 0.5, 0.7)
    }

    def exact(value):
        of_each = [0.5 * (0.2 + 0.6 * (value + 0.6 * x)) for x in (0, 1) if value + 0.6 * x <= 1]
        return N * np.log(sum(of_each)) + np.log(value * (1 - value))

    for value in (0.5, 0.7):
        assert at[value] - at[0.3] == pytest.approx(exact(value) - exact(0.3), rel=1e-9)


ANSWERS = np.array([[0, 1], [1, 1], [0, 1], [0, 0], [1, 1], [1, 1]])
KINDS = {
    "alike": (1.0, ANSWERS[:, 0]),
    "with a prior of its own": (np.arange(1, 7) / 7, ANSWERS[:, 0]),
    "in columns": (1.0, ANSWERS),
    "one answer for all": (1.0, np.ones(len(ANSWERS), int)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("uncompiled")
def test_records_are_integrated_over_also_where_several_are_alike(kind):
    share, answers = KINDS[kind]
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        x = pm.Bernoulli("x", p * share, shape=answers.shape)
        pmd.RandomizedResponse(0.8, categories=2).observe("answer", x, released=answers)

    def exact(value):
        yes = value * share * np.where(answers, 0.8, 0.2)
        no = (1 - value * share) * np.where(answers, 0.2, 0.8)
        return np.log(yes + no).sum() + np.log(value * (1 - value))

    at = {v: log_density_at(model, "p", np.log(v / (1 - v)))[0] for v in (0.2, 0.6, 0.9)}
    for value in (0.6, 0.9):
        assert at[value] - at[0.2] == pytest.approx(exact(value) - exact(0.2), rel=1e-9)


def test_alike_records_are_integrated_over_once():
    n = 1000
    with pm.Model() as model:
        answered(pm.Beta("p", 1, 1), n=n, answers=np.arange(n) % 2)
    total = read_model(model, [model.rvs_to_values[model["x"]]], model.initial_point())
    total = total.conditional.log_total((n,))
    sizes = {int(np.prod(x.type.shape)) for x in ancestors([total]) if None not in x.type.shape}
    assert 2 in sizes
    assert n not in sizes
