"""The records' prior, looked at from outside: what ties records, and which values are possible."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper import ReadingError
from pymc_dapper.graphs.bounds import ANY_NUMBER, Bounds, bounds_of
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.self_check import check_reading

N = 4


def read(build):
    """Read a model whose records a function returns."""
    with pm.Model() as model:
        records = build()
        pm.Potential("privacy", -0.1 * pt.add(*(x.sum() for x in records)) ** 2)
    point = model.initial_point()
    reading = read_model(model, [model.rvs_to_values[x] for x in records], point)
    check_reading(reading, point)
    return reading


def normal(value, mu):
    return -0.5 * (value - mu) ** 2


def made_of_normals(f, **kwargs):
    def dist(mu, size):
        return f(pm.Normal.dist(mu, 1, size=size))

    return [pm.CustomDist("x", pm.Normal("mu"), dist=dist, shape=N, **kwargs)]


def cumulative_sum():
    return made_of_normals(pt.cumsum)


def cumulative_sum_of_gammas():
    def dist(rate, size):
        return pt.cumsum(pm.Gamma.dist(2, rate, size=size))

    return [pm.CustomDist("x", pm.HalfNormal("rate"), dist=dist, shape=N)]


def cumulative_sum_of_another_record():
    def dist(x, size):
        return pm.Normal.dist(pt.cumsum(x), 1, size=size)

    x = pm.Normal("x", shape=N)
    return [x, pm.CustomDist("y", x, dist=dist, shape=N)]


def density_of_deviations():
    return made_of_normals(lambda z: z, logp=lambda value, mu: normal(value - value.mean(), mu))


def one_density_of_all():
    return made_of_normals(lambda z: z, logp=lambda value, mu: -(((value - mu).sum()) ** 2))


def draws_with_a_mean_of_zero():
    return made_of_normals(lambda z: z - z.mean(), logp=normal)


def draws_in_order():
    return made_of_normals(lambda z: pt.sort(pt.atleast_1d(z)).reshape(z.shape), logp=normal)


def draws_with_a_number_in_common():
    return made_of_normals(lambda z: z + pm.Normal.dist(0, 1), logp=normal)


TIED_BY_DENSITY = [
    cumulative_sum,
    cumulative_sum_of_gammas,
    cumulative_sum_of_another_record,
    density_of_deviations,
    one_density_of_all,
]
TIED_BY_DRAWS = [draws_with_a_mean_of_zero, draws_in_order, draws_with_a_number_in_common]


@pytest.mark.parametrize("build", TIED_BY_DENSITY)
def test_a_density_that_ties_records_is_refused(build):
    name = "y" if build is cumulative_sum_of_another_record else "x"
    with pytest.raises(ReadingError, match=f"prior of '{name}' ties records together: the density"):
        read(build)


@pytest.mark.parametrize("build", TIED_BY_DRAWS)
def test_draws_that_are_tied_are_refused(build):
    with pytest.raises(ReadingError, match="the prior of 'x' ties records together: the draw"):
        read(build)


def one_number_as_density():
    return made_of_normals(lambda z: z, logp=lambda value, mu: normal(value, mu).sum())


def series_of_each_record():
    init = pm.Normal.dist(0, 1)
    return [pm.GaussianRandomWalk("x", pm.Normal("mu"), 1, init_dist=init, shape=(N, 3))]


def rows_that_add_up_to_zero():
    return [pm.ZeroSumNormal("x", sigma=pm.HalfNormal("sigma"), shape=(N, 3))]


def correlated_rows():
    cov = np.array([[1.0, 0.6], [0.6, 2.0]])
    return [pm.MvNormal("x", pm.Normal("mu", shape=2), cov=cov, shape=(N, 2))]


def a_record_made_of_two_numbers():
    return made_of_normals(lambda z: z + pm.Normal.dist(0, 1, size=z.shape), logp=normal)


@pytest.mark.parametrize(
    "build",
    [
        one_number_as_density,
        series_of_each_record,
        rows_that_add_up_to_zero,
        correlated_rows,
        a_record_made_of_two_numbers,
    ],
)
def test_records_that_only_look_tied_are_read(build):
    assert read(build).n_records == N


# Parameters of one record variable that depend on another -----------------------------------------


def possible(build, *values):
    """Which records of a model may have values."""
    reading = read(build)
    assert reading.possible is not None
    at = dict(zip(reading.records, map(np.array, values), strict=True))
    given = {x: np.array(0.5) for x in reading.parameters}
    return reading.possible.eval({**at, **given}, on_unused_input="ignore").tolist()


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
        np.testing.assert_array_equal(reading.possible.eval(at, on_unused_input="ignore"), x > 0)


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
    ],
)
def test_values_with_invalid_parameters_are_impossible(build, x, y, expected):
    assert possible(build, x, y) == expected


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
        line_of_a_mean,
        answer_by_regression,
        spread_by_count,
        spread_by_switch,
    ],
)
def test_parameters_that_are_always_valid_are_not_checked(build):
    # So that their sweeps cost what they did.
    assert read(build).possible is None


EXPRESSIONS = {
    "sum": lambda x, k: x - 2 * k + 1,
    "product": lambda x, k: x * k * -0.3,
    "product of signs": lambda x, k: (k - 1.5) * (k - 2),
    "square": lambda x, k: x**2 * (k - 4),
    "exponential": lambda x, k: pt.exp(-(x**2)) + 1 / (1 + k),
    "logarithm": lambda x, k: pt.log(1 + pt.exp(k)) / 3,
    "magnitude": lambda x, k: pt.abs(k - 2) - pt.sqrt(k),
    "clip": lambda x, k: pt.clip(x, -1, 2) * k,
    "clip the wrong way round": lambda x, k: pt.clip(x, 2, -1),
    "extremes": lambda x, k: pt.maximum(x, k) + pt.minimum(x, 1.0),
    "switch": lambda x, k: pt.switch(x > 0, k, -k),
    "sigmoid": lambda x, k: pt.sigmoid(x) + pt.tanh(k),
    "table": lambda x, k: pt.constant([3.0, -1.0, 2.0, 0.5])[k.astype("int64")] / 2,
    "columns": lambda x, k: pt.stack([k, -k], axis=1).sum(axis=1),
    "conditions": lambda x, k: (k >= 0) & ((k > 3) | (x < 10)) & (k <= 3),
    "always": lambda x, k: k + 1 > 0,
    "never": lambda x, k: k > 3,
    "rounded": lambda x, k: (k / 2).astype("int64"),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_values_lie_within_their_bounds(name):
    rng = np.random.default_rng(8)
    x, k = pt.vector("x"), pt.vector("k")
    graph = EXPRESSIONS[name](x, k)
    bounds = bounds_of(graph, {x: ANY_NUMBER, k: Bounds(0.0, 3.0)})
    values = graph.eval(
        {x: 3 * rng.standard_normal(1000), k: rng.integers(0, 4, 1000).astype(float)},
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    if name == "clip the wrong way round":
        assert bounds is None
        return
    assert bounds is not None
    assert bounds.low <= values.min()
    assert values.max() <= bounds.high


@pytest.mark.parametrize(
    "of", [pt.log, pt.sqrt, lambda x: 1 / x, lambda x: pt.exp(x) - pt.exp(x**2), lambda x: x**0.5]
)
def test_what_may_be_no_number_has_no_bounds(of):
    x = pt.vector("x")
    assert bounds_of(of(x), {x: ANY_NUMBER}) is None
    assert not bounds_of(pt.exp(x), {x: ANY_NUMBER}).finite
