"""Draws near present values: the walk, in the noise that they are made of."""

from itertools import combinations

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import expit

from pymc_dapper.graphs import local_draws
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.local import read_local

N = 6


def normal():
    x = pm.Normal("x", 0.3, 2.0, shape=N)
    return [x], lambda x: [(x - 0.3) / 2.0]


def regression():
    """Mean and spread of one record variable depend on another."""
    x = pm.Normal("x", 1.0, 0.5, shape=(N, 2))
    y = pm.Normal("y", x @ np.array([1.0, -2.0]), pt.exp(x[:, 0] / 2), shape=N)
    return [x, y], lambda x, y: [
        (x - 1.0) / 0.5,
        (y - x @ np.array([1.0, -2.0])) / np.exp(x[:, 0] / 2),
    ]


def incomes():
    age = pm.Normal("age", 0.0, 1.0, shape=N)
    income = pm.LogNormal("income", 0.5 * age, 0.3, shape=N)  # its value variable is the logarithm
    return [age, income], lambda age, income: [age, (income - 0.5 * age) / 0.3]


COVARIANCE = np.array([[1.0, 0.6], [0.6, 2.0]])


def several_at_once():
    z = pm.Normal("z", 0.0, 1.0, shape=N)
    x = pm.MvNormal("x", z[:, None] * np.ones(2), COVARIANCE, shape=(N, 2))
    return [z, x], lambda z, x: [
        z,
        np.linalg.solve(np.linalg.cholesky(COVARIANCE), (x - z[:, None]).T).T,
    ]


def read(build):
    with pm.Model() as model:
        records, noise = build()
        pm.Potential("privacy", -sum((x.sum() - 1.0) ** 2 for x in records))
    values = [model.rvs_to_values[x] for x in records]
    return read_model(model, values, model.initial_point()), noise


def proposals(reading, records, *, reach=None):
    """Proposals with the same noise each time."""
    inputs = [*reading.randomness.inputs, *reading.records]
    if reach is not None:
        *_, shared = reading.data
        shared.set_value(reach)
    propose = compile_in_python(reading.model, inputs, reading.proposals)
    return propose(*reading.randomness.draw(np.random.default_rng(5)), *records)


def walks(build, reach):
    """Noise before and after a walk, and that of an independent draw."""
    reading, noise = read(build)
    local = read_local(reading)
    rng = np.random.default_rng(1)
    present = [rng.normal(size=x.type.shape) for x in reading.records]
    drawn = proposals(local, present, reach=1.0)
    for x, alike in zip(drawn, proposals(reading, present), strict=True):
        np.testing.assert_array_equal(x, alike)
    walked = proposals(local, present, reach=reach)
    return [noise(*x) for x in (present, walked, drawn)]


MODELS = [normal, regression, incomes, several_at_once]


@pytest.mark.parametrize("reach", [0.01, 0.6, 1.0])
@pytest.mark.parametrize("build", MODELS)
def test_noise_walks_as_a_stationary_autoregression_does(build, reach):
    for before, after, drawn in zip(*walks(build, reach), strict=True):
        expected = np.sqrt(1 - reach**2) * before + reach * drawn
        np.testing.assert_allclose(after, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("build", MODELS)
def test_a_walk_that_does_not_leave_its_law_as_it_is_shows(build, monkeypatch):
    monkeypatch.setattr(local_draws, "_keep", lambda reach: 1 - reach)
    with pytest.raises(AssertionError):
        test_noise_walks_as_a_stationary_autoregression_does(build, 0.6)


def uniform():
    """Limits depend on another variable; the value variables are the log-odds of the noise."""
    z = pm.Uniform("z", -1.0, 3.0, shape=N)
    x = pm.Uniform("x", z, z + pt.exp(z), shape=N)
    return [z, x], lambda z, x: [expit(z), expit(x)]


@pytest.mark.parametrize("reach", [0.01, 0.9])
def test_uniform_noise_walks_on_a_circle(reach):
    for before, after, drawn in zip(*walks(uniform, reach), strict=True):
        expected = (before + reach * (drawn - 0.5)) % 1
        np.testing.assert_allclose(after, expected, rtol=1e-9, atol=1e-12)
    for _, after, drawn in zip(*walks(uniform, 1.0), strict=True):
        np.testing.assert_array_equal(after, drawn)


def test_uniform_noise_that_stops_at_an_end_shows(monkeypatch):
    """Ends would be visited too often."""
    monkeypatch.setattr(local_draws, "_around", lambda u: pt.clip(u, 1e-9, 1 - 1e-9))
    with pytest.raises(AssertionError):
        test_uniform_noise_walks_on_a_circle(0.9)


MANY, DEGREES, REACH = 40_000, 2.5, 0.5


def t_walk():
    """Records of a t law walked from their law: both standardised, and an independent draw."""
    with pm.Model() as model:
        y = pm.Normal("y", 0, 1, shape=MANY)
        pm.StudentT("x", nu=DEGREES, mu=y, sigma=pt.exp(y), shape=MANY)
        pm.Potential("privacy", -((model["x"].sum() - 1.0) ** 2))
    values = [model.rvs_to_values[model[name]] for name in "yx"]
    local = read_local(read_model(model, values, model.initial_point()))
    rng = np.random.default_rng(2)
    before, y = stats.t(DEGREES).rvs(MANY, random_state=rng), rng.normal(size=MANY)
    present = [y, y + np.exp(y) * before]

    def standardised(y, x):
        return (x - y) / np.exp(y)

    return before, *(standardised(*proposals(local, present, reach=r)) for r in (REACH, 1.0))


def scores_of_a_walk(before, after):
    """How far from the law, and from being as likely as the way back: standard normal scores."""
    law = stats.t(DEGREES)
    u, v = law.cdf(before), law.cdf(after)
    functions = [lambda x, k=k: np.cos(k * np.pi * x) for k in range(1, 5)]
    moments = [np.mean(f(v)) / np.sqrt(0.5 / MANY) for f in functions]
    flows = [f(u) * g(v) - g(u) * f(v) for f, g in combinations(functions, 2)]
    return [*moments, *(np.mean(x) / np.std(x) * np.sqrt(MANY) for x in flows)]


def test_t_variables_walk_within_their_law_and_as_likely_back():
    before, after, drawn = t_walk()
    assert np.max(np.abs(scores_of_a_walk(before, after))) < 4.5
    assert np.max(np.abs(scores_of_a_walk(before, drawn))) < 4.5
    assert stats.spearmanr(before, after)[0] > 0.8
    assert abs(stats.spearmanr(before, drawn)[0]) < 0.03


def test_t_variables_whose_spread_is_drawn_without_a_look_at_them_show(monkeypatch):
    right = local_draws._precision
    monkeypatch.setattr(local_draws, "_precision", lambda nu, t, size: right(nu, 0 * t + 1, size))
    before, after, _ = t_walk()
    assert np.max(np.abs(scores_of_a_walk(before, after))) > 10


def test_t_variables_whose_degrees_of_freedom_depend_on_a_record_are_drawn_anew():
    def build():
        y = pm.Uniform("y", 2, 4, shape=N)
        return [y, pm.StudentT("x", nu=y, shape=N)], None

    local = read_local(read(build)[0])
    rng = np.random.default_rng(0)
    present = [rng.normal(size=N), rng.normal(size=N)]
    (_, walked), (_, drawn) = (proposals(local, present, reach=r) for r in (0.1, 0.2))
    assert not np.array_equal(walked, present[1])
    assert np.max(np.abs(walked - present[1])) > 0.5
    assert np.max(np.abs(drawn - present[1])) > 0.5


def mean_of_before(walk):
    """The new mean taken for the present one: y would follow x only by and by."""
    return local_draws.Walk(walk.present, walk.parameters, walk.draw, walk.parameters, walk.reach)


def test_a_walk_around_another_mean_than_its_own_shows(monkeypatch):
    rule = local_draws._back
    broken = lambda present, draw, walk: rule(present, draw, mean_of_before(walk))  # noqa: E731
    monkeypatch.setattr(local_draws, "_back", broken)
    with pytest.raises(AssertionError):
        test_noise_walks_as_a_stationary_autoregression_does(regression, 0.6)


def test_without_a_spread_there_is_no_noise_to_keep():
    """Where PyMC's checks of parameters are switched off, a record may be its mean."""
    with pm.Model(check_bounds=False) as model:
        group = pm.Bernoulli("group", 0.5, shape=N)
        x = pm.Normal("x", 1.0, group, shape=N)
        pm.Potential("privacy", -((x.sum() - 1.0) ** 2))
    values = [model.rvs_to_values[rv] for rv in (group, x)]
    local = read_local(read_model(model, values, model.initial_point()))
    present = np.array([0, 0, 1, 0, 1, 1]), np.array([1.0, 1.0, 1.4, 1.0, -0.3, 2.0])
    new_group, drawn = proposals(local, present, reach=1.0)
    _, walked = proposals(local, present, reach=0.2)
    assert len({*zip(present[0], new_group, strict=True)}) == 4  # all ways
    np.testing.assert_array_equal(walked[present[0] == 0], drawn[present[0] == 0])
    np.testing.assert_array_equal(walked[new_group == 0], 1.0)
    both = (present[0] == 1) & (new_group == 1)
    noise = np.sqrt(1 - 0.2**2) * (present[1] - 1.0) + 0.2 * (drawn - 1.0)
    np.testing.assert_allclose(walked[both] - 1.0, noise[both], rtol=1e-9)
