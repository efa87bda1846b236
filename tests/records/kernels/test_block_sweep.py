"""Sweeps whose contributions are computed for some records at a time."""

from dataclasses import replace
from functools import partial

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.contributions import RowsAtOnce, by_block
from pymc_dapper.records.reading.plan import BySums
from pymc_dapper.steps.data import SharedData
from tests import broken
from tests.enumerate_sweep import transition_matrix
from tests.enumeration import conditional_posterior
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
from tests.sweep_parts import PythonFunction, broken_parts, take_apart


def read(model):
    records = [x for x in model.free_RVs if x.name.startswith("record")]
    return read_model(model, [model.rvs_to_values[x] for x in records], model.initial_point())


def in_blocks_of(n, reading):
    """The reading with a plan by which contributions are made for so many records at a time."""
    made = by_block(reading.records, reading.sums)
    assert made is not None
    return replace(reading, plan=replace(reading.plan, rows=replace(made, records_in_block=n)))


@pytest.mark.parametrize(
    "name",
    [
        "dims_and_shared_data",
        "ratio",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in (
                "matrix_of_records",
                "cross_product_of_records",
                "non_centred",
                "clipped_and_weighted",
                "records_that_depend_on_records",
                "einsum",
            )
        ),
    ],
)
def test_blocks_decide_as_the_whole_does(name):
    model = FORMS[name]()
    reading, point = read(model), model.initial_point()
    # In Python, and not entry by entry: another loop than that of the blocks, where these are.
    whole = take_apart(replace(reading, plan=BySums(RowsAtOnce())), function=PythonFunction)
    blocks = take_apart(in_blocks_of(3, reading))
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
    """As the table model, but the counts are compared."""
    with pm.Model() as model:
        record = pm.Categorical("record", p=TABLE_PRIOR, shape=2)
        table = (WEIGHTS[:2, None] * pt.eq(record[:, None], np.arange(3))).sum(axis=0)
        pm.Potential("privacy", -pt.abs(TABLE_RELEASED - table).sum() / 1.5)
    return model


def counted_by_looking_up():
    return tiny_table_model(WEIGHTS[:2], n_records=2)


def log_table_mechanism(records):
    return tiny_log_table_mechanism(records, WEIGHTS[:2])


OF_TINY_MODEL = np.array([1 - TINY_PRIOR, TINY_PRIOR])
MODELS = {
    "one sum": (tiny_model, 3, OF_TINY_MODEL, tiny_log_mechanism),
    "a table": (counted_by_comparing, 2, TABLE_PRIOR, log_table_mechanism),
    "a table looked up": (counted_by_looking_up, 2, TABLE_PRIOR, log_table_mechanism),
}


def invariance_error(name, decide_of):
    """Largest change that one sweep makes to the exact conditional posterior."""
    build, n, prior, log_mechanism = MODELS[name]
    decide = decide_of(in_blocks_of(n - 1, read(build()))).decide
    posterior = conditional_posterior(prior, log_mechanism, n_records=n)
    proposal_probabilities = prior[posterior.states].prod(axis=1)
    matrix = transition_matrix(decide, posterior.states, proposal_probabilities)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    return np.abs(posterior.probabilities @ matrix - posterior.probabilities).max()


@pytest.mark.parametrize("name", MODELS)
def test_blocks_leave_the_exact_conditional_posterior_invariant(name):
    # In Python: that it does the same compiled is shown above.
    assert invariance_error(name, partial(take_apart, function=PythonFunction)) < 1e-10


@pytest.mark.parametrize(
    "fault", [broken.FORGETFUL_BLOCKS, broken.UNCHANGED_BLOCKS], ids=["forgetful", "unchanged"]
)
def test_broken_blocks_do_not(fault):
    assert invariance_error("one sum", lambda reading: broken_parts(reading, fault)) > 1e-4
