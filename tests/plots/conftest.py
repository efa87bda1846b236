"""A small model of a noisy table, its posterior with tracked records, and its prior."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from tests.evaluated_in_python import evaluated_in_python

EPSILON = 0.5


@pytest.fixture(scope="session")
def private():
    with evaluated_in_python(), pm.Model(coords={"cell": ["a", "b", "c"]}):
        p = pm.Dirichlet("p", np.ones(3), dims="cell")
        record = pm.Categorical("record", p=p, shape=30)
        mechanism = pmd.LaplaceMechanism.calibrate(pmd.PureDP(EPSILON), sensitivity=2)
        counts = pmd.statistics.counts(record, 3)
        mechanism.potential("release", counts, released=np.array([14.0, 11.0, 4.0]))
        pm.Deterministic("log_odds", pm.math.log(p[0] / p[1]))
        result = pmd.sample(
            200,
            tune=50,
            chains=2,
            cores=1,
            interweave=False,
            dapper={"track_records": True},
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
        with warnings.catch_warnings():
            # The prior of p is asked for, without the mechanism.
            warnings.filterwarnings("ignore", "The effect of Potentials", UserWarning)
            prior = pm.sample_prior_predictive(
                300,
                var_names=["p", "log_odds"],
                random_seed=2,
                compile_kwargs={"mode": "FAST_COMPILE"},
            )
    result.update(prior)
    return result


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")
