"""Invariance of the exact conditional posterior, by enumeration through the compiled sweep."""

from itertools import product

import numpy as np
import pytest

from pymc_dapper import DapperStep, ReadingError
from pymc_dapper.reading import read_model
from pymc_dapper.records.compiled import sweep as compiled_sweep
from pymc_dapper.records.reading.plan import ByEntries
from tests import broken
from tests.admissions_and_tiny import (
    TABLE_PRIOR,
    TINY_PRIOR,
    WEIGHTS,
    tiny_cells_model,
    tiny_log_cells_mechanism,
    tiny_log_mechanism,
    tiny_log_norm_mechanism,
    tiny_log_table_mechanism,
    tiny_model,
    tiny_norm_model,
    tiny_table_model,
)
from tests.enumerate_sweep import transition_matrix
from tests.enumeration import conditional_posterior
from tests.long_cases import one_in_three
from tests.sweep_parts import PythonFunction, broken_parts, take_apart

PRIOR = np.array([1 - TINY_PRIOR, TINY_PRIOR])
# With the same weight for all records, what one contributes is looked up by its value.
EQUAL = np.array([1.5])
MODELS = {
    "one sum": (tiny_model, PRIOR, tiny_log_mechanism),
    "a table": (tiny_table_model, TABLE_PRIOR, tiny_log_table_mechanism),
    "in cells": (
        lambda: tiny_table_model(None),
        TABLE_PRIOR,
        lambda records: tiny_log_table_mechanism(records, np.ones(3)),
    ),
    "at two indices": (lambda: tiny_cells_model(3), TABLE_PRIOR, tiny_log_cells_mechanism),
    # Not read entry by entry.
    "a norm": (tiny_norm_model, PRIOR, tiny_log_norm_mechanism),
    "a norm by value": (
        lambda: tiny_norm_model(EQUAL),
        PRIOR,
        lambda records: tiny_log_norm_mechanism(records, np.repeat(EQUAL, 3)),
    ),
}
# Of fewer records: all their states don't take long in Python, either.
SMALLER = {
    "a table, two records": (
        lambda: tiny_table_model(WEIGHTS[:2], 2),
        TABLE_PRIOR,
        lambda records: tiny_log_table_mechanism(records, WEIGHTS[:2]),
    ),
    "in cells, two records": (
        lambda: tiny_table_model(None, 2),
        TABLE_PRIOR,
        lambda records: tiny_log_table_mechanism(records, np.ones(2)),
    ),
    "at two indices, two records": (
        lambda: tiny_cells_model(2),
        TABLE_PRIOR,
        tiny_log_cells_mechanism,
    ),
}
FAULTS = ["UPSIDE_DOWN", "ACCEPT_ALL", "FLATTENED", "STALE_SUMS"]


def invariance_error(decide, name):
    """Largest change that one sweep makes to the exact conditional posterior."""
    _, prior, log_mechanism = (MODELS | SMALLER)[name]
    n_records = 2 if name in SMALLER else 3
    posterior = conditional_posterior(prior, log_mechanism, n_records=n_records)
    proposal_probabilities = prior[posterior.states].prod(axis=1)
    matrix = transition_matrix(decide, posterior.states, proposal_probabilities)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    return np.abs(posterior.probabilities @ matrix - posterior.probabilities).max()


def reading_of(name):
    model = (MODELS | SMALLER)[name][0]()
    return read_model(model, model.value_vars, model.initial_point())


@pytest.mark.parametrize(
    "name",
    one_in_three(["a table", "one sum", "a norm", "a norm by value", "in cells", "at two indices"]),
)
def test_a_sweep_leaves_the_exact_conditional_posterior_invariant(name):
    """As compiled; which does the same as the kernel in Python does, where faults are put below."""
    reading = reading_of(name)
    compiled = take_apart(reading).decide
    assert invariance_error(compiled, name) < 1e-10
    in_python, rng = take_apart(reading, function=PythonFunction).decide, np.random.default_rng(1)
    outcomes = []
    for _ in range(100):
        states = rng.integers(len(MODELS[name][1]), size=(2, 3))
        log_uniforms = -rng.standard_exponential(3)
        outcomes.append(compiled(*states, log_uniforms))
        for x, y in zip(outcomes[-1], in_python(*states, log_uniforms), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
    assert 0 < np.mean([accepted for _, accepted, _ in outcomes]) < 1


@pytest.mark.parametrize(
    ("fault", "name"),
    one_in_three(
        [
            ("ONE_COLUMN_FORGOTTEN", "in cells, two records"),
            *product(FAULTS, ["a norm", "a norm by value"]),
            *product([*FAULTS, "STALE_TERMS"], ["one sum", *SMALLER]),
        ]
    ),
)
def test_a_broken_sweep_does_not(fault, name):
    decide = broken_parts(reading_of(name), getattr(broken, fault)).decide
    assert invariance_error(decide, name) > 1e-4


@pytest.mark.parametrize("name", [*SMALLER, "one sum", "a norm", "a norm by value"])
def test_a_sweep_in_python_leaves_it_invariant_too(name):
    decide = take_apart(reading_of(name), function=PythonFunction).decide
    assert invariance_error(decide, name) < 1e-10


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("FIRST_ENTRY_ONLY", "a table"),
        ("ONE_VALUE_LATER", "in cells"),
        ("STALE_SUMS", "a table"),
    ],
)
def test_a_sweep_with_other_sums_is_refused_before_it_runs(fault, name, monkeypatch):
    monkeypatch.setattr(compiled_sweep, "JitFunction", PythonFunction)
    model = MODELS[name][0]()
    with (
        broken.in_place(getattr(broken, fault)),
        pytest.raises(ReadingError, match="the compiled sweep gives the log-density"),
    ):
        DapperStep([model["record"]], model=model)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_read_entry_by_entry(name):
    # So that the steps above sweep by entries, or don't.
    assert isinstance(reading_of(name).plan, ByEntries) != name.startswith("a norm")


def test_proposals_follow_the_records_prior():
    # The matrix above takes the proposals' law for granted.
    model = tiny_model()
    reading = read_model(model, model.value_vars, model.initial_point())
    propose = take_apart(reading, function=PythonFunction).propose
    rng = np.random.default_rng(20)
    draws = np.array([propose(rng)[0] for _ in range(20_000)])
    error = np.sqrt(TINY_PRIOR * (1 - TINY_PRIOR) / len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - TINY_PRIOR) < 4 * error)
    # Records are proposed independently of each other.
    correlations = np.corrcoef(draws.T)[np.triu_indices(3, k=1)]
    assert np.all(np.abs(correlations) < 4 / np.sqrt(len(draws)))
