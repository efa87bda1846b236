"""Invariance of the exact conditional posterior, by enumeration through the compiled sweep."""

import numpy as np
import pytest

from pymc_dapper import DapperStep, ReadingError
from pymc_dapper.reading import read_model
from pymc_dapper.records.compiled.op import EntrySweep, RecordSweep
from pymc_dapper.records.reading.entrywise import read_entrywise
from pymc_dapper.reference import conditional_posterior
from tests import broken
from tests.enumerate_sweep import transition_matrix
from tests.models import (
    TABLE_PRIOR,
    TINY_PRIOR,
    tiny_log_mechanism,
    tiny_log_table_mechanism,
    tiny_model,
    tiny_table_model,
)
from tests.sweep_parts import parts_of, take_apart

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


def invariance_error(decide, name):
    """Largest change that one sweep makes to the exact conditional posterior."""
    _, prior, log_mechanism = MODELS[name]
    posterior = conditional_posterior(prior, log_mechanism, n_records=3)
    proposal_probabilities = prior[posterior.states].prod(axis=1)
    matrix = transition_matrix(decide, posterior.states, proposal_probabilities)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    return np.abs(posterior.probabilities @ matrix - posterior.probabilities).max()


def of_users(step_class, name):
    """What decides in the sweep of a step."""
    model = MODELS[name][0]()
    return parts_of(step_class([model["record"]], model=model)).decide


def of_broken(kernel, name, of=RecordSweep):
    """What decides in a broken sweep, which users don't have: nothing else is compiled."""
    model = MODELS[name][0]()
    reading = read_model(model, model.value_vars, model.initial_point())
    return take_apart(reading, broken.broken_step(kernel, of=of)._sweep_op).decide


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (DapperStep, "one sum"),
        (DapperStep, "a table"),
        (DapperStep, "by value"),
        (broken.general_step(), "one sum"),
        pytest.param(broken.general_step(), "a table", marks=pytest.mark.long),
        (broken.general_step(), "by value"),
    ],
)
def test_a_sweep_leaves_the_exact_conditional_posterior_invariant(step, name):
    assert invariance_error(of_users(step, name), name) < 1e-10


@pytest.mark.parametrize(
    "kernel", [broken.stale_sums, broken.upside_down, broken.accept_all, broken.flattened]
)
def test_a_broken_sweep_does_not(kernel):
    assert invariance_error(of_broken(kernel, "one sum"), "one sum") > 1e-4


@pytest.mark.parametrize(
    "kernel",
    [broken.stale_terms, broken.upside_down_terms, broken.flattened_terms],
)
def test_nor_does_a_broken_sweep_entry_by_entry(kernel):
    assert invariance_error(of_broken(kernel, "a table", of=EntrySweep), "a table") > 1e-4


def test_nor_does_a_broken_sweep_by_value():
    decide = of_broken(broken.one_column_forgotten, "by value", of=EntrySweep)
    assert invariance_error(decide, "by value") > 1e-4


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
        reading = read_model(model, model.value_vars, model.initial_point())
        assert read_entrywise(reading.additive_factors) is not None


def test_proposals_follow_the_records_prior():
    # The matrix above takes the proposals' law for granted.
    model = tiny_model()
    propose = take_apart(read_model(model, model.value_vars, model.initial_point())).propose
    rng = np.random.default_rng(20)
    draws = np.array([propose(rng)[0] for _ in range(20_000)])
    error = np.sqrt(TINY_PRIOR * (1 - TINY_PRIOR) / len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - TINY_PRIOR) < 4 * error)
    # Records are proposed independently of each other.
    correlations = np.corrcoef(draws.T)[np.triu_indices(3, k=1)]
    assert np.all(np.abs(correlations) < 4 / np.sqrt(len(draws)))
