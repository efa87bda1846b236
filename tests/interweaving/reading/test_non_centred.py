"""A model with noise in the place of records: attributes and descriptions.

Coordinates of a covariance's Cholesky factor: their way back, their volume, and a chain.
"""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.interweaving.reading.non_centred import ITSELF, coordinates_of
from pymc_dapper.kernels.effective_draws import effective_draws
from tests.evaluated_in_python import evaluated_in_python
from tests.interweaving.linked import LINKED, linked_model, read

P, ETA, SD = 3, 1.5, 2.0


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        sd = pm.HalfNormal.dist(SD)
        pm.LKJCholeskyCov("chol", eta=ETA, n=P, sd_dist=sd, compute_corr=False)
    return model


@pytest.fixture
def coordinates(model):
    return coordinates_of(model, model.value_vars[0].name)


def prior(at):
    """Its log-density, of standard deviations and partial correlations as independent variables."""
    row, entry = np.tril_indices(P)
    total = 0.0
    for i, j, x in zip(row, entry, at, strict=True):
        if i == j:
            total += stats.halfnorm(scale=SD).logpdf(np.exp(x)) + x
        else:
            beta = ETA + (P - 2 - j) / 2
            total += stats.beta(beta, beta, -1, 2).logpdf(np.tanh(x)) - 2 * np.log(np.cosh(x))
    return total


def test_there_is_a_way_back(coordinates):
    value = np.random.default_rng(1).normal(size=6)
    at = coordinates.of(value, np)
    np.testing.assert_allclose(coordinates.value(at, np), value)
    factor = np.zeros((P, P))
    factor[np.tril_indices(P)] = value
    factor[np.diag_indices(P)] = np.exp(np.diag(factor))
    sd = np.sqrt(np.diag(factor @ factor.T))
    np.testing.assert_allclose(np.exp(at[[0, 2, 5]]), sd)
    correlations = (factor @ factor.T) / np.outer(sd, sd)
    np.testing.assert_allclose(np.tanh(at[[1, 3]]), correlations[1:, 0])
    for function in (coordinates.of, coordinates.value, coordinates.log_volume):
        there = pt.specify_shape(pt.constant(at), (6,))
        np.testing.assert_allclose(function(there, pt).eval(mode="FAST_COMPILE"), function(at, np))


def test_far_out_nothing_overflows(coordinates):
    at = np.array([0.0, 800.0, -1.0, -900.0, 3.0, 0.5])
    assert np.all(np.isfinite(coordinates.value(at, np)))
    assert np.isfinite(coordinates.log_volume(at, np))


def test_prior_and_volume_are_the_density_of_independent_variables(model, coordinates):
    """With another volume they aren't."""
    rng, log_prior = np.random.default_rng(2), model.compile_logp(mode="FAST_COMPILE")
    [name] = [x.name for x in model.value_vars]
    found, without, expected = [], [], []
    for at in rng.normal(scale=0.7, size=(5, 6)):
        without.append(log_prior({name: coordinates.value(at, np)}))
        found.append(without[-1] + coordinates.log_volume(at, np))
        expected.append(prior(at))
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], atol=1e-9)
    assert not np.allclose(without - without[0], np.array(expected) - expected[0], atol=0.1)


def furthest(model, draws=600, tune=200):
    """How far squares of deviations and correlations are from their prior means, in errors."""
    with evaluated_in_python():
        step = pmd.InterweaveStep([model["chol"]], model=model, moves=3)
    rng, point, seen = np.random.default_rng(3), model.initial_point(), []
    step.setup_chain(rng, tune=tune, draws=draws)
    for _ in range(tune + draws):
        point, _ = step.step(point)
        [value] = point.values()
        factor = np.zeros((P, P))
        factor[np.tril_indices(P)] = value
        factor[np.diag_indices(P)] = np.exp(np.diag(factor))
        covariance = factor @ factor.T
        variances = np.diag(covariance)
        correlations = covariance / np.sqrt(np.outer(variances, variances))
        seen.append([*variances, *correlations[np.tril_indices(P, -1)] ** 2])
    seen = np.array(seen[tune:])
    expected = np.repeat([SD**2, 1 / (2 * ETA + P - 1)], P)
    errors = seen.std(axis=0) / np.sqrt(effective_draws(seen))
    return np.abs((seen.mean(axis=0) - expected) / errors).max()


@pytest.mark.long
def test_where_nothing_is_known_draws_are_the_priors(model):
    assert furthest(model) < 4


@pytest.mark.long
def test_without_the_volume_they_are_not(model, monkeypatch):
    def without(model, name):
        return replace(coordinates_of(model, name), log_volume=ITSELF.log_volume)

    monkeypatch.setattr("pymc_dapper.interweaving.reading.non_centred.coordinates_of", without)
    # Not more of them: what has no volume drifts to where digits end.
    assert furthest(model, draws=100, tune=30) > 6


def test_other_parameters_and_transforms_stay_themselves(model):
    with pm.Model() as other:
        pm.HalfNormal("sigma", shape=2)
        sd = pm.HalfNormal.dist()
        pm.LKJCholeskyCov(
            "chol", eta=1, n=2, sd_dist=sd, compute_corr=False, default_transform=None
        )
    for x in other.value_vars:
        assert coordinates_of(other, x.name) is ITSELF


def test_variables_have_the_names_that_the_model_gives_them():
    reading = read(linked_model(), *LINKED)
    assert [x.name for x in reading.parameters] == ["theta_log__", "upper_interval__", "slope"]
    assert reading.names(reading.parameters) == ["theta", "upper", "slope"]
    assert reading.names(reading.records) == ["u", "x", "y"]
