"""Laws of records given measurements of them: in closed form, and which measurements are read."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.view import view_of
from pymc_dapper.interweaving.reading import model as reading_of_model
from pymc_dapper.interweaving.reading.measured import laws_given_measurements, log_law_of
from pymc_dapper.interweaving.reading.self_check import check_noise
from tests.interweaving.linked import read

N = 4
W = np.array([0.9, -1.4, 2.2, 0.3])
SIZES = np.array([0.5, 1.0, 1.5, 0.7])
TWICE = np.stack([W, W + 0.4], axis=1)
WHOSE = np.array([3, 0, 0, 2, 1, 3])
AT = {"mu": 0.4, "tau": 1.3, "sigma": 0.6, "slope": -0.8}


def law(n=N, of=pm.Normal, **more):
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
    return normal(np.full(N, (0.8 / 0.6) ** 2), -0.8 * (W - 0.2) / 0.36)


def difference():
    pm.Normal("w", (law() - 1) / 2, sigma(), observed=W)
    return normal(np.full(N, 0.25 / 0.36), 0.5 * (W + 0.5) / 0.36)


def known_sizes():
    pm.Normal("w", law(), sigma() * SIZES, observed=W)
    return normal(1 / (0.6 * SIZES) ** 2, W / (0.6 * SIZES) ** 2)


def two_variables():
    x, s = law(), sigma()
    pm.Normal("w", x, s, observed=W)
    pm.Normal("v", 2 * x, 1.0, observed=SIZES)
    return normal(np.full(N, 0.6**-2 + 4), W / 0.36 + 2 * SIZES)


def columns():
    pm.Normal("w", law()[:, None], sigma(), observed=TWICE)
    return normal(np.full(N, 2 * 0.6**-2), TWICE.sum(axis=1) / 0.36)


def long_form():
    pm.Normal("w", law()[WHOSE], sigma(), observed=np.arange(6.0))
    counts = np.bincount(WHOSE, minlength=N)
    return normal(counts / 0.36, np.bincount(WHOSE, np.arange(6.0), N) / 0.36)


def heavy_tails():
    """As if it were normal."""
    pm.StudentT("w", nu=3, mu=law(of=pm.StudentT, nu=4), sigma=sigma(), observed=W)
    return normal(np.full(N, 0.6**-2), W / 0.36)


def beside_a_sum():
    """A sum isn't of one record, and a cut-off record isn't linear: neither is a measurement."""
    x = law()
    pm.Normal("w", x, sigma(), observed=W)
    pm.Normal("release", x.sum(), 1.0, observed=0.3)
    pm.Normal("clipped", pt.clip(x, -1, 1), 1.0, observed=W)
    pm.Bernoulli("yes", pm.math.sigmoid(x), observed=W > 0)
    return normal(np.full(N, 0.6**-2), W / 0.36)


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
        positive = pm.LogNormal("positive", model["mu"], 1.0, shape=N)
        pm.Normal("of_positive", positive, 1.0, observed=W)
    assert laws_at(model, "x", "positive") == {}
    assert read(model, ["mu", "tau"], ["x", "positive"]).log_law is None


def test_a_measurement_of_two_records_is_of_the_later_one():
    """Its law may depend on the earlier one, which moves first; not the other way round."""
    with pm.Model() as model:
        x = law()
        y = pm.Normal("y", 0.5 * x, 1.0, shape=N)
        pm.Normal("w", x + y, sigma(), observed=W)
    reading = read(model, ["mu", "tau", "sigma"], ["x", "y"])
    assert list(laws_at(model, "x", "y")) == ["y"]
    check_noise(reading, at_point(model))


def test_a_measurement_that_depends_on_a_number_that_moves_is_none():
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 1, N)
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
    """How far the log-density is from that of measurements with the records integrated out."""

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


def test_records_are_integrated_out():
    assert disagreement() < 1e-9


def test_a_law_without_its_volume_is_detected(monkeypatch):
    monkeypatch.setattr(reading_of_model, "log_law_of", without_volume)
    assert disagreement() > 0.1


def test_parameters_of_measurements_move_and_the_prior_counts():
    model = noisy_total()
    reading = read(model, ["mu", "tau", "sigma"], ["x"])
    assert reading.names(reading.parameters) == ["mu", "tau", "sigma"]
    assert {"x", "w", "release"} <= set(reading.factors)
