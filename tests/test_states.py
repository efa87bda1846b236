"""What a step says of itself, for a store on disk; and that it leaves the user's model alone."""

from dataclasses import asdict

import numpy as np
import pymc as pm
import pytest
from pytensor.graph.traversal import io_toposort

from pymc_dapper import (
    ConjugateStep,
    CountStep,
    DapperStep,
    FunctionStep,
    InterweaveStep,
    MarginalisedStep,
    SizeStep,
    present,
)
from pymc_dapper.interweaving.tuner import Tuner
from pymc_dapper.records.walks import Walks
from tests.memory import whatever_was_in_memory
from tests.states import same_states
from tests.surroundings import nothing_compiled


@pytest.fixture(scope="module")
def model():
    with pm.Model() as m:
        mu = pm.Normal("mu")
        sigma = pm.HalfNormal("sigma")
        record = pm.Normal("record", mu, sigma, shape=5)
        count = pm.Poisson("count", 4.0, shape=3)
        pm.Normal("noisy_sum", record.sum(), 3.0, observed=4.0)
        pm.Normal("noisy_counts", count, 3.0, observed=[1.0, 2.0, 9.0])
        rate = pm.HalfNormal("rate")
        area = pm.Poisson("area", rate, shape=2)
        pm.Normal("noisy_areas", area, 3.0, observed=[1.0, 2.0])
        n = pm.Poisson("n", 2)
        person = pm.Normal("person", shape=4)
        pm.Normal("noisy_total", (present(n, 4) * person).sum(), 3.0, observed=1.0)
    return m


STEPS = {
    "DapperStep": lambda m: DapperStep([m["record"]], track_records=True),
    "InterweaveStep": lambda m: InterweaveStep([m["mu"], m["sigma"]], records=[m["record"]]),
    "CountStep": lambda m: CountStep([m["count"]]),
    "MarginalisedStep": lambda m: MarginalisedStep([m["rate"]], counts=[m["area"]]),
    "SizeStep": lambda m: SizeStep([m["n"]]),
    "ConjugateStep": lambda m: ConjugateStep([m["mu"]]),
    "FunctionStep": lambda m: FunctionStep([m["mu"]], draw=lambda rng, point: {"mu": 0.0}),
}


@pytest.fixture(scope="module", params=STEPS)
def built(model, request):
    """A step, and what the model held before it was built and after a chain was set up."""
    before = seen_of(model)
    with nothing_compiled():
        with model:
            step = STEPS[request.param](model)
        step.setup_chain(np.random.default_rng(0), tune=40, draws=10)
    return step, before, seen_of(model)


@pytest.mark.usefixtures("uncompiled")
def test_a_state_does_not_depend_on_unfilled_memory(built):
    step, *_ = built

    def state():
        step.setup_chain(np.random.default_rng(0), tune=40, draws=10)
        return step.sampling_state

    one, other = whatever_was_in_memory(state)
    assert same_states(one, other)


def test_an_attribute_that_nobody_declared_is_no_part_of_a_state():
    """It's an error instead."""
    for tuner in (Tuner(40, 2), Walks(400, 5, 1)):
        with pytest.raises(AttributeError):
            tuner.another = 1


def seen_of(model):
    """All that a model holds: what each attribute is, and each entry of its lists and dicts."""
    entries = {}
    for name, value in vars(model).items():
        entries[name] = id(value)
        if isinstance(value, dict):
            entries[name] = [(id(k), id(v)) for k, v in value.items()]
        elif isinstance(value, list | tuple):
            entries[name] = [*map(id, value)]
    nodes = io_toposort([], [*model.basic_RVs, *model.potentials, *model.deterministics])
    graphs = [(id(node), [*map(id, node.inputs)]) for node in nodes]
    names = [(x.name, id(vars(x.tag).get("test_value"))) for x in model.named_vars.values()]
    return entries, graphs, names


def test_the_users_model_is_never_written_to(model, built, monkeypatch):
    _, before, after = built
    assert after == before
    # A step that did so would be seen.
    monkeypatch.setitem(model.rvs_to_initial_values, model["mu"], 3.0)
    assert seen_of(model) != before


@pytest.mark.usefixtures("uncompiled")
def test_a_state_grows_with_what_was_seen(model):
    with model:
        step = InterweaveStep([model["mu"], model["sigma"]], records=[model["record"]])

    def numbers():
        return size(asdict(step.sampling_state))

    def size(value):
        value = [*value.values()] if isinstance(value, dict) else value
        return sum(map(size, value)) if isinstance(value, list | tuple) else np.size(value)

    def move(*arguments):
        path, outcome = np.zeros((9, 2)), np.ones(9)
        return np.zeros(()), np.zeros(()), np.zeros(5), path, outcome

    step._compiled[0] = step._compiled[0]._replace(move=move)
    step.setup_chain(np.random.default_rng(0), tune=1_000, draws=10)
    seen = [numbers()]
    for _ in range(5):
        step.step(model.initial_point())
        seen.append(numbers())
    assert seen[0] < 40
    # A path of eight moves of two parameters, how many evaluations each took, and where it ends.
    assert np.diff(seen).tolist() == [9 * 2 + 8 + 2] * 5
