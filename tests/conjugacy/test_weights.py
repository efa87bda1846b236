"""Weights of categories: which models have them, and their conditional."""

from contextlib import nullcontext

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.conjugacy.weights import WEIGHTS, categories_of
from pymc_dapper.graphs.errors import NotConjugateError
from pymc_dapper.graphs.evaluation import compile_in_python
from tests.conjugacy.judge import Judge, given_of
from tests.evaluated_in_python import evaluated_in_python

OBSERVED = np.array([0, 2, 1, 1, 0, 2, 2, 2])
BY_ROW = np.array([0, 1, 1, 0, -1, -2, 0, 1])


def one_table():
    w = pm.Gamma("w", 2.0, 3.0, shape=3)
    pm.Categorical("x", w / w.sum(), observed=OBSERVED)


def several_tables():
    w, v = pm.Exponential("w", 2.0, shape=3), pm.Gamma("v", [1.0, 2.0, 3.0], 1.0, shape=(2, 3))
    u = pm.Gamma("u", 2.0, 1.0, shape=(2, 2, 3))
    products = w * v[BY_ROW] * u[BY_ROW, OBSERVED % 2]
    pm.Categorical("x", products / products.sum(axis=1, keepdims=True), observed=OBSERVED)


def with_offsets():
    v, beta = pm.Gamma("v", 1.0, 1.0, shape=(2, 3)), pm.Normal("beta", shape=3)
    products = pt.exp(beta) * v[BY_ROW] * np.arange(1.0, 25).reshape(8, 3)
    pm.Categorical("x", products / products.sum(axis=-1)[:, None], observed=OBSERVED)


def in_two_variables():
    for name in "xy":
        w = pm.Gamma(f"w_{name}", 2.0, 3.0, dims="category")
        pm.Categorical(name, w / w.sum(), observed=OBSERVED)


def by_small_integers():
    """The table has more rows than these integers can number."""
    v = pm.Gamma("v", 2.0, 1.0, shape=(12, 15, 3))
    products = v[(11 - OBSERVED).astype("int8"), BY_ROW.astype("int8")]
    pm.Categorical("x", products / products.sum(axis=-1, keepdims=True), observed=OBSERVED)


READ = [one_table, several_tables, with_offsets, in_two_variables, by_small_integers]


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("write", READ)
def test_the_conditional_is_that_of_the_model(write):
    with pm.Model(coords={"category": range(3)}) as model:
        write()
    rvs = [x for x in model.free_RVs if categories_of(model, x)]
    step, judge = ConjugateStep(rvs, model=model), Judge(model)
    rng, point = np.random.default_rng(1), model.initial_point()
    for conditional in step._conditionals:
        [x] = conditional.children
        assert conditional.family is WEIGHTS
        assert all(categories_of(model, rv) == {x} for rv in conditional.rvs)
        names = [model.rvs_to_values[rv].name for rv in conditional.rvs]
        given = [point[v.name] for v in given_of(conditional)]
        parameters = compile_in_python(model, given_of(conditional), conditional.parameters)(*given)
        found, expected = [], []
        for _ in range(2):
            drawn = rng.gamma(2.0, size=sum(map(np.prod, conditional.shapes)))
            each = conditional.split(drawn)
            logs = {name: np.log(w) for name, w in zip(names, each, strict=True)}
            expected.append(judge({**point, **logs}))
            found.append(WEIGHTS.log_density(drawn, *parameters))
        assert found[1] - found[0] == pytest.approx(expected[1] - expected[0], rel=1e-9)


def twice():
    w = pm.Gamma("w", 2.0, 3.0, shape=(2, 3))
    products = w[BY_ROW] * w[1 - BY_ROW % 2]
    pm.Categorical("x", products / products.sum(axis=1, keepdims=True), observed=OBSERVED)


def another_sum():
    w, v = pm.Gamma("w", 2.0, 3.0, shape=3), pm.Gamma("v", 2.0, 3.0, shape=3)
    pm.Categorical("x", w / (w + v).sum() + v / (w + v).sum(), observed=OBSERVED)


def a_power():
    w = pm.Gamma("w", 2.0, 3.0, shape=3)
    pm.Categorical("x", w**2 / (w**2).sum(), observed=OBSERVED)


def seen_elsewhere():
    w = pm.Gamma("w", 2.0, 3.0, shape=3)
    pm.Categorical("x", w / w.sum(), observed=OBSERVED)
    pm.Poisson("y", w, observed=[1, 2, 3])


def a_single_choice():
    w = pm.Gamma("w", 2.0, 3.0, shape=3)
    pm.Categorical("x", w / w.sum(), observed=1)


def a_matrix():
    w = pm.Gamma("w", 2.0, 3.0, shape=3)
    pm.Categorical("x", w / w.sum(), observed=OBSERVED.reshape(4, 2))


def one_above_another():
    w = pm.Gamma("w", 2.0, 3.0, shape=3)
    v = pm.Gamma("v", 2.0, w, shape=3)
    pm.Categorical("x", w * v / (w * v).sum(), observed=OBSERVED)


OTHERWISE = [
    twice,
    another_sum,
    a_power,
    seen_elsewhere,
    a_single_choice,
    a_matrix,
    one_above_another,
]


@pytest.mark.parametrize("write", OTHERWISE)
def test_other_forms_are_refused(write):
    with pm.Model() as model:
        write()
    with pytest.raises(
        NotConjugateError,
        match=r"isn't a product of tables|not only the|isn't a vector|depends on another",
    ):
        ConjugateStep(model.free_RVs, model=model)


@pytest.mark.parametrize(
    "how", [evaluated_in_python, pytest.param(nullcontext, id="compiled", marks=pytest.mark.long)]
)
@pytest.mark.parametrize(
    ("name", "value", "told"),
    [("chosen", 3, "a category"), ("chosen", -1, "a category"), ("column", 2, "an index")],
)
def test_data_out_of_range_are_refused(name, value, told, how):
    """Compiled code would write beyond the weights, or take the next row, or nobody."""
    with how(), pm.Model() as model:
        chosen, column = (pm.Data(x, np.zeros(8, int)) for x in ("chosen", "column"))
        v = pm.Gamma("v", 2.0, 1.0, shape=(2, 2, 3))[np.zeros(8, int), column]
        pm.Categorical("x", v / v.sum(axis=-1, keepdims=True), observed=chosen)
        step = ConjugateStep(model.free_RVs)
        pm.set_data({name: np.full(8, value)})
        with pytest.raises(NotConjugateError, match=f"{told} in the data.* is out of range"):
            ConjugateStep(model.free_RVs)
        step.setup_chain(np.random.default_rng(1), 0, 1)
        with pytest.raises(
            (AssertionError, IndexError), match=f"{told} in the data.* is out of range"
        ):
            step.step(model.initial_point())


@pytest.mark.usefixtures("uncompiled")
def test_weights_of_people_behind_a_release_are_drawn_from_their_conditional():
    with pm.Model():
        w, v = pm.Exponential("w", 1.0, shape=2), pm.Exponential("v", 1.0, shape=(2, 2))
        a = pm.Categorical("a", w / w.sum(), shape=30)
        b = pm.Categorical("b", v[a] / v[a].sum(axis=1, keepdims=True), shape=30)
        noise = pmd.GaussianMechanism(2.0)
        noise.potential(
            "table", pmd.statistics.joint_counts([a, b], [2, 2]), released=np.full((2, 2), 7.5)
        )
        steps = pmd.assign_steps([a, b], progressbar=False)
    assert [type(x).__name__ for x in steps] == ["DapperStep", "ConjugateStep"]


@pytest.mark.usefixtures("uncompiled")
def test_other_probabilities_of_gammas_move_together_with_people():
    """They go to NUTS, and InterweaveStep moves them, too."""
    with pm.Model():
        w = pm.Gamma("w", 2.0, 1.0, shape=2)
        a = pm.Categorical("a", w**2 / (w**2).sum(), shape=30)
        counted = pmd.statistics.counts(a, 2)
        pmd.GaussianMechanism(2.0).potential("table", counted, released=np.full(2, 15.0))
        steps = pmd.assign_steps([a], progressbar=False)
    assert [type(x).__name__ for x in steps] == ["DapperStep", "NUTS", "InterweaveStep"]
