"""What all steps share: calls, the initial point, readings that are handed over."""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper import (
    ConjugateStep,
    CountStep,
    DapperStep,
    FunctionStep,
    InterweaveStep,
    ReadingError,
)
from pymc_dapper.conjugacy import step as conjugacy
from pymc_dapper.interweaving import step as interweaving
from pymc_dapper.records import step as records
from pymc_dapper.steps.base import Step


@pytest.fixture(scope="module")
def model():
    with pm.Model() as m:
        mu = pm.Normal("mu")
        sigma = pm.HalfNormal("sigma")
        record = pm.Normal("record", mu, sigma, shape=5)
        count = pm.Poisson("count", 4.0, shape=3)
        pm.Normal("noisy_sum", record.sum(), 3.0, observed=4.0)
        pm.Normal("noisy_counts", count, 3.0, observed=[1.0, 2.0, 9.0])
    return m


def draw_mu(rng, point):
    return {"mu": point["mu"]}


STEPS = {
    DapperStep: lambda m, **given: DapperStep([m["record"]], model=m, **given),
    InterweaveStep: lambda m, **given: InterweaveStep(
        [m["mu"]], records=[m["record"]], model=m, **given
    ),
    CountStep: lambda m, **given: CountStep([m["count"]], model=m, **given),
    ConjugateStep: lambda m, **given: ConjugateStep([m["mu"]], model=m, **given),
    FunctionStep: lambda m, **given: FunctionStep([m["mu"]], draw_mu, model=m, **given),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_partial_initial_point_is_completed_by_the_models_own(
    step, model, uncompiled, monkeypatch
):
    """Each step looks at its reading, or at a draw, where what was given is as given."""
    points = []

    def look(*arguments, **options):
        [point] = [x for x in arguments if isinstance(x, dict)]
        points.append(point)

    check_reading = records.check_reading

    def look_and_check(reading, point):
        look(point)
        return check_reading(reading, point)

    monkeypatch.setattr(records, "check_reading", look_and_check)
    monkeypatch.setattr(interweaving, "check_noise", look)
    monkeypatch.setattr(conjugacy, "check_conditional", look)
    monkeypatch.setattr(CountStep, "_compile", lambda step, options, point: look(point))
    monkeypatch.setattr(FunctionStep, "_drawn", look)
    STEPS[step](model, initial_point={"mu": 0.25})
    expected = {**model.initial_point(), "mu": 0.25}
    assert points[0].keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(points[0][name], value)


@pytest.mark.parametrize("step", STEPS)
def test_an_initial_point_of_unknown_variables_is_refused(step, model):
    with pytest.raises(ValueError, match=r"initial_point: there is no value variable 'nu'"):
        STEPS[step](model, initial_point={"nu": 0.25})


@pytest.mark.parametrize("step", STEPS)
def test_all_but_the_variables_goes_by_name(step, model):
    by_position = (draw_mu, model) if step is FunctionStep else (model,)
    with pytest.raises(TypeError, match=rf"{step.__name__} takes only the .* by position"):
        step([model["mu"]], *by_position)


@pytest.mark.parametrize("step", Step.__subclasses__())
@pytest.mark.parametrize("given", [(), ([],)], ids=["nothing", "an empty list"])
def test_a_step_without_variables_is_refused(step, given, model):
    refusal = rf"^{step.__name__} was given no variables: pass"
    with model, pytest.raises(ReadingError, match=refusal):
        step(*given)


def test_a_reading_that_is_handed_over_is_not_made_again(model, uncompiled, monkeypatch):
    read = DapperStep([model["record"]], model=model)._reading
    monkeypatch.setattr(records, "read_model", lambda *_: pytest.fail("read again"))
    step = DapperStep.of_reading(read, [model["record"]], model=model, track_records=True)
    assert step._reading is read
    assert step.track_records
    assert [x.name for x in step.vars] == ["record"]


def test_several_steps_in_the_place_of_one_read_for_themselves(uncompiled):
    with pm.Model() as model:
        x, y = (pm.Normal(name, shape=4) for name in "xy")
        pm.Normal("release", (x + y).sum(), observed=1.0)
    both = DapperStep([x, y], model=model)._reading
    apart = DapperStep.of_reading(both, [x, y], model=model, blocked=False)
    assert [[v.name for v in step.vars] for step in apart.methods] == [["x"], ["y"]]
    assert all(len(step._reading.records) == 1 for step in apart.methods)


def test_a_step_without_a_column_adds_nothing_to_the_progress_bar():
    assert ConjugateStep._progressbar_config(2) == ([], {})
    [update] = ConjugateStep._make_progressbar_update_functions()
    assert update({}) == {}


def test_all_steps_have_what_all_share():
    assert set(Step.__subclasses__()) >= set(STEPS)
