"""Sweeps whose contributions are computed for some records at a time."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.reading import read_model
from pymc_dapper.records.compiled import sweep as compiled_sweep
from pymc_dapper.records.compiled.op import BlockSweep
from pymc_dapper.records.compiled.sweep import sweep_graph
from pymc_dapper.reference import conditional_posterior
from pymc_dapper.steps.data import SharedData
from tests import broken
from tests.enumerate_sweep import transition_matrix
from tests.long_cases import one_in_three
from tests.models import (
    TABLE_PRIOR,
    TABLE_RELEASED,
    TINY_PRIOR,
    WEIGHTS,
    tiny_log_mechanism,
    tiny_log_table_mechanism,
    tiny_model,
    tiny_table_model,
)
from tests.records.forms import FORMS
from tests.sweep_parts import take_apart


def read(model):
    records = [x for x in model.free_RVs if x.name.startswith("record")]
    return read_model(model, [model.rvs_to_values[x] for x in records], model.initial_point())


def rows_of(reading):
    """How the sweep makes rows of contributions: by entry, by array, or not for blocks."""
    graph = sweep_graph(reading, numba_mode(None))
    node = graph.accepted.owner
    if node is None or not isinstance(node.op, BlockSweep):
        return "whole"
    return "by array" if node.op.places is None else "by entry"


@pytest.fixture
def by_array(monkeypatch):
    monkeypatch.setattr(compiled_sweep, "rows_by_entry", lambda *arguments: None)


def in_blocks_of(n, monkeypatch):
    monkeypatch.setattr(compiled_sweep, "RECORDS_IN_BLOCK", n)


@pytest.mark.parametrize(
    ("name", "rows"),
    one_in_three(
        [
            ("dims_and_shared_data", "by entry"),
            ("matrix_of_records", "by entry"),
            ("ratio", "by entry"),
            ("ratio", "by array"),
            ("dims_and_shared_data", "by array"),
            ("cross_product_of_records", "by array"),
            ("non_centred", "by entry"),
            ("clipped_and_weighted", "by entry"),
            ("records_that_depend_on_records", "by entry"),
            ("non_centred", "by array"),
            ("einsum", "by array"),
            ("records_that_depend_on_records", "by array"),
        ]
    ),
)
def test_blocks_decide_as_the_whole_does(name, rows, request, monkeypatch):
    model = FORMS[name]()
    reading, point = read(model), model.initial_point()
    with monkeypatch.context() as patch:
        # Nor entry by entry: another loop than that of the blocks.
        for read_ in ("rows_by_entry", "read_entrywise"):
            patch.setattr(compiled_sweep, read_, lambda *arguments: None)
        assert rows_of(reading) == "whole"
        whole = take_apart(reading)
    if rows == "by array":
        request.getfixturevalue("by_array")
    in_blocks_of(3, monkeypatch)
    assert rows_of(reading) == rows
    blocks = take_apart(reading)
    given = [np.asarray(point[x.name]) for x in reading.parameters] + SharedData(reading).values
    rng = np.random.default_rng(1)
    outcomes = []
    for _ in range(30):
        present, proposed = whole.propose(rng, *given), whole.propose(rng, *given)
        log_uniforms = -rng.standard_exponential(reading.n_records)
        a, b = (each.decide(*present, *proposed, log_uniforms, *given) for each in (whole, blocks))
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
        outcomes.append(a[-2])
    assert 0 < np.mean(outcomes) < 1


def counted_by_comparing():
    """As the table model, but the counts are known by entry."""
    with pm.Model() as model:
        record = pm.Categorical("record", p=TABLE_PRIOR, shape=3)
        table = (WEIGHTS[:, None] * pt.eq(record[:, None], np.arange(3))).sum(axis=0)
        pm.Potential("privacy", -pt.abs(TABLE_RELEASED - table).sum() / 1.5)
    return model


OF_TINY_MODEL = np.array([1 - TINY_PRIOR, TINY_PRIOR])
MODELS = {
    "one sum by entry": (tiny_model, OF_TINY_MODEL, tiny_log_mechanism),
    "a table by entry": (counted_by_comparing, TABLE_PRIOR, tiny_log_table_mechanism),
    "a table by array": (tiny_table_model, TABLE_PRIOR, tiny_log_table_mechanism),
}


@pytest.fixture
def of_two(monkeypatch):
    in_blocks_of(2, monkeypatch)


def invariance_error(name, fault=None):
    """Largest change that one sweep makes to the exact conditional posterior."""
    build, prior, log_mechanism = MODELS[name]
    reading = read(build())
    assert name.endswith(rows_of(reading))
    posterior = conditional_posterior(prior, log_mechanism, n_records=3)
    proposal_probabilities = prior[posterior.states].prod(axis=1)
    decide = take_apart(reading, fault=fault).decide
    matrix = transition_matrix(decide, posterior.states, proposal_probabilities)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    return np.abs(posterior.probabilities @ matrix - posterior.probabilities).max()


@pytest.mark.parametrize("name", MODELS)
def test_blocks_leave_the_exact_conditional_posterior_invariant(name, of_two):
    assert invariance_error(name) < 1e-10


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (broken.FORGETFUL_BLOCKS, "a table by entry"),
        (broken.UNCHANGED_BLOCKS, "a table by array"),
    ],
    ids=["forgetful", "unchanged"],
)
def test_broken_blocks_do_not(fault, name, of_two):
    assert invariance_error(name, fault) > 1e-4


def test_records_are_swept_by_blocks_unless_their_values_are_few(by_array):
    """What isn't known by entry, only where there are more records than a block has."""

    def reading(n, few_values):
        with pm.Model() as model:
            if few_values:
                record = pt.eye(3)[pm.Categorical("record", np.ones(3) / 3, shape=n)]
            else:
                record = pm.Normal("record", shape=(n, 3))
            pm.Potential("privacy", -pt.abs(record.sum(axis=0) - 1.0).sum())
        return read(model)

    assert rows_of(reading(10_000, False)) == "by array"
    assert rows_of(reading(1_000, False)) == "whole"
    assert rows_of(reading(10_000, True)) == "whole"


def test_a_matrix_of_shared_covariates_is_known_by_entry():
    """Its number of columns isn't part of its type: it is that of the present data."""
    with pm.Model() as model:
        design = pm.Data("design", np.ones((9, 2)))
        record = pm.Normal("record", design @ np.array([0.5, -1.0]), shape=9)
        pm.Potential("privacy", -pt.abs(design.T @ record - 1.0).sum())
    assert rows_of(read(model)) == "by entry"
