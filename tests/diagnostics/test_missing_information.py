"""The fraction of missing information, on a model with a known fraction.

theta ~ N(0, T^2), one record x ~ N(theta, S^2), released with noise N(0, V^2): the toy model of the
dapper paper's section 6, with a prior. All conditionals are normal.
"""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dapper as pmd
from pymc_dapper.diagnostics import missing_information
from tests.evaluated_in_python import evaluated_in_python

T, S, V, RELEASED = 3.0, 1.0, 2.0, 1.3
GIVEN_X = 1 / (1 / T**2 + 1 / S**2)
GIVEN_RELEASE = 1 / (1 / T**2 + 1 / (S**2 + V**2))
EXACT = 1 - GIVEN_X / GIVEN_RELEASE

OPTIONS = {"tune": 200, "chains": 2, "cores": 1, "progressbar": False, "random_seed": 8}
OPTIONS |= {"compute_convergence_checks": False}


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        theta = pm.Normal("theta", 0, T)
        x = pm.Normal("x", theta, S, shape=1)
        pmd.GaussianMechanism(sigma=V).potential("release", x.sum(), released=RELEASED)
    return model


@pytest.fixture(scope="module")
def result(model):
    with model:
        return pmd.sample(N_DRAWS // 2, keep_records=True, interweave=False, **OPTIONS)


def autocorrelation(result, lag):
    draws = result["posterior"]["theta"].values
    centred = draws - draws.mean()
    return float((centred[:, lag:] * centred[:, :-lag]).mean() / (centred**2).mean())


# Bartlett's formula for an AR(1) with this coefficient: errors of its autocorrelations.
N_DRAWS = 20_000
LAG_ONE_ERROR = np.sqrt((1 - EXACT**2) / N_DRAWS)
LAG_TWO_ERROR = np.sqrt((1 - EXACT**2) * (1 + 3 * EXACT**2) / N_DRAWS)


def test_the_exact_fraction_is_found_from_any_sampler(result, model):
    found = missing_information(result, model, thin=5, random_seed=1)["theta"]
    error = float(found.sel(statistic="error"))
    assert error < 0.02
    assert abs(float(found.sel(statistic="fraction")) - EXACT) < 4 * error


def test_records_that_carry_no_information_are_noticed(result, model):
    # The same draws with records from elsewhere: the fraction must not be the exact one.
    shuffled = result.copy(deep=True)
    values = shuffled["posterior"]["x"].values
    shuffled["posterior"]["x"].values[:] = values[
        :, np.random.default_rng(3).permutation(N_DRAWS // 2)
    ]
    found = missing_information(shuffled, model, thin=5, random_seed=1)["theta"]
    error = float(found.sel(statistic="error"))
    assert abs(float(found.sel(statistic="fraction")) - EXACT) > 4 * error


def draw_x(rng, point):
    precision = 1 / S**2 + 1 / V**2
    mean = (point["theta"] / S**2 + RELEASED / V**2) / precision
    return {"x": rng.normal(mean, precision**-0.5, size=1)}


@pytest.mark.long
def test_two_exact_blocks_have_the_fraction_as_their_rate(model):
    with model:
        steps = [pmd.FunctionStep([model["x"]], draw_x), pmd.ConjugateStep([model["theta"]])]
        result = pm.sample(N_DRAWS // 2, step=steps, **OPTIONS)
    assert abs(autocorrelation(result, 1) - EXACT) < 4 * LAG_ONE_ERROR
    assert abs(autocorrelation(result, 2) - EXACT**2) < 4 * LAG_TWO_ERROR


def test_metropolis_on_the_records_shows_from_lag_two_on(result):
    # (theta_t, x_t+1) is a draw from the joint posterior whatever moves x, and theta_t+1 one from
    # p(theta | x_t+1): lag one can't tell. What follows is slower.
    assert abs(autocorrelation(result, 1) - EXACT) < 4 * LAG_ONE_ERROR
    assert autocorrelation(result, 2) > EXACT**2 + 4 * LAG_TWO_ERROR


@pytest.mark.long
def test_a_theta_that_is_not_drawn_anew_shows_at_lag_one(model):
    def metropolis(rng, point):
        theta = point["theta"]
        proposed = theta + rng.normal(0, 0.5)

        def energy(value):
            return value**2 / T**2 + (point["x"][0] - value) ** 2 / S**2

        accepted = -2 * np.log(rng.random()) > energy(proposed) - energy(theta)
        return {"theta": proposed if accepted else theta}

    with model:
        steps = [pmd.DapperStep([model["x"]]), pmd.FunctionStep([model["theta"]], metropolis)]
        result = pm.sample(1_000, step=steps, **OPTIONS)
    error = LAG_ONE_ERROR * np.sqrt(N_DRAWS / 2_000)
    assert autocorrelation(result, 1) > EXACT + 4 * error


@pytest.mark.long
def test_parameters_that_nuts_moves(model):
    with pm.Model() as other:
        theta = pm.StudentT("theta", nu=1e6, mu=0, sigma=T)
        x = pm.Normal("x", theta, S, shape=1)
        pmd.GaussianMechanism(sigma=V).potential("release", x.sum(), released=RELEASED)
        result = pmd.sample(2_000, keep_records=True, interweave=False, **OPTIONS)
    found = missing_information(result, other, thin=4, tune=200, random_seed=2)["theta"]
    error = float(found.sel(statistic="error"))
    assert abs(float(found.sel(statistic="fraction")) - EXACT) < 4 * error
    assert error < 0.05


def test_vectors_and_transformed_parameters_keep_their_dims():
    with pm.Model(coords={"cell": ["a", "b", "c"]}) as model:
        p = pm.Dirichlet("p", np.ones(3), dims="cell")
        x = pm.Categorical("x", p, shape=30)
        table = pmd.statistics.counts(x, 3)
        pmd.LaplaceMechanism(3.0).potential("release", table, released=[8.0, 12.0, 11.0])
        with evaluated_in_python():
            options = OPTIONS | {"tune": 20}
            result = pmd.sample(60, keep_records=True, interweave=False, **options)
            found = missing_information(result, model, thin=3, random_seed=2)
    assert found["p"].dims == ("statistic", "cell")
    assert list(found["p"]["cell"].values) == ["a", "b", "c"]
    assert np.all(found["p"].sel(statistic="fraction") < 1)


def test_what_it_needs_is_said(result, model):
    without = xr.DataTree.from_dict({"posterior": result["posterior"].dataset[["theta"]]})
    with pytest.raises(ValueError, match=r"no draws of 'x'.*keep_records=True"):
        missing_information(without, model)
    with pm.Model() as discrete:
        k = pm.DiscreteUniform("k", 0, 3)
        pm.Potential("privacy", -(pm.Normal("x", k, 1, shape=2).sum() ** 2))
    draws = {"k": (("chain", "draw"), np.ones((2, 20), int))}
    draws["x"] = (("chain", "draw", "record"), np.zeros((2, 20, 2)))
    kept = xr.DataTree.from_dict({"posterior": xr.Dataset(draws)})
    with pytest.raises(ValueError, match="'k' can't be drawn given the records"):
        missing_information(kept, discrete)
    for wrong, message in (
        ({"thin": 0}, "thin must be a whole number of at least 1, got 0"),
        ({"thin": 10**6}, r"thin=1000000 leaves 1 of \d+ draws of each chain, too few"),
        ({"thin": 2.5}, "thin must be a whole number of at least 1, got 2.5"),
        ({"sweeps": 0}, "sweeps must be a whole number of at least 1, got 0"),
        ({"tune": True}, "tune must be a whole number of at least 0, got True"),
        ({"random_seed": "a"}, "random_seed must be a whole number"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            missing_information(result, model, **wrong)
    with pytest.raises(TypeError, match="idata must be the DataTree that"):
        missing_information(result.posterior["theta"], model)
    with pytest.raises(TypeError, match=r"model must be a pm\.Model, got None|there is no model"):
        missing_information(result, None)
