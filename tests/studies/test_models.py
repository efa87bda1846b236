"""A model is kept for the next cell if that differs in its data only."""

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper.studies import cell as cells
from pymc_dapper.studies import models
from pymc_dapper.studies.fields import NUMBER_FIELDS, STATISTICS
from pymc_dapper.studies.grid import read_grid
from tests.studies import functions
from tests.studies.runs import DEFAULTS, runner

pytestmark = pytest.mark.long

GAUSSIAN = pmd.GaussianMechanism(2.0)


def numbers(result):
    """All numbers of a result but timings."""
    kept = [name for name in NUMBER_FIELDS if name not in functions.TIMINGS]
    statistics = [name for name in STATISTICS if name not in functions.TIMINGS]
    found = [result.numbers[name] for name in kept]
    return found + [entry[name] for entry in result.parameters for name in statistics]


def with_nuts(released, share):
    with pm.Model() as model:
        noisy = pm.Data("noisy", released["count"] - functions.N / 2.0)
        p = pm.Normal("p", 0, 1)
        scale = pm.HalfNormal("scale", 1)
        record = pm.Normal("record", p, scale, shape=functions.N)
        GAUSSIAN.observe("privacy", pm.math.clip(record, -2, 2).sum(), released=noisy)
    return model


def with_answers(released, share):
    """Separable: each answer is about one record."""
    with pm.Model() as model:
        answers = pm.Data("answers", np.arange(functions.N) < released["count"])
        p = pm.Beta("p", 1, 1)
        record = pm.Bernoulli("record", p, shape=functions.N)
        pmd.RandomizedResponse(0.75, 2).observe("answer", record, released=answers)
    return model


@pytest.mark.parametrize(
    ("build", "options"),
    [
        (functions.build, {}),
        (with_nuts, {"conjugate": False}),
        (with_answers, {}),
        (functions.build_light, {}),
    ],
)
def test_a_cell_does_not_depend_on_those_before_it(build, options):
    """To the bit. Catches steps that carry over data, adaptation, or random numbers."""
    one, other = read_grid({"share": [0.3, 0.9]}, 1).cells
    options = {"sample_kwargs": {**functions.FAST, **DEFAULTS, **options}}
    expected = runner(build=build, **options)(other)
    run = runner(build=build, **options)
    with_new_steps = run(one)
    assert with_new_steps.status == "done", with_new_steps.message
    assert numbers(with_new_steps) != numbers(expected)
    np.testing.assert_array_equal(numbers(run(other)), numbers(expected))
    np.testing.assert_array_equal(numbers(run(one)), numbers(with_new_steps))
    assert len(cells._models.prepared) == 1


def test_a_model_whose_steps_look_at_data_is_not_kept(monkeypatch):
    """As a CountStep does; here any step is taken for one."""
    monkeypatch.setattr(models, "CountStep", object)
    [cell] = read_grid({"share": [0.3]}, 1).cells
    assert runner(build=functions.build_light)(cell).status == "done"
    assert cells._models.prepared == []


def test_a_model_that_did_not_take_over_data_is_found_out(monkeypatch):
    """A twin of the first test, with a fault: steps begin anew, but see the old data."""

    def without_data(self, structure):
        for step, state in zip(self.steps, self._fresh, strict=True):
            step.sampling_state = state

    monkeypatch.setattr(models.PreparedModel, "take_over", without_data)
    first, second = read_grid({"share": [0.3, 0.9]}, 1).cells
    after = runner()
    after(first)
    assert numbers(after(second)) != numbers(runner()(second))


def variant(change, released, share):
    """The model with something else about it than data."""
    coords = {"who": range(functions.N) if change != "coords" else range(1, functions.N + 1)}
    n = functions.N + (change == "shape")
    with pm.Model(coords=coords) as model:
        count = pm.Data("count", released["count"])
        p = pm.Beta("p", 1, 2 if change == "constant" else 1)
        initval = np.ones(n, dtype=int) if change == "initial value" else None
        record = pm.Bernoulli("record", p, shape=n, initval=initval)
        if change == "factor":
            pm.Potential("more", -p)
        if change == "deterministic":
            pm.Deterministic("more", 2 * p)
        functions.MECHANISM.potential("privacy", record.sum(), released=count)
    return model


@pytest.mark.parametrize(
    "change", ["coords", "shape", "constant", "initial value", "factor", "deterministic"]
)
def test_a_model_that_differs_in_more_than_data_is_another_one(change):
    plain = models.Structure.of(variant("", {"count": 3}, 0.3))
    assert plain.equals(models.Structure.of(variant("", {"count": 7}, 0.3)))
    assert not plain.equals(models.Structure.of(variant(change, {"count": 3}, 0.3)))


def test_a_model_with_other_steps_is_another_one():
    cache, kept = models.ModelCache(), []
    for target in (0.8, 0.8, 0.9):
        with pm.Model() as model:
            pm.Normal("p", 0, pm.HalfNormal("scale", 1))
        options = {"conjugate": False, "nuts": {"target_accept": target}}
        kept.append(cache.prepare(models.Structure.of(model), options))
    assert kept[0] is kept[1]
    assert kept[0] is not kept[2]


def test_only_some_models_are_kept(monkeypatch):
    monkeypatch.setattr(models, "MODELS_KEPT", 2)
    cache = models.ModelCache()
    for k in range(3):
        with pm.Model() as model:
            pm.Beta("p", 1 + k, 1)
        cache.prepare(models.Structure.of(model), {})
    assert len(cache.prepared) == 2
