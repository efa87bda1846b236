"""Sweeps whose contributions are computed for some records at a time."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numba import njit

from pymc_dapper.compiled import sweep as compiled_sweep
from pymc_dapper.compiled.data import SharedData
from pymc_dapper.compiled.functions import numba_mode
from pymc_dapper.compiled.sweep import sweep_graph
from pymc_dapper.compiled.sweep_op import BlockSweep
from pymc_dapper.kernels.block_sweep import sweep_by_blocks
from pymc_dapper.kernels.entry_sweep import go_on_by_entries
from pymc_dapper.reading import read_model
from pymc_dapper.reference import conditional_posterior
from tests.enumerate_sweep import transition_matrix
from tests.halves import take_apart
from tests.models import (
    TABLE_PRIOR,
    TINY_PRIOR,
    tiny_log_mechanism,
    tiny_log_table_mechanism,
    tiny_model,
    tiny_table_model,
)
from tests.reading.forms import FORMS


def read(model):
    records = [x for x in model.free_RVs if x.name.startswith("record")]
    return read_model(model, [model.rvs_to_values[x] for x in records], model.initial_point())


def uses_blocks(reading, **options):
    graph = sweep_graph(reading, numba_mode(None), **options)
    node = graph.accepted.owner
    return node is not None and isinstance(node.op, BlockSweep)


@pytest.mark.parametrize(
    "name",
    [
        "matrix_of_records",
        "records_that_depend_on_records",
        "dims_and_shared_data",
        "non_centred",
        "einsum",
        "cross_product_of_records",
        "ratio",
    ],
)
def test_blocks_decide_as_the_whole_does(name):
    model = FORMS[name]()
    reading, point = read(model), model.initial_point()
    assert uses_blocks(reading, records_in_block=3)
    assert not uses_blocks(reading)
    whole, blocks = take_apart(reading), take_apart(reading, records_in_block=3)
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


MODELS = {
    "one sum": (tiny_model, np.array([1 - TINY_PRIOR, TINY_PRIOR]), tiny_log_mechanism),
    "a table": (tiny_table_model, TABLE_PRIOR, tiny_log_table_mechanism),
}


def invariance_error(name, **options):
    """Largest change that one sweep makes to the exact conditional posterior."""
    build, prior, log_mechanism = MODELS[name]
    reading = read(build())
    assert uses_blocks(reading, **options)
    posterior = conditional_posterior(prior, log_mechanism, n_records=3)
    proposal_probabilities = prior[posterior.states].prod(axis=1)
    decide = take_apart(reading, **options).decide
    matrix = transition_matrix(decide, posterior.states, proposal_probabilities)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    return np.abs(posterior.probabilities @ matrix - posterior.probabilities).max()


@pytest.mark.parametrize("name", MODELS)
def test_blocks_leave_the_exact_conditional_posterior_invariant(name):
    assert invariance_error(name, records_in_block=2) < 1e-10


@njit(inline="always")
def go_on_from_the_start(
    log_term, context, sums, changes, log_removed, log_added, log_uniforms
):  # each block from the sums before the sweep
    return go_on_by_entries(
        log_term, context, sums.copy(), changes, log_removed, log_added, log_uniforms
    )


@njit(inline="always")
def forgetful(
    go_on, log_density, context, present, proposed, arrays, length, removed, added, log_uniforms
):
    return sweep_by_blocks(
        go_on_from_the_start,
        log_density,
        context,
        present,
        proposed,
        arrays,
        length,
        removed,
        added,
        log_uniforms,
    )


@njit(inline="always")
def unchanged(
    go_on, log_density, context, present, proposed, arrays, length, removed, added, log_uniforms
):  # what is proposed contributes what is present does
    return sweep_by_blocks(
        go_on,
        log_density,
        context,
        present,
        present,
        arrays,
        length,
        removed,
        added,
        log_uniforms,
    )


@pytest.mark.parametrize("kernel", [forgetful, unchanged])
def test_broken_blocks_do_not(kernel, monkeypatch):
    broken = type(f"Broken_{kernel.__name__}", (BlockSweep,), {"kernel": staticmethod(kernel)})
    monkeypatch.setattr(compiled_sweep, "BlockSweep", broken)
    assert invariance_error("a table", records_in_block=2) > 1e-4


def test_only_many_records_with_rows_of_their_own_are_swept_by_blocks():
    def reading(n, few_values):
        with pm.Model() as model:
            if few_values:
                record = pt.eye(3)[pm.Categorical("record", np.ones(3) / 3, shape=n)]
            else:
                record = pm.Normal("record", shape=(n, 3))
            pm.Potential("privacy", -pt.abs(record.sum(axis=0) - 1.0).sum())
        return read(model)

    assert uses_blocks(reading(10_000, False))
    assert not uses_blocks(reading(1_000, False))
    assert not uses_blocks(reading(10_000, True))
