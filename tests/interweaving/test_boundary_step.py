"""BoundaryStep as a step of PyMC's: protocol, seeds, what tuning leads to, and who is given one."""

import cloudpickle
import numpy as np
import pytest
from pymc.step_methods.compound import CompoundStep
from pymc.step_methods.state import equal_dataclass_values

import pymc_dapper as pmd
from pymc_dapper import ReadingError
from pymc_dapper.interweaving import boundary_step
from pymc_dapper.interweaving.boundary_step import BoundaryStep
from pymc_dapper.interweaving.kernels.tuning import MIN_MEASURED
from pymc_dapper.steps import gibbs
from tests.evaluated_in_python import evaluated_in_python
from tests.interweaving.tabled import people_in_tables
from tests.long_cases import one_in_three


@pytest.fixture(scope="module")
def model():
    return people_in_tables()


def steps_of(model):
    with evaluated_in_python():
        return pmd.assign_steps(model=model, progressbar=False)


def test_models_of_people_in_tables_get_one(model):
    *_, step = steps_of(model)
    assert isinstance(step, BoundaryStep)
    assert sorted(x.name for x in step.vars) == [
        f"p_{x}_simplex__" for x in ("a", "b", "c", "class")
    ]
    assert "Begins if tuning mixes poorly" in step.describe()
    assert "'p_a', 'p_b', 'p_c' with" in step.describe()  # no table sees the class


def moved(step, point, n, tune, *, at_once=False):
    step.setup_chain(np.random.default_rng(5), tune=tune, draws=n)
    step.moves = at_once
    for _ in range(n):
        point, [stats] = step.step(point)
    return point, stats


def test_it_waits_until_draws_forget_slowly(model):
    *_, step = steps_of(model)
    with evaluated_in_python():
        start = model.initial_point()
        # Here, nothing else moves the tables: they forget nothing.
        point, stats = moved(step, start, MIN_MEASURED, tune=MIN_MEASURED)
        assert all(np.array_equal(point[x], start[x]) for x in start)
        _, stats = moved(step, start, MIN_MEASURED, tune=200)
        assert "have a long memory" in stats["warning"].message
        assert np.isnan(stats["boundaries_moved"])
        widths = step.widths
        point, [stats] = step.step(start)
        assert stats["boundaries_moved"] > 0
        assert np.all(step.widths != widths)


@pytest.mark.parametrize(
    ("sd", "goes_on"), [pytest.param(4.0, True, marks=pytest.mark.long), (0.01, False)]
)
def test_columns_are_drawn_one_by_one_where_people_hardly_change(sd, goes_on):
    model = people_in_tables(sd=sd)
    *_, step = steps_of(model)
    with evaluated_in_python():
        # Here, no other step changes anybody.
        point, stats = moved(step, model.initial_point(), MIN_MEASURED, tune=200)
        assert step.redraws
        assert np.isnan(stats["people_redrawn"])
        point, [stats] = step.step(point)
        assert stats["people_redrawn"] > 0.1
        for _ in range(30):
            point, [stats] = step.step(point)
    # Where nobody changes by draws either, these end.
    assert step.redraws == goes_on
    assert (stats["people_redrawn"] > 0.1) == goes_on


def test_chains_are_reproducible_and_continue_where_they_stopped(model):
    with evaluated_in_python():
        *_, step = pmd.assign_steps(model=model, progressbar=False)
        first, _ = moved(step, model.initial_point(), 4, tune=2, at_once=True)
        again, _ = moved(step, model.initial_point(), 4, tune=2, at_once=True)
        assert all(np.array_equal(first[x], again[x]) for x in first)
        state = cloudpickle.loads(cloudpickle.dumps(step.sampling_state))
        on, _ = step.step(first)
        step.sampling_state = state
        assert equal_dataclass_values(step.sampling_state, state)
        once_more, _ = step.step(first)
        assert all(np.array_equal(on[x], once_more[x]) for x in on)


@pytest.mark.parametrize("moves", one_in_three([True, False]))
def test_blocks_are_the_same_chain(model, moves, monkeypatch):
    monkeypatch.setattr(gibbs, "FEWEST", 0)
    monkeypatch.setattr(gibbs, "SECONDS", 1e6)
    chains = []
    with evaluated_in_python():
        steps = pmd.assign_steps(model=model, progressbar=False)
        for gather in (CompoundStep, pmd.GibbsStep):
            point, chain = model.initial_point(), []
            gathered = gather(steps)
            gathered.setup_chain(np.random.default_rng(3), tune=8, draws=16)
            steps[-1].moves = moves
            for _ in range(24):
                point, stats = gathered.step(point)
                chain.append((*point.values(), stats[-1]["boundaries_moved"]))
            chains.append(chain)
        assert bool(gathered._loops) != moves  # there were blocks, unless boundaries move
    for row, same in zip(*chains, strict=True):
        assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(row, same, strict=True))
    assert np.isnan(same[-1]) != moves


def test_probabilities_that_are_read_otherwise_are_refused(model, monkeypatch):
    monkeypatch.setattr(boundary_step, "agrees", lambda *_: False)
    with pytest.raises(
        ReadingError, match="read other probabilities of the columns than the model has"
    ):
        steps_of(model)
