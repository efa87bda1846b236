"""Invariance of the exact conditional posterior, by enumeration through the compiled sweep."""

import numpy as np
import pytest

from pymc_dapper import DapperStep
from pymc_dapper.reference import conditional_posterior
from tests import broken
from tests.enumerate_sweep import transition_matrix
from tests.models import TINY_PRIOR, tiny_log_mechanism, tiny_model

PRIOR = np.array([1 - TINY_PRIOR, TINY_PRIOR])


def invariance_error(step_class):
    """Largest change that one sweep makes to the exact conditional posterior."""
    model = tiny_model()
    step = step_class([model["record"]], model=model)
    posterior = conditional_posterior(PRIOR, tiny_log_mechanism, n_records=3)
    proposal_probabilities = PRIOR[posterior.states].prod(axis=1)
    matrix = transition_matrix(step.sweep.decide, posterior.states, proposal_probabilities)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    return np.abs(posterior.probabilities @ matrix - posterior.probabilities).max()


def test_a_sweep_leaves_the_exact_conditional_posterior_invariant():
    assert invariance_error(DapperStep) < 1e-10


@pytest.mark.parametrize(
    "kernel", [broken.stale_sums, broken.upside_down, broken.accept_all, broken.flattened]
)
def test_a_broken_sweep_does_not(kernel):
    assert invariance_error(broken.broken_step(kernel)) > 1e-4


def test_proposals_follow_the_records_prior():
    # The matrix above takes the proposals' law for granted.
    model = tiny_model()
    step = DapperStep([model["record"]], model=model)
    rng = np.random.default_rng(20)
    draws = np.array([step.sweep.propose(rng)[0] for _ in range(20_000)])
    error = np.sqrt(TINY_PRIOR * (1 - TINY_PRIOR) / len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - TINY_PRIOR) < 4 * error)
    # Records are proposed independently of each other.
    correlations = np.corrcoef(draws.T)[np.triu_indices(3, k=1)]
    assert np.all(np.abs(correlations) < 4 / np.sqrt(len(draws)))
