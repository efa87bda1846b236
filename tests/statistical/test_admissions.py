"""DapperStep on the admissions table, against the exact posterior."""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper import DapperStep
from pymc_dapper.reference import TablePosterior, gaussian_cell_loglik
from tests import broken
from tests.admissions_and_tiny import N_APPLICANTS, RELEASED, SIGMA, admissions_model
from tests.monte_carlo import smallest_ess, z_scores
from tests.statistical.parameters import counted, probabilities

OTHER_RELEASE = np.array([60.0, 180.0, 90.0, 75.0])


def sample(model, step, draws):
    with model:
        return pm.sample(
            draws=draws,
            tune=500,
            chains=2,
            cores=1,
            step=[step, probabilities(model, counted)],
            random_seed=3,
            var_names=["p", "log_odds_ratio"],
            progressbar=False,
        ).posterior


def deviations(posterior, released):
    """z-scores of each cell and of the log odds ratio, and the fewest effective draws."""
    exact = TablePosterior(np.ones(4), gaussian_cell_loglik(released, SIGMA, N_APPLICANTS))
    draws = {cell: posterior["p"].values[..., cell] for cell in range(4)}
    draws["log_odds_ratio"] = posterior["log_odds_ratio"].values
    answers = {cell: exact.cell(cell) for cell in range(4)} | {
        "log_odds_ratio": exact.log_odds_ratio()
    }
    z = {(name, k): v for name in draws for k, v in z_scores(draws[name], answers[name]).items()}
    return z, min(smallest_ess(x) for x in draws.values())


@pytest.fixture(scope="module")
def model():
    return admissions_model(shared=True)


@pytest.fixture(scope="module")
def step(model):
    return DapperStep([model["record"]], model=model)


@pytest.mark.parametrize(
    "released",
    [
        pytest.param(RELEASED, id="paper"),
        pytest.param(OTHER_RELEASE, id="other", marks=pytest.mark.long),
    ],
)
def test_one_step_gives_the_exact_posterior_of_each_release(model, step, released):
    # The step was built before the data were set.
    with model:
        pm.set_data({"released": released})
    z, ess = deviations(sample(model, step, draws=2_500), released)
    assert ess >= 1_000
    assert max(abs(value) for value in z.values()) < 4, z


@pytest.mark.long
def test_a_mechanism_with_the_wrong_noise_is_told_from_the_exact_posterior(model):
    with model:
        pm.set_data({"released": RELEASED})
    step = broken.broken_step(broken.FLATTENED)([model["record"]], model=model)
    z, _ = deviations(sample(model, step, draws=2_500), RELEASED)
    assert max(abs(value) for value in z.values()) > 4
