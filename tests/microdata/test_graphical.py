import numpy as np
import pytest

from pymc_dapper.microdata import graphical
from pymc_dapper.microdata.graphical import conditional_tables
from tests.microdata.releases import (
    ALL_PAIRS,
    CHAIN,
    assignments,
    likelihood_of_model,
    log_likelihood,
    release,
)

N = 2


def tables_of(model, seed=3):
    rng = np.random.default_rng(seed)
    return {
        x.name: rng.dirichlet([2.0, 2.0], size=(2,) * (x.ndim - 1))
        for x in model.free_RVs
        if x.name.startswith("p_")
    }


def joint(tables, dims):
    """Probabilities of the cells of a, b and c: the product of the tables that each is given by."""
    cells = np.ones((2, 2, 2))
    for name, table in tables.items():
        axes = ["abc".index(x) for x in dims[name]]
        in_order = np.transpose(table, np.argsort(axes))
        shape = [2 if k in axes else 1 for k in range(3)]
        cells = cells * in_order.reshape(shape)
    return cells.ravel()


@pytest.mark.parametrize("cliques", [CHAIN, ALL_PAIRS])
def test_a_model_is_what_enumeration_says(cliques):
    given = release(N, cliques)
    model = graphical(given, n=N)
    tables = tables_of(model)
    cells = joint(tables, model.named_vars_to_dims)
    assert cells.sum() == pytest.approx(1)
    states = assignments(N, 8)
    expected = np.sum(cells[states].prod(axis=1) * np.exp(log_likelihood(given, states)))
    assert likelihood_of_model(model, "abc", tables, N) == pytest.approx(expected, rel=1e-10)
    # A twin whose tables are looked up by another column.
    first, *_ = (x for x in tables if tables[x].ndim > 1)
    twin = {**tables, first: tables[first][::-1]}
    assert likelihood_of_model(model, "abc", twin, N) != pytest.approx(expected, rel=1e-3)


def test_columns_that_were_not_released_together_are_independent_given_others():
    sizes = dict.fromkeys("abcd", 2)
    chain = conditional_tables(sizes, [("a", "b"), ("b", "c"), ("c", "d")])
    assert sorted(map(len, chain.values())) == [0, 1, 1, 1]
    assert conditional_tables(sizes, [("a",), ("b",), ("c",), ("d",)]) == dict.fromkeys("dcba", ())


def test_each_released_table_is_within_one_conditional_table():
    rng = np.random.default_rng(1)
    columns = list("abcdefg")
    for _ in range(20):
        sizes = {x: int(rng.integers(2, 6)) for x in columns}
        cliques = [tuple(rng.choice(columns, rng.integers(1, 4), replace=False)) for _ in range(8)]
        found = conditional_tables(sizes, cliques)
        families = [{x, *given} for x, given in found.items()]
        assert all(any(set(clique) <= family for family in families) for clique in cliques)
        order = list(found)
        for x, given in found.items():
            assert all(order.index(y) < order.index(x) for y in given)
            # What it is given hangs together, so that no dependence is left out.
            assert not given or any(set(given) <= family for family in families)


def test_a_cycle_gets_a_chord():
    cycle = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    found = conditional_tables(dict.fromkeys("abcd", 2), cycle)
    assert sorted(map(len, found.values())) == [0, 1, 2, 2]
    # The chord is between the columns of few categories.
    found = conditional_tables({"a": 9, "b": 2, "c": 9, "d": 2}, cycle)
    assert not any({"a", "c"} <= {x, *given} for x, given in found.items())
