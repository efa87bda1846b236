"""Which values of records are possible, where a parameter of one depends on another."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.reading import read_model
from tests.records.priors import N, made_of_normals, normal, read

IN_PYTHON = {"mode": "FAST_COMPILE", "on_unused_input": "ignore"}


def possible(build, *values):
    """Which records of a model may have values."""
    reading = read(build)
    assert reading.possible is not None
    at = dict(zip(reading.records, map(np.array, values), strict=True))
    given = {x: np.array(0.5) for x in reading.parameters}
    return reading.possible.eval({**at, **given}, **IN_PYTHON).tolist()


def spread_in_proportion():
    x = pm.Normal("x", 2, 1, shape=N, initval=np.ones(N))
    return [x, pm.Normal("y", x, 0.5 * x, shape=N)]


def probability_on_a_line():
    x = pm.Categorical("x", np.ones(3) / 3, shape=N)
    return [x, pm.Bernoulli("y", 0.5 + 0.3 * x, shape=N)]


def probabilities_of_a_row():
    x = pm.Normal("x", 0.5, 0.3, shape=N, initval=np.full(N, 0.5))
    return [x, pm.Categorical("y", pt.stack([x, 1 - x], axis=1), shape=N)]


def mean_that_may_be_no_number():
    x = pm.Normal("x", 2, 1, shape=N, initval=np.ones(N))
    return [x, pm.Normal("y", pt.log(x), 1, shape=N)]


def spread_in_a_mixture():
    x = pm.Normal("x", 2, 1, shape=N, initval=np.ones(N))
    components = [pm.Normal.dist(x, 1), pm.Normal.dist(0, x)]
    return [x, pm.Mixture("y", np.array([0.3, 0.7]), components, shape=N)]


def row_of_a_table():
    # At q = 0.5, the table's second row isn't one of probabilities.
    table = pt.stack([[0.2, 0.8], [pm.Normal("q"), 0.8]])
    x = pm.Bernoulli("x", 0.5, shape=N)
    return [x, pm.Categorical("y", table[x], shape=N)]


def column_of_a_dirichlet_table():
    x = pm.Categorical("x", np.ones(2) / 2, shape=N)
    return [x, pm.Categorical("y", pm.Dirichlet("p", np.ones(2), shape=(2, 2))[:, x].T, shape=N)]


def row_of_a_table_beside_a_covariate():
    table = pt.stack([0.2, pm.Normal("q")])
    x = pm.Bernoulli("x", 0.5, shape=N)
    return [x, pm.Bernoulli("y", table[x] + np.array([0, 0, 0.9, 0.1]), shape=N)]


def entries_of_two_tables():
    first, second = pt.stack([0.5, 2.0]), pt.stack([pm.Normal("q"), -1.0])
    x, y = pm.Bernoulli("x", 0.5, shape=N), pm.Bernoulli("y", 0.5, shape=N)
    return [x, y, pm.Bernoulli("z", first[x] * second[y], shape=N)]


def rates_and_shapes():
    # NumPy raises an error for such a rate, and numba may draw for ever with such a shape.
    x = pm.Normal("x", 1, 1, shape=N, initval=np.ones(N))
    return [x, pm.Poisson("y", 2 * x, shape=N), pm.Beta("z", x, 0.5, shape=N)]


def test_no_generator_is_handed_invalid_parameters():
    reading = read(rates_and_shapes)
    inputs = [*reading.randomness.inputs, *reading.records]
    propose = compile_in_python(reading.model, inputs, reading.proposals)
    present = [np.ones(N), np.full(N, 3), np.zeros(N)]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x, y, z = propose(*reading.randomness.draw(rng), *present)
        at = dict(zip(reading.records, (x, y, z), strict=True))
        assert np.isfinite(y).all()
        np.testing.assert_array_equal(reading.possible.eval(at, **IN_PYTHON), x > 0)


@pytest.mark.parametrize(
    ("build", "x", "y", "expected"),
    [
        (spread_in_proportion, [-1.0, 0.0, 0.1, 2.0], np.ones(4), [False, False, True, True]),
        (probability_on_a_line, [0, 1, 2, 0], np.ones(4, int), [True, True, False, True]),
        (
            probabilities_of_a_row,
            [-0.1, 0.0, 0.4, 1.1],
            np.zeros(4, int),
            [False, True, True, False],
        ),
        (
            mean_that_may_be_no_number,
            np.ones(4),
            [1.0, np.nan, 0.0, -np.inf],
            [True, False, True, False],
        ),
        (spread_in_a_mixture, [-1.0, 1.0, 2.0, 0.0], np.ones(4), [False, True, True, False]),
        (row_of_a_table, [0, 1, 1, 0], np.zeros(4, int), [True, False, False, True]),
        (
            row_of_a_table_beside_a_covariate,
            [0, 1, 0, 1],
            np.zeros(4, int),
            [True, True, False, True],
        ),
    ],
)
def test_values_with_invalid_parameters_are_impossible(build, x, y, expected):
    assert possible(build, x, y) == expected


@pytest.mark.parametrize(("rows", "expected"), [([0.5, 0.5], True), ([0.2, 0.7], False)])
def test_columns_of_a_dirichlet_table_are_checked_as_only_its_rows_sum_to_one(rows, expected):
    reading = read(column_of_a_dirichlet_table)
    [table], first = reading.parameters, np.array(rows)[:, None]
    at = {table: 0.5 * np.log(first / (1 - first))}
    at |= {x: np.array([0, 1, 1, 0]) for x in reading.records}
    assert reading.possible.eval(at, **IN_PYTHON).tolist() == [expected] * N


def test_rows_chosen_in_different_ways_are_checked_for_each_record():
    x, y = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    expected = [True, False, True, False]
    assert possible(entries_of_two_tables, x, y, np.zeros(4, int)) == expected


def test_draws_to_which_the_users_own_density_gives_no_weight_are_impossible():
    def cut_off(value, mu):
        return pt.switch(value > 0, normal(value, mu), -np.inf)

    def build():
        return made_of_normals(lambda z: z, logp=cut_off)

    assert possible(build, [-1.0, 1.0, -0.1, 0.1]) == [False, True, False, True]


def test_a_model_that_asks_for_no_checks_gets_none():
    with pm.Model(check_bounds=False) as model:
        x, y = probability_on_a_line()
        pm.Potential("privacy", -((x + y).sum() ** 2))
    assert read_model(model, model.value_vars, model.initial_point()).possible is None


def count_given_a_logarithm():
    x = pm.Normal("x", pm.Normal("mu"), 1, shape=N)
    return [x, pm.Poisson("y", pt.exp(0.3 * x), shape=N)]


def answer_given_a_group():
    x = pm.Bernoulli("x", 0.4, shape=N)
    return [x, pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=2)[x], shape=N)]


def answer_given_a_constant_table():
    x = pm.Categorical("x", np.ones(3) / 3, shape=N)
    return [x, pm.Bernoulli("y", pt.constant([0.2, 0.5, 1.0])[x], shape=N)]


def category_given_a_class():
    x = pm.Categorical("x", np.ones(3) / 3, shape=N)
    return [x, pm.Categorical("y", pm.Dirichlet("p", np.ones(2), shape=(3, 2))[x], shape=N)]


def category_given_two():
    x, y = (pm.Categorical(name, np.ones(2) / 2, shape=N) for name in "xy")
    p = pm.Dirichlet("p", np.ones(3), shape=(2, 2, 3))
    return [x, y, pm.Categorical("z", p[x, y], shape=N)]


def line_of_a_mean():
    x = pm.Normal("x", shape=N)
    return [x, pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, 0.5, shape=N)]


def answer_by_regression():
    x = pm.Normal("x", shape=N)
    return [x, pm.Bernoulli("y", logit_p=pm.Normal("b") * x, shape=N)]


def spread_by_count():
    x = pm.Poisson("x", 3, shape=N)
    return [x, pm.Normal("y", pt.clip(x, 0, 5), 0.1 + 2 * x, shape=N)]


def spread_by_switch():
    x = pm.Normal("x", shape=N)
    slope, spread = pm.LogNormal("slope"), pm.HalfNormal("spread")
    return [x, pm.Normal("y", slope * x**2, pt.switch(x > 0, 1.0, spread) + 0.1, shape=N)]


@pytest.mark.parametrize(
    "build",
    [
        count_given_a_logarithm,
        answer_given_a_group,
        answer_given_a_constant_table,
        category_given_a_class,
        category_given_two,
        line_of_a_mean,
        answer_by_regression,
        spread_by_count,
        spread_by_switch,
    ],
)
def test_parameters_that_are_always_valid_are_not_checked(build):
    # So that their sweeps cost what they did.
    assert read(build).possible is None


@pytest.mark.parametrize("check_bounds", [True, False])
def test_a_category_by_products_is_impossible_where_they_are_no_probabilities(check_bounds):
    """Its draw is -1 there."""
    with pm.Model(check_bounds=check_bounds) as model:
        w, v = pm.Exponential("w", 1, shape=2), pm.Exponential("v", 1, shape=(2, 2))
        x = pm.Categorical("x", w / w.sum(), shape=N)
        products = w * v[x]
        y = pm.Categorical("y", products / products.sum(axis=1, keepdims=True), shape=N)
        pm.Potential("privacy", -0.1 * (x.sum() + y.sum()) ** 2)
    values = [model.rvs_to_values[rv] for rv in (x, y)]
    reading, at = read_model(model, values, model.initial_point()), np.arange(N) % 2
    given = dict(zip(reading.records, (at, np.where(at, -1, 1)), strict=True))
    assert reading.possible.eval(given, **IN_PYTHON).tolist() == (at == 0).tolist()
