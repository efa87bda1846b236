"""Compiled moves of boundaries: what comes out is a state of the model, and the kernel's."""

import numpy as np
import pytest

from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.interweaving.boundary_step import BoundaryStep
from tests.against_python import assert_same_in_python
from tests.evaluated_in_python import evaluated_in_python
from tests.interweaving.tabled import N, people_in_tables, read

COLUMNS = ("z", "a", "b", "c")


def moving_step(model, redraws=None):
    """A step whose boundaries move from the first iteration of a chain on."""
    tables, _ = read(model)
    step = BoundaryStep.of_reading(tables, list(tables.rvs), model=model, rng=1)
    begin = step._start_chain

    def begin_moving(tune, draws):
        begin(tune, draws)
        step.moves, step.redraws = True, redraws

    step._start_chain = begin_moving
    step._compile()
    return step


def started(model):
    rng, point = np.random.default_rng(3), model.initial_point()
    sizes = dict(zip(COLUMNS, (2, 3, 2, 2), strict=True))
    return {k: rng.integers(0, sizes[k], N) if k in sizes else x for k, x in point.items()}


def test_a_move_keeps_what_no_boundary_passes():
    model = people_in_tables()
    with evaluated_in_python():
        step = moving_step(model)
        step.setup_chain(np.random.default_rng(1), tune=0, draws=1)
        before = started(model)
        after, [stats] = step.step(before)
    # No table sees the class: it is left to other steps.
    np.testing.assert_array_equal(after["z"], before["z"])
    np.testing.assert_allclose(after["p_class_simplex__"], before["p_class_simplex__"])
    changed = np.any([after[x] != before[x] for x in COLUMNS], axis=0).sum()
    assert 0 < changed <= stats["boundaries_moved"] * N
    for name, value in after.items():
        assert value.dtype == before[name].dtype
        assert value.shape == before[name].shape
    # Rows share their probability anew.
    values = [x for x in model.value_vars if x.name not in COLUMNS]
    tables = compile_in_python(model, values, model.replace_rvs_by_values([model["p_a"]]))
    [old], [new] = (tables(*(at[x.name] for x in values)) for at in (before, after))
    np.testing.assert_allclose(new.sum(axis=1), 1)
    assert np.all(np.abs(new - old).max(axis=1) > 0)


@pytest.mark.long
@pytest.mark.parametrize("redraws", [False, True])
def test_compiled_moves_are_the_kernels(redraws):
    model = people_in_tables()
    step = moving_step(model, redraws)
    assert_same_in_python(step, step._move, started(model), n_steps=5)
