"""The admissions table as latent counts, against the exact posterior and against latent records."""

from operator import itemgetter

import numpy as np
import pymc as pm
import pytest

from pymc_dapper import DapperStep
from pymc_dapper.counts.step import CountStep
from pymc_dapper.reference import TablePosterior, gaussian_cell_loglik
from tests.admissions_and_tiny import (
    N_APPLICANTS,
    RELEASED,
    SIGMA,
    admissions_model,
    admissions_table,
)
from tests.monte_carlo import smallest_ess, z_scores
from tests.statistical.parameters import counted, probabilities

pytestmark = pytest.mark.long


def log_odds_ratio(model, step, counts):
    with model:
        steps = [step, probabilities(model, counts)]
        draws = pm.sample(
            draws=4_000,
            tune=500,
            chains=2,
            cores=1,
            step=steps,
            random_seed=4,
            var_names=["p", "log_odds_ratio"],
            progressbar=False,
        ).posterior["log_odds_ratio"]
    return draws.values


@pytest.fixture(scope="module")
def by_counts():
    model = admissions_table()
    return log_odds_ratio(model, CountStep([model["x"]], model=model), itemgetter("x"))


def test_counts_give_the_exact_posterior(by_counts):
    exact = TablePosterior(np.ones(4), gaussian_cell_loglik(RELEASED, SIGMA, N_APPLICANTS))
    z = z_scores(by_counts, exact.log_odds_ratio())
    assert smallest_ess(by_counts) >= 1_000
    assert max(abs(value) for value in z.values()) < 4, z


def test_counts_and_records_agree(by_counts):
    model = admissions_model(shared=True)
    by_records = log_odds_ratio(model, DapperStep([model["record"]], model=model), counted)
    error = [x.std() / np.sqrt(smallest_ess(x)) for x in (by_counts, by_records)]
    assert abs(by_counts.mean() - by_records.mean()) < 4 * np.hypot(*error)
