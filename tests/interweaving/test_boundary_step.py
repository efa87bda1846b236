"""BoundaryStep as a step of PyMC's: protocol, seeds, what tuning leads to, and who is given one."""

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from pymc.step_methods.state import equal_dataclass_values

import pymc_dapper as pmd
from pymc_dapper import ReadingError
from pymc_dapper.interweaving.boundary_step import BoundaryStep
from pymc_dapper.interweaving.kernels.tuning import MIN_MEASURED
from tests.evaluated_in_python import evaluated_in_python
from tests.interweaving.tabled import people_in_tables


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
    assert not any(
        isinstance(x, BoundaryStep)
        for x in pmd.assign_steps(model=model, interweave=False, progressbar=False)
    )


def moved(step, point, n, tune):
    step.setup_chain(np.random.default_rng(5), tune=tune, draws=n)
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
        assert "forget slowly" in stats["warning"].message
        assert np.isnan(stats["boundaries_moved"])
        widths = step.widths
        point, [stats] = step.step(start)
        assert stats["boundaries_moved"] > 0
        assert np.all(step.widths != widths)


def test_chains_are_reproducible_and_continue_where_they_stopped(model):
    with evaluated_in_python():
        step = BoundaryStep(
            [model[f"p_{x}"] for x in ("class", "a", "b", "c")],
            records=[model[x] for x in "zabc"],
            model=model,
        )
        first, _ = moved(step, model.initial_point(), 4, tune=2)
        again, _ = moved(step, model.initial_point(), 4, tune=2)
        assert all(np.array_equal(first[x], again[x]) for x in first)
        state = cloudpickle.loads(cloudpickle.dumps(step.sampling_state))
        on, _ = step.step(first)
        step.sampling_state = state
        assert equal_dataclass_values(step.sampling_state, state)
        once_more, _ = step.step(first)
        assert all(np.array_equal(on[x], once_more[x]) for x in on)


def test_what_it_cannot_move_is_refused():
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        x = pm.Bernoulli("x", p, shape=30)
        pmd.LaplaceMechanism(2.0).potential("s", x.sum(), released=12.0)
        with pytest.raises(ReadingError, match="Use InterweaveStep"):
            BoundaryStep([p], records=[x])
