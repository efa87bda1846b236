"""A quantile of records: the sweep leaves an enumerated posterior as it is, broken ones do not.

Records are real numbers. A sweep sees only which cell they lie in, so it is enumerated at a number
in some of the cells below, at and between the candidates.
"""

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper.records.reading.ranks import ByRanks
from tests import broken
from tests.enumerate_sweep import transition_matrix
from tests.enumeration import conditional_posterior
from tests.evaluated_in_python import evaluated_in_python
from tests.sweep_parts import PythonFunction, broken_parts, parts_of

CANDIDATES, ALPHA, SCALE = [1.0, 2.0], 0.4, 0.7
VALUES = np.array([0.0, 1.5, 2.0])
PRIOR = np.array([0.3, 0.5, 0.2])
N = 2


def step_of(noise):
    mechanism = pmd.QuantileMechanism(CANDIDATES, ALPHA, SCALE, noise)
    with pm.Model() as model:
        x = pm.Normal("x", 1.0, 1.0, shape=N)
        mechanism.observe("quantile", mechanism.statistic(x), released=2.0)
    with evaluated_in_python():
        return pmd.DapperStep([x], model=model)


def log_probability(noise, x):
    """By the definition: the smallest noisy score; by permute and flip for exponential noise."""
    below, above = ([np.sum(x < c), np.sum(x > c)] for c in CANDIDATES)
    first, second = (abs((1 - ALPHA) * b - ALPHA * a) / SCALE for b, a in (below, above))
    if noise == "gumbel":
        return -np.logaddexp(0, second - first)
    # With two candidates: the better one is first with probability 1/2, and else flips.
    gap = np.exp(-abs(first - second))
    return np.log(1 - gap / 2 if second <= first else gap / 2)


def error(decide, noise):
    """Largest change that a sweep makes to the exact posterior."""
    posterior = conditional_posterior(
        PRIOR, lambda x: log_probability(noise, VALUES[list(x)]), n_records=N
    )

    def on_numbers(state, proposal, log_uniforms):
        records, *outcome = decide(VALUES[state], VALUES[proposal], log_uniforms)
        return np.searchsorted(VALUES, records), *outcome

    probabilities = PRIOR[posterior.states].prod(axis=1)
    matrix = transition_matrix(on_numbers, posterior.states, probabilities)
    return np.abs(posterior.probabilities @ matrix - posterior.probabilities).max()


@pytest.mark.parametrize("noise", ["gumbel", "exponential"])
def test_a_sweep_leaves_the_posterior_invariant(noise):
    step = step_of(noise)
    assert isinstance(step._reading.plan, ByRanks)
    assert "which of 5 intervals between candidates" in step.describe()
    decide = parts_of(step, PythonFunction).decide
    assert error(decide, noise) < 1e-10
    assert error(decide, {"gumbel": "exponential", "exponential": "gumbel"}[noise]) > 1e-3


STALE = {"log_now = log_new": "pass"}
NOT_MOVED_BACK = {"move(releases, b, a, distances, first, stop)": "pass"}


@pytest.mark.parametrize("fault", [STALE, NOT_MOVED_BACK, broken.UPSIDE_DOWN, broken.ACCEPT_ALL])
def test_a_broken_sweep_is_detected(fault):
    assert error(broken_parts(step_of("gumbel")._reading, fault).decide, "gumbel") > 1e-3
