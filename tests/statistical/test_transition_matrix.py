"""Invariance of the exact conditional posterior, by enumeration through the compiled sweep."""

from itertools import product

import numpy as np
import pytest

from pymc_dapper import DapperStep, ReadingError
from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.plan import ByEntries
from pymc_dapper.reference import conditional_posterior
from tests import broken
from tests.enumerate_sweep import transition_matrix
from tests.models import (
    TABLE_PRIOR,
    TINY_PRIOR,
    tiny_log_mechanism,
    tiny_log_norm_mechanism,
    tiny_log_table_mechanism,
    tiny_model,
    tiny_norm_model,
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
    # Not read entry by entry.
    "a norm": (tiny_norm_model, PRIOR, tiny_log_norm_mechanism),
    "a norm by value": (
        lambda: tiny_norm_model(EQUAL),
        PRIOR,
        lambda records: tiny_log_norm_mechanism(records, np.repeat(EQUAL, 3)),
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


def reading_of(name):
    model = MODELS[name][0]()
    return read_model(model, model.value_vars, model.initial_point())


@pytest.mark.parametrize("name", MODELS)
def test_a_sweep_leaves_the_exact_conditional_posterior_invariant(name):
    model = MODELS[name][0]()
    step = DapperStep([model["record"]], model=model)
    assert invariance_error(parts_of(step).decide, name) < 1e-10


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        *product(["STALE_SUMS", "UPSIDE_DOWN", "ACCEPT_ALL", "FLATTENED"], ["a norm"]),
        *product(["STALE_TERMS", "UPSIDE_DOWN", "FLATTENED"], ["a table"]),
        ("ONE_COLUMN_FORGOTTEN", "by value"),
    ],
)
def test_a_broken_sweep_does_not(fault, name):
    decide = take_apart(reading_of(name), fault=getattr(broken, fault)).decide
    assert invariance_error(decide, name) > 1e-4


@pytest.mark.parametrize(
    ("fault", "name"), [("FIRST_ENTRY_ONLY", "a table"), ("ONE_VALUE_LATER", "by value")]
)
def test_a_sweep_that_sees_other_entries_is_refused_before_it_runs(fault, name):
    model = MODELS[name][0]()
    step_class = broken.broken_step(getattr(broken, fault))
    with pytest.raises(ReadingError, match="the compiled sweep gives the log-density"):
        step_class([model["record"]], model=model)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_read_entry_by_entry(name):
    # So that the steps above sweep by entries, or don't.
    assert isinstance(reading_of(name).plan, ByEntries) != name.startswith("a norm")


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
