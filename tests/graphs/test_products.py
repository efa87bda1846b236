"""Probabilities that are normalised products of tables, and draws by them."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.elemwise import Elemwise

from pymc_dapper.graphs.noise import with_randomness
from pymc_dapper.graphs.products import (
    ChosenByProducts,
    ChosenByRows,
    chosen_by_rows,
    joined,
    lookups_of,
    rows_looked_up,
)
from tests.kernels.test_products import AXES, INDICES, LENGTHS

N = 40
FIRST, SECOND = np.arange(N) % 2 - 1, np.arange(N) % 4
IN_PYTHON = {"mode": "FAST_COMPILE"}


def table(name, *shape):
    return pt.exp(pt.tensor(name, shape=shape))


def normalised(products):
    return products / products.sum(axis=-1, keepdims=True)


def three_tables():
    return normalised(table("u", 3) * table("v", 2, 3)[FIRST] * table("w", 2, 4, 3)[FIRST, SECOND])


def divided_by_a_total_with_an_axis():
    products = table("v", 2, 3)[FIRST] * table("u", 3)
    return products / products.sum(axis=1)[:, None]


def rows_of_one_table():
    return pt.special.softmax(table("w", 2, 4, 3), axis=-1)[FIRST, SECOND]


WRITTEN = {
    three_tables: ChosenByProducts,
    divided_by_a_total_with_an_axis: ChosenByProducts,
    rows_of_one_table: ChosenByRows,
}


@pytest.mark.parametrize(("write", "by"), WRITTEN.items())
def test_draws_by_tables_have_the_probabilities_of_the_model(write, by):
    """At uniform numbers that lie evenly; each category's share is off by 2 of them at most."""
    p = write()
    randomness, [drawn] = with_randomness([pm.Categorical.dist(p, shape=N)])
    ops = [node.op for node in io_toposort([], [drawn])]
    assert sum(isinstance(op, by) for op in ops) == 1
    [u] = randomness.inputs
    tables = [x for x in pm.pytensorf.inputvars([drawn]) if x is not u]
    rng = np.random.default_rng(1)
    given = {x: rng.normal(size=x.type.shape) for x in tables}
    evenly, shares = (np.arange(1_000) + 0.5) / 1_000, np.zeros((N, 3))
    f = pm.compile([u, *tables], drawn, mode="FAST_COMPILE", random_seed=1)
    for at in evenly:
        shares[np.arange(N), f(np.full(N, at), *given.values())] += 1 / 1_000
    np.testing.assert_allclose(shares, p.eval(given, **IN_PYTHON), atol=2 / 1_000)


OTHERS = {
    "not divided": lambda: table("v", 2, 3)[FIRST],
    "another total": lambda: (
        table("v", 2, 3)[FIRST] / (table("v", 2, 3)[FIRST] ** 2).sum(-1)[:, None]
    ),
    "a factor of each entry": lambda: normalised(table("v", 2, 3)[FIRST] * table("e", N, 3)),
    "the same for all": lambda: normalised(table("u", 3)),
    "a matrix of indices": lambda: normalised(table("v", 2, 3)[FIRST.reshape(4, 10)]),
    "rows by a slice": lambda: normalised(table("v", N + 1, 3)[1:]),
    "unknown number of rows": lambda: normalised(table("v", None, 3)[FIRST]),
    "weights that may be negative": lambda: normalised(pt.tensor("v", shape=(2, 3))[FIRST]),
    "a power of a table": lambda: normalised(table("v", 2, 3)[FIRST] ** 2),
}


@pytest.mark.parametrize("write", OTHERS.values(), ids=OTHERS)
def test_other_probabilities_are_left_to_other_rules(write):
    assert lookups_of(write(), (N,)) == []


NO_ROWS = {
    "the same for all": lambda: table("u", 3),
    "a matrix of indices": lambda: table("v", 2, 3)[FIRST.reshape(4, 10)],
    "rows by a slice": lambda: table("v", N + 1, 3)[1:],
    "unknown number of rows": lambda: table("v", None, 3)[FIRST],
    "unknown number of categories": lambda: table("v", 2, None)[FIRST],
    "one row for all": lambda: table("v", 2, 3)[pt.zeros(1, dtype="int64")],
}


@pytest.mark.parametrize("write", NO_ROWS.values(), ids=NO_ROWS)
def test_other_probabilities_are_not_rows_of_a_table(write):
    assert chosen_by_rows(pt.vector("u", shape=(N,)), write()) is None


def test_a_function_that_all_tables_are_of_is_applied_once():
    x, y = pt.tensor("x", shape=(2, 3)), pt.tensor("y", shape=(4,))
    found = joined([pt.exp(x), pt.exp(y)])
    exps = [n for n in io_toposort([], [found]) if getattr(n.op, "scalar_op", None) is not None]
    assert len([n for n in exps if isinstance(n.op, Elemwise)]) == 1
    given = {x: np.arange(6.0).reshape(2, 3), y: np.arange(4.0)}
    parts = [np.exp(given[x]).ravel(), np.exp(given[y])]
    np.testing.assert_array_equal(found.eval(given, **IN_PYTHON), np.concatenate(parts))
    np.testing.assert_array_equal(
        joined([pt.exp(x), y]).eval(given, **IN_PYTHON), np.concatenate([parts[0], given[y]])
    )


def test_rows_of_all_tables_are_numbered():
    rows = rows_looked_up(5, INDICES.ravel(), LENGTHS, AXES)
    np.testing.assert_array_equal(rows[0], 0)
    np.testing.assert_array_equal(rows[1], 1 + INDICES[0] % 2)
    np.testing.assert_array_equal(rows[2], 3 + INDICES[1] % 2 * 4 + INDICES[2] % 4)
    with pytest.raises(IndexError, match="out of range"):
        rows_looked_up(5, INDICES.ravel() + 1, LENGTHS, AXES)
