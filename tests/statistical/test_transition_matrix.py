"""Invariance of the exact conditional posterior, by enumeration through the compiled sweep."""

import numpy as np
import pytest

from pymc_dapper import DapperStep, ReadingError
from pymc_dapper.compiled.sweep_op import EntrySweep
from pymc_dapper.reading.entrywise import read_entrywise
from pymc_dapper.reference import conditional_posterior
from tests import broken
from tests.enumerate_sweep import transition_matrix
from tests.halves import halves
from tests.models import (
    TABLE_PRIOR,
    TINY_PRIOR,
    tiny_log_mechanism,
    tiny_log_table_mechanism,
    tiny_model,
    tiny_table_model,
)

PRIOR = np.array([1 - TINY_PRIOR, TINY_PRIOR])
# With the same weight for all records, what one contributes is looked up by its value.
EQUAL = np.array([1.5])
MODELS = {
    "one sum": (tiny_model, PRIOR, tiny_log_mechanism),
    "a table": (tiny_table_model, TABLE_PRIOR, tiny_log_table_mechanism),
    "by value": (
        lambda: tiny_table_model(EQUAL),
        TABLE_PRIOR,
        lambda records: tiny_log_table_mechanism(records, np.repeat(EQUAL, 3)),
    ),
}


def invariance_error(step_class, name):
    """Largest change that one sweep makes to the exact conditional posterior."""
    build, prior, log_mechanism = MODELS[name]
    model = build()
    step = step_class([model["record"]], model=model)
    posterior = conditional_posterior(prior, log_mechanism, n_records=3)
    proposal_probabilities = prior[posterior.states].prod(axis=1)
    matrix = transition_matrix(halves(step).decide, posterior.states, proposal_probabilities)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    return np.abs(posterior.probabilities @ matrix - posterior.probabilities).max()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("step", [DapperStep, broken.general_step()], ids=["entries", "general"])
def test_a_sweep_leaves_the_exact_conditional_posterior_invariant(step, name):
    assert invariance_error(step, name) < 1e-10


@pytest.mark.parametrize(
    "kernel", [broken.stale_sums, broken.upside_down, broken.accept_all, broken.flattened]
)
def test_a_broken_sweep_does_not(kernel):
    assert invariance_error(broken.broken_step(kernel), "one sum") > 1e-4


@pytest.mark.parametrize(
    "kernel",
    [broken.stale_terms, broken.upside_down_terms, broken.flattened_terms],
)
def test_nor_does_a_broken_sweep_entry_by_entry(kernel):
    assert invariance_error(broken.broken_step(kernel, of=EntrySweep), "a table") > 1e-4


def test_nor_does_a_broken_sweep_by_value():
    step_class = broken.broken_step(broken.one_column_forgotten, of=EntrySweep)
    assert invariance_error(step_class, "by value") > 1e-4


@pytest.mark.parametrize(
    ("kernel", "name"), [(broken.one_entry, "a table"), (broken.one_value_later, "by value")]
)
def test_a_sweep_that_sees_other_entries_is_refused_before_it_runs(kernel, name):
    model = MODELS[name][0]()
    step_class = broken.broken_step(kernel, of=EntrySweep)
    with pytest.raises(ReadingError, match="the compiled sweep gives the log-density"):
        step_class([model["record"]], model=model)


def test_all_models_are_read_entry_by_entry():
    # So that the default step above is the one that sweeps by entries.
    for build, _, _ in MODELS.values():
        model = build()
        reading = DapperStep([model["record"]], model=model)._reading
        assert read_entrywise(reading.additive_factors) is not None


def test_proposals_follow_the_records_prior():
    # The matrix above takes the proposals' law for granted.
    model = tiny_model()
    step = DapperStep([model["record"]], model=model)
    rng = np.random.default_rng(20)
    draws = np.array([halves(step).propose(rng)[0] for _ in range(20_000)])
    error = np.sqrt(TINY_PRIOR * (1 - TINY_PRIOR) / len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - TINY_PRIOR) < 4 * error)
    # Records are proposed independently of each other.
    correlations = np.corrcoef(draws.T)[np.triu_indices(3, k=1)]
    assert np.all(np.abs(correlations) < 4 / np.sqrt(len(draws)))
