"""What PyMC does to a model with a release, and to its draws, beside sampling."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from pymc.model.transform.optimization import freeze_dims_and_data

import pymc_dapper as pmd
from tests.evaluated_in_python import evaluated_in_python

PYTHON = {"mode": "FAST_COMPILE"}
MECHANISM = pmd.DiscreteLaplaceMechanism(2.0)
RELEASED = np.array([4, 9])


def table():
    with pm.Model(coords={"cell": ["a", "b"]}) as model:
        p = pm.Dirichlet("p", np.ones(2), dims="cell")
        record = pm.Categorical("record", p, shape=12)
        counts = pmd.statistics.counts(record, 2)
        MECHANISM.observe("released", counts, released=RELEASED, dims="cell")
    return model


def draws_of_records(n=2_000):
    """Draws as sampling gives them, of any distribution."""
    rng = np.random.default_rng(1)
    return az.from_dict(
        {
            "posterior": {
                "p": rng.dirichlet([1, 1], size=(1, n)),
                "record": rng.integers(0, 2, size=(1, n, 12)),
            }
        }
    )


def counted(record):
    return np.stack([(record == k).sum(-1) for k in (0, 1)], axis=-1)


@pytest.mark.parametrize("broken", [False, True])
def test_replicated_releases_are_the_counts_of_their_draw_and_noise(broken):
    idata = draws_of_records()
    with table():
        replicated = pm.sample_posterior_predictive(
            idata, random_seed=2, progressbar=False, compile_kwargs=PYTHON
        ).posterior_predictive["released"]
    assert replicated.dims == ("chain", "draw", "cell")
    noise = (replicated.values - counted(idata.posterior["record"].values))[0]
    if broken:
        noise = replicated.values[0] - counted(idata.posterior["record"].values[0, ::-1])
    # Of discrete Laplace noise of scale 2: its mean, and its variance.
    q = np.exp(-1 / 2)
    variance, n = 2 * q / (1 - q) ** 2, noise.size
    kurtosis = 6  # about that of Laplace noise: it says how far a variance may be off
    assert abs(noise.mean()) < 4 * np.sqrt(noise.var() / n)
    off = abs(noise.var() / variance - 1) / np.sqrt((kurtosis - 1) / n)
    assert (off < 4) != broken


def test_the_log_likelihood_is_the_mechanisms_given_the_records_of_each_draw():
    idata = draws_of_records(5)
    with table():
        pm.compute_log_likelihood(idata, progressbar=False, compile_kwargs=PYTHON)
    found = idata.log_likelihood["released"].values[0]
    counts = counted(idata.posterior["record"].values)[0]
    expected = [MECHANISM.logp(RELEASED, n).eval(mode="FAST_COMPILE") for n in counts]
    np.testing.assert_allclose(found.reshape(5, -1).sum(1), np.sum(expected, axis=1), rtol=1e-12)


def sampled(model, **options):
    with evaluated_in_python():
        return pmd.sample(
            4,
            tune=2,
            chains=1,
            cores=1,
            model=model,
            random_seed=3,
            compute_convergence_checks=False,
            progressbar=False,
            **options,
        ).posterior["p"]


def generative():
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        MECHANISM.generate("released", pm.Bernoulli("record", p, shape=5).sum())
    return model


def test_a_model_that_was_conditioned_or_frozen_or_is_for_another_backend_has_the_same_draws():
    with pm.Model() as at_once:
        p = pm.Beta("p", 1, 1)
        MECHANISM.observe("released", pm.Bernoulli("record", p, shape=5).sum(), released=3)
    drawn = sampled(at_once).values
    conditioned = pm.observe(generative(), {"released": 3})
    np.testing.assert_array_equal(sampled(conditioned).values, drawn)
    frozen = freeze_dims_and_data(conditioned)
    np.testing.assert_array_equal(sampled(frozen, backend="c").values, drawn)
