from itertools import product

import numpy as np
import pytest

import pymc_dapper as pmd
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.microdata import regressions, shares
from pymc_dapper.microdata.regressions import effects
from tests.evaluated_in_python import evaluated_in_python
from tests.microdata.releases import (
    ALL_PAIRS,
    CHAIN,
    assignments,
    log_likelihood,
    release,
)

N = 2
PEOPLE = (0, 1, 1, 0, 1), (1, 1, 0, 0, 1), (1, 0, 0, 1, 1)


def weights_of(model, seed=3):
    rng = np.random.default_rng(seed)
    free = [x for x in model.free_RVs if x.name.startswith("w_")]
    return {x.name: rng.gamma(2.0, size=(2,) * x.ndim) for x in free}


def joint(weights):
    """Probabilities of the cells of a, b and c, each column given those before it."""
    cells = np.ones((2, 2, 2))
    for at in product(range(2), repeat=3):
        for k, column in enumerate("abc"):
            products = weights[f"w_{column}"].copy()
            for before in "abc"[:k]:
                if f"w_{column}_{before}" in weights:
                    products *= weights[f"w_{column}_{before}"][at["abc".index(before)]]
            cells[at] *= products[at[k]] / products.sum()
    return cells.ravel()


def likelihood_of_model(model, weights):
    """Sum a model's density over all that two people may be, at given weights."""
    people = [model[f"person_{x}"] for x in "abc"]
    density = sum(x.sum() for x in model.logp(vars=[*people, *model.potentials], sum=False))
    function = model.compile_fn(density, inputs=model.value_vars, mode="FAST_COMPILE")
    values = [model.rvs_to_values[x].name for x in people]
    given = {model.rvs_to_values[model[x]].name: np.log(w) for x, w in weights.items()}
    states = (np.array(x).reshape(3, N) for x in product(range(2), repeat=3 * N))
    return sum(np.exp(function({**given, **dict(zip(values, x, strict=True))})) for x in states)


@pytest.mark.parametrize("cliques", [CHAIN, ALL_PAIRS])
def test_a_model_is_what_enumeration_says(cliques):
    given = release(N, cliques)
    model = regressions(given, n=N)
    weights = weights_of(model)
    assert ("w_c_a" in weights) == (cliques is ALL_PAIRS)
    cells = joint(weights)
    assert cells.sum() == pytest.approx(1)
    states = assignments(N, 8)
    expected = np.sum(cells[states].prod(axis=1) * np.exp(log_likelihood(given, states)))
    assert likelihood_of_model(model, weights) == pytest.approx(expected, rel=1e-10)
    # A twin whose effects are those of the other category.
    twin = {**weights, "w_b_a": weights["w_b_a"][::-1]}
    assert likelihood_of_model(model, twin) != pytest.approx(expected, rel=1e-3)


def test_a_column_is_given_what_it_was_released_with_before_it():
    released = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "c", "d"), ("d",)]
    assert effects("a", [], released) == []
    assert effects("b", ["a"], released) == [("a",)]
    assert effects("c", ["a", "b"], released) == [("a",), ("b",)]
    # The table of three has the pairs within it.
    assert effects("d", ["a", "b", "c"], [*released, ("d", "a")]) == [("a", "c")]


def test_columns_of_most_categories_come_first():
    noise = pmd.GaussianMechanism(1.0)
    model = regressions(pmd.Release(pmd.Query("q", np.ones((2, 4)), noise, ("x", "y"))), n=8)
    assert "w_x_y" in model.named_vars
    assert model.named_vars_to_dims["w_x_y"] == ("y", "x")


@pytest.mark.parametrize(("size", "names"), [(4, ["w_b_a", "w_b_a_"]), (2, ["w_b_a_", "w_b_a"])])
def test_weights_whose_names_would_be_the_same_have_two(size, names):
    noise = pmd.GaussianMechanism(1.0)
    pair = pmd.Query("q", np.full((2, 2), 2.0), noise, ("a", "b"))
    other = pmd.Query("r", np.full(size, 8.0 / size), noise, ("b_a",))
    model = regressions(pmd.Release([pair, other]), n=8)
    assert [model.named_vars_to_dims[name] for name in names] == [("b_a",), ("a", "b")]


@pytest.fixture(scope="module")
def sampled():
    model = regressions(release(30, ALL_PAIRS, sigma=3.0), n=30)
    with evaluated_in_python(), model:
        return model, pmd.sample(
            6, tune=6, chains=1, random_seed=1, progressbar=False, tabulate=False
        )


def test_shares_are_those_of_the_people(sampled):
    _, idata = sampled
    found = shares(idata, ["c", "a"])
    assert found.dims == ("chain", "draw", "c", "a")
    assert found.sum(["c", "a"]).values == pytest.approx(1)
    np.testing.assert_allclose(shares(idata, "b"), idata.posterior["share_a * b"].sum("a"))
    with pytest.raises(ValueError, match="no 'p_c'"):
        shares(idata, ["a", "b", "c"])


@pytest.mark.usefixtures("in_python")
def test_synthetic_people_have_the_columns_of_the_release(sampled):
    model, idata = sampled
    made = pmd.synthetic_data(idata, model, sets=2, random_seed=1)
    assert set(made[0].columns) == set("abc")
    assert len(made[0]) == 30


def test_shares_are_of_the_people_who_are_there():
    total = pmd.Query("total", 5.0, pmd.GaussianMechanism(1.0))
    model = regressions(pmd.Release([*release(5, CHAIN), total]))
    people = {x: np.array(values) for x, values in zip("abc", PEOPLE, strict=True)}
    room = model["person_a"].type.shape[0]
    values = {f"person_{x}": np.resize(v, room) for x, v in people.items()}
    names = [f"share_{' * '.join(x)}" for x in CHAIN]
    inputs = [model["n"], *(model[x] for x in values)]
    evaluate = compile_in_python(model, inputs, [model[name] for name in names])
    for n in (1, 4):
        for (first, second), share in zip(CHAIN, evaluate(n, *values.values()), strict=True):
            expected = np.zeros((2, 2))
            np.add.at(expected, (people[first][:n], people[second][:n]), 1 / n)
            np.testing.assert_allclose(share, expected)
