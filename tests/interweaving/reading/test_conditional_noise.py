"""Records with answers of their own, marginalised: models that are just readable or just not.

Laws of records given measurements of them: in closed form, and which measurements are read.
"""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper import DapperStep, InterweaveStep, assign_steps
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.view import view_of
from pymc_dapper.interweaving.reading import model as reading_of_model
from pymc_dapper.interweaving.reading.conditional_noise import laws_given_measurements, log_law_of
from pymc_dapper.interweaving.reading.model import read_non_centred
from pymc_dapper.interweaving.reading.self_check import check_noise
from pymc_dapper.reading import read_model
from tests.evaluated_in_python import evaluated_in_python
from tests.interweaving.linked import read
from tests.moving_at_once import moving_at_once

N_of_measured = 4
W = np.array([0.9, -1.4, 2.2, 0.3])
SIZES = np.array([0.5, 1.0, 1.5, 0.7])
TWICE = np.stack([W, W + 0.4], axis=1)
WHOSE = np.array([3, 0, 0, 2, 1, 3])
AT = {"mu": 0.4, "tau": 1.3, "sigma": 0.6, "slope": -0.8}


def law(n=N_of_measured, of=pm.Normal, **more):
    mu, tau = pm.Normal("mu", 0, 2), pm.HalfNormal("tau", 1)
    return of("x", **more, mu=mu, sigma=tau, shape=n)


def sigma():
    return pm.HalfNormal("sigma", 1)


def at_point(model):
    point = model.initial_point()
    for name, value in AT.items():
        for key, natural in ((name, value), (f"{name}_log__", np.log(np.abs(value)))):
            if key in point:
                point[key] = np.asarray(natural)
    return point


def laws_at(model, *records):
    """Mean and standard deviation of each record that is measured."""
    view = view_of(model)
    laws = laws_given_measurements(view, [model[name] for name in records])
    graphs = [x for law in laws.values() for x in law]
    inputs = view.values_in(graphs)
    evaluate = compile_in_python(model, inputs, graphs)
    point = at_point(model)
    found = evaluate(*(np.asarray(point[x.name]) for x in inputs))
    return {rv.name: found[2 * k : 2 * k + 2] for k, rv in enumerate(laws)}


def normal(precisions, sums):
    """Mean and sd: the prior's, and what measurements add to each record."""
    precision = AT["tau"] ** -2 + np.asarray(precisions)
    return (AT["mu"] * AT["tau"] ** -2 + np.asarray(sums)) / precision, precision**-0.5


def slope():
    b = pm.Normal("slope", 0, 1)
    pm.Normal("w", 0.2 + b * law(), sigma(), observed=W)
    return normal(np.full(N_of_measured, (0.8 / 0.6) ** 2), -0.8 * (W - 0.2) / 0.36)


def difference():
    pm.Normal("w", (law() - 1) / 2, sigma(), observed=W)
    return normal(np.full(N_of_measured, 0.25 / 0.36), 0.5 * (W + 0.5) / 0.36)


def known_sizes():
    pm.Normal("w", law(), sigma() * SIZES, observed=W)
    return normal(1 / (0.6 * SIZES) ** 2, W / (0.6 * SIZES) ** 2)


def two_variables():
    x, s = law(), sigma()
    pm.Normal("w", x, s, observed=W)
    pm.Normal("v", 2 * x, 1.0, observed=SIZES)
    return normal(np.full(N_of_measured, 0.6**-2 + 4), W / 0.36 + 2 * SIZES)


def columns():
    pm.Normal("w", law()[:, None], sigma(), observed=TWICE)
    return normal(np.full(N_of_measured, 2 * 0.6**-2), TWICE.sum(axis=1) / 0.36)


def long_form():
    pm.Normal("w", law()[WHOSE], sigma(), observed=np.arange(6.0))
    counts = np.bincount(WHOSE, minlength=N_of_measured)
    return normal(counts / 0.36, np.bincount(WHOSE, np.arange(6.0), N_of_measured) / 0.36)


def heavy_tails():
    """As if it were normal."""
    pm.StudentT("w", nu=3, mu=law(of=pm.StudentT, nu=4), sigma=sigma(), observed=W)
    return normal(np.full(N_of_measured, 0.6**-2), W / 0.36)


def beside_a_sum():
    """A sum isn't of one record, and a cut-off record isn't linear: neither is a measurement."""
    x = law()
    pm.Normal("w", x, sigma(), observed=W)
    pm.Normal("release", x.sum(), 1.0, observed=0.3)
    pm.Normal("clipped", pt.clip(x, -1, 1), 1.0, observed=W)
    pm.Bernoulli("yes", pm.math.sigmoid(x), observed=W > 0)
    return normal(np.full(N_of_measured, 0.6**-2), W / 0.36)


FORMS = [slope, difference, known_sizes, two_variables, columns, long_form, heavy_tails]


@pytest.mark.parametrize("build", [*FORMS, beside_a_sum], ids=lambda build: build.__name__)
def test_laws_are_those_of_a_normal_record_given_normal_measurements(build):
    with pm.Model() as model:
        expected = build()
    [found] = laws_at(model, "x").values()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("build", FORMS, ids=lambda build: build.__name__)
def test_moves_by_these_laws_pass_the_self_check(build):
    with pm.Model() as model:
        build()
        pm.Normal("release", model["x"].sum(), 1.0, observed=0.3)
    reading = read(model, ["sigma"], ["x"])
    assert reading.names(reading.parameters) == ["sigma"]
    assert np.isfinite(check_noise(reading, at_point(model)).log_density)


def test_records_without_a_linear_measurement_keep_the_noise_of_their_prior():
    with pm.Model() as model:
        x = law()
        pm.Normal("w", x.sum(), sigma(), observed=0.2)
        pm.Normal("squared", x**2, 1.0, observed=W)
        pm.Normal("spread", 0.0, pt.exp(x), observed=W)
        positive = pm.LogNormal("positive", model["mu"], 1.0, shape=N_of_measured)
        pm.Normal("of_positive", positive, 1.0, observed=W)
    assert laws_at(model, "x", "positive") == {}
    assert read(model, ["mu", "tau"], ["x", "positive"]).log_law is None


def test_a_measurement_of_two_records_is_of_the_later_one():
    """Its law may depend on the earlier one, which moves first; not the other way round."""
    with pm.Model() as model:
        x = law()
        y = pm.Normal("y", 0.5 * x, 1.0, shape=N_of_measured)
        pm.Normal("w", x + y, sigma(), observed=W)
    reading = read(model, ["mu", "tau", "sigma"], ["x", "y"])
    assert list(laws_at(model, "x", "y")) == ["y"]
    check_noise(reading, at_point(model))


def test_a_measurement_that_depends_on_a_number_that_moves_is_none():
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 1, N_of_measured)
        x = law()
        pm.Normal("w", x / n, sigma(), observed=W)
    view, number = view_of(model), model.rvs_to_values[n]
    assert list(laws_given_measurements(view, [x])) == [x]
    assert laws_given_measurements(view, [x], [number]) == {}


def log_densities(model, proposals, rest):
    """With the noise held fixed, less the model's factors that are not of measurements."""
    point = at_point(model)
    reading = read(model, ["mu", "tau", "sigma"], ["x"])
    inputs = [*reading.parameters, *reading.records, *reading.proposed]
    graphs = [reading.log_density, *reading.moved_records]
    evaluate = compile_in_python(model, inputs, graphs)
    now = [np.asarray(point[x.name]) for x in (*reading.parameters, *reading.records)]
    found = []
    for mu, tau, error in proposals:
        log_density, moved = evaluate(*now, mu, np.log(tau), np.log(error))
        found.append(float(log_density) - rest(mu, tau, error, moved))
    return np.array(found)


def noisy_total():
    with pm.Model() as model:
        x = law()
        pm.Normal("w", x, sigma(), observed=W)
        pm.Normal("release", x.sum(), 1.5, observed=0.3)
    return model


PROPOSALS = [(0.4, 1.3, 0.6), (0.1, 0.8, 1.1), (-1.0, 2.0, 0.2), (0.7, 0.4, 0.4)]


def disagreement():
    """How far the log-density is from that of measurements with the records marginalised."""

    def rest(mu, tau, error, moved):
        half = stats.halfnorm.logpdf
        priors = stats.norm.logpdf(mu, 0, 2) + half(tau) + np.log(tau) + half(error) + np.log(error)
        return priors + stats.norm.logpdf(0.3, moved.sum(), 1.5)

    found = log_densities(noisy_total(), PROPOSALS, rest)
    known = [stats.norm.logpdf(W, mu, np.hypot(tau, s)).sum() for mu, tau, s in PROPOSALS]
    return np.ptp(found - known)


def without_volume(view, laws, records):
    """Broken: records that shrink with their error taken to keep their volume."""
    [(_, sd)] = laws.values()
    return log_law_of(view, laws, records) + pt.log(sd).sum()


def test_records_are_marginalised():
    assert disagreement() < 1e-9


def test_a_law_without_its_volume_is_detected(monkeypatch):
    monkeypatch.setattr(reading_of_model, "log_law_of", without_volume)
    assert disagreement() > 0.1


def test_parameters_of_measurements_move_and_the_prior_counts():
    model = noisy_total()
    reading = read(model, ["mu", "tau", "sigma"], ["x"])
    assert reading.names(reading.parameters) == ["mu", "tau", "sigma"]
    assert {"x", "w", "release"} <= set(reading.factors)


N = 12


def log_densities_at(model, parameter, values, records=("x",)):
    """Log-densities of proposed parameters with the noise held fixed; the model's own there."""
    point = model.initial_point()
    of_records = [model.rvs_to_values[model[name]] for name in records]
    [moved] = [model.rvs_to_values[model[parameter]]]
    reading = read_non_centred(model, [moved], of_records, point)
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
    log_density = model.compile_logp(mode="FAST_COMPILE")
    return [
        (float(evaluate(*at, value)), float(log_density({**point, moved.name: value})))
        for value in map(np.asarray, values)
    ]


def answered(p, truth=0.8, n=N, answers=None):
    x = pm.Bernoulli("x", p, shape=n)
    observed = np.ones(n, int) if answers is None else answers
    pm.Bernoulli("answer", pt.switch(pt.eq(x, 1), truth, 1 - truth), observed=observed)


def test_parameters_that_the_records_prior_excludes_are_impossible():
    with pm.Model() as marginalised:
        answered(pm.Normal("p", 0.9, 0.3))
    with pm.Model() as followed:
        sigma = pm.Normal("sigma", 1, 2)
        pm.Potential("privacy", -(pm.Normal("x", 0, sigma, shape=N).sum() ** 2))
    for model, parameter, inside, outside in (
        (marginalised, "p", 0.5, 1.2),
        (followed, "sigma", 0.5, -1.0),
    ):
        (found, _), excluded = log_densities_at(model, parameter, [inside, outside])
        assert np.isfinite(found)
        assert excluded == (-np.inf, -np.inf)


# Constants that single precision holds, a single record, and certain answers.
DESIGNS = [(0.75, 0.25, 200), (0.3, 0.0, N), (1.0, 0.3, 200), (0.8, 0.2, 1)]


@pytest.mark.long
@pytest.mark.parametrize(("yes", "no", "n"), DESIGNS)
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
    assert step._reading.conditional is None


def test_values_whose_parameters_are_invalid_are_not_integrated_over():
    # With q above 0.4, y_i can't be drawn where x_i is 1.
    answers = np.ones(N, int)
    with pm.Model() as model:
        q = pm.Uniform("q", 0, 1)
        x = pm.Bernoulli("x", 0.5, shape=N)
        y = pm.Bernoulli("y", q + 0.6 * x, shape=N)
        pm.Bernoulli("answer", 0.2 + 0.6 * y, observed=answers)
    values = np.array([0.3, 0.5, 0.7])
    found = log_densities_at(model, "q", np.log(values / (1 - values)), ("x", "y"))
    at = {value: each for value, (each, _) in zip(values, found, strict=True)}

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

    values = np.array([0.2, 0.6, 0.9])
    found = log_densities_at(model, "p", np.log(values / (1 - values)))
    at = {value: each for value, (each, _) in zip(values, found, strict=True)}
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
