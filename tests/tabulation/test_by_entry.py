"""Records that depend on others, integrated out given these."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.special import softmax

import pymc_dapper as pmd
from pymc_dapper.tabulation import by_entry
from pymc_dapper.tabulation.by_entry import last_of, read_by_entry
from pymc_dapper.tabulation.choice import table_if_cheaper
from pymc_dapper.tabulation.errors import TabulationError

N, K, CLASSES = 5, 3, 2
ANSWERS = np.array([[0, 1, 2], [2, 2, 0], [0, 1, 2], [1, 1, 1], [2, 0, 0]])
KEPT = np.where(np.eye(3), 0.7, 0.15)
"""The law of an answer, given the true category."""


def classes(n=N, answers=ANSWERS, *, columns=False):
    """Three categories of each person, whose probabilities depend on a class and an ability."""
    with pm.Model() as model:
        w = pm.Dirichlet("w", np.ones(CLASSES))
        ability = pm.Normal("ability", 0, 1, shape=n)
        level = pm.Normal("level", 0, 1, shape=(CLASSES, K, 3))
        z = pm.Categorical("z", w, shape=n)
        logits = level[z] + ability[:, None, None] * np.arange(3)
        mechanism = pmd.RandomizedResponse(0.7, categories=3)
        if not columns:
            x = pm.Categorical("x", logit_p=logits, shape=(n, K))
            mechanism.observe("answer", x, released=answers)
            return model
        for k in range(K):
            x = pm.Categorical(f"x{k}", logit_p=logits[:, k], shape=n)
            mechanism.potential(f"answer{k}", x, released=answers[:, k])
    return model


def log_likelihood(w, ability, level):
    """Sum over the class and the categories of each person."""
    found = 0.0
    for a, answers in zip(ability, ANSWERS, strict=True):
        p = softmax(level + a * np.arange(3), axis=-1)
        found += np.log(w @ np.prod([p[:, k] @ KEPT[:, answers[k]] for k in range(K)], axis=0))
    return found


def evaluated(model, point):
    [likelihood] = [x for x in model.potentials if hasattr(x.tag, "of_answers")]
    inputs = [model[name] for name in point]
    function = model.compile_fn(
        likelihood.sum(), inputs=inputs, mode="FAST_COMPILE", point_fn=False
    )
    return function(*point.values())


@pytest.fixture
def point():
    rng = np.random.default_rng(3)
    level = rng.normal(size=(CLASSES, K, 3))
    return {"w": np.array([0.3, 0.7]), "ability": rng.normal(size=N), "level": level}


@pytest.mark.parametrize("columns", [False, True])
def test_classes_and_answers_are_summed_over(columns, point):
    tabulated = pmd.tabulate(classes(columns=columns))
    assert [rv.name for rv in tabulated.free_RVs] == ["w", "ability", "level"]
    assert evaluated(tabulated, point) == pytest.approx(log_likelihood(**point), rel=1e-12)


def test_a_fault_is_found_before_sampling(monkeypatch, point):
    real = by_entry.conditional_law

    def of_other_answers(records, priors, answers, values, possible):
        return real(records, priors, [0.9 * x for x in answers], values, possible)

    monkeypatch.setattr(by_entry, "conditional_law", of_other_answers)
    with pytest.raises(TabulationError, match="can't stand for the records 'x'"):
        pmd.tabulate(classes())
    monkeypatch.setattr("pymc_dapper.tabulation.model.compare", lambda *_: None)
    assert abs(evaluated(pmd.tabulate(classes()), point) - log_likelihood(**point)) > 0.01


def test_impossible_parameters_stay_impossible(point):
    def written(high):
        with pm.Model() as model:
            z = pm.Bernoulli("z", 0.5, shape=4)
            x = pm.Bernoulli("x", pm.Flat("low") + high * z, shape=4)
            pmd.RandomizedResponse(0.7, categories=2).observe("answer", x, released=[0, 1, 1, 0])
        return pmd.tabulate(model)

    assert evaluated(written(0.5), {"low": np.array(0.1)}) == pytest.approx(
        2 * np.log(0.5 * (0.1 * 0.3 + 0.9 * 0.7) + 0.5 * (0.6 * 0.3 + 0.4 * 0.7))
        + 2 * np.log(0.5 * (0.1 * 0.7 + 0.9 * 0.3) + 0.5 * (0.6 * 0.7 + 0.4 * 0.3))
    )
    # Of the class 1, no record is possible.
    assert evaluated(written(1.5), {"low": np.array(0.1)}) == pytest.approx(
        2 * np.log(0.5 * (0.1 * 0.3 + 0.9 * 0.7)) + 2 * np.log(0.5 * (0.1 * 0.7 + 0.9 * 0.3))
    )


def test_what_else_sees_entries_is_refused():
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.5, shape=4)
        x = pm.Bernoulli("x", 0.2 + 0.5 * z, shape=4)
        y = pm.Bernoulli("y", 0.2 + 0.5 * x, shape=4)
        pm.Potential("sum", -1.0 * y.sum())
    assert last_of([z, x, y]) is y
    assert last_of([z, x]) is x
    assert last_of([z, y]) is y
    assert last_of([z]) is None
    with pytest.raises(TabulationError, match="entries of 'y' aren't seen each by itself"):
        read_by_entry(model, y)
    with pytest.raises(TabulationError, match="'y' depends on 'x'"):
        read_by_entry(model, x)


def test_people_of_classes_are_integrated_out_by_themselves():
    answers = np.random.default_rng(0).integers(0, 3, (400, K))
    table = table_if_cheaper(classes(400, answers), None, ())
    assert (table.counts, table.names, table.factors) == ([], "'z', 'x'", ["answer"])
    assert table.of_people == ["ability"]


def test_a_class_that_is_counted_keeps_its_answers_in_the_table():
    with pm.Model() as model:
        z = pm.Bernoulli("z", pm.Beta("p", 2, 2), shape=6)
        x = pm.Bernoulli("x", pt.as_tensor([[0.2, 0.4], [0.7, 0.9]])[z], shape=(6, 2))
        mechanism = pmd.RandomizedResponse(0.7, categories=2)
        mechanism.observe("answer", x, released=np.array([[0, 1], [1, 1]] * 3))
        pmd.GaussianMechanism(1.0).potential("total", z.sum(), released=2.5)
    tabulated = pmd.tabulate(model)
    assert [rv.name for rv in tabulated.free_RVs] == ["p", "z_count"]
    assert tabulated["z_count"].eval(mode="FAST_COMPILE").shape == (2,)
