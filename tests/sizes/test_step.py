"""SizeStep, evaluated in Python: the transition matrix, what it says and what it keeps."""

from itertools import product

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.exceptions import SamplingError

import pymc_dapper as pmd
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.sizes import step as steps
from pymc_dapper.sizes.compiled import draw as compiled
from pymc_dapper.sizes.reading import model as reading_model
from pymc_dapper.sizes.reading import self_check
from pymc_dapper.sizes.step import SizeStep
from pymc_dapper.steps.stats import WARNING_STAT
from tests.broken import edited
from tests.evaluated_in_python import REWRITTEN, evaluated_in_python
from tests.sizes.reading.test_model import log_joint
from tests.sizes.unknown_numbers import MODELS, bernoulli

ROOM, P = 3, 0.3
FIRST = 'first = pt.floor(u * n).astype("int64")'


@pytest.fixture(autouse=True)
def _in_python():
    with evaluated_in_python():
        yield


@pytest.fixture(scope="module")
def model():
    return bernoulli(ROOM, p=P, prior=lambda: pm.Binomial("n", ROOM, 0.4))


class Known(np.random.Generator):
    """A generator with known variates."""

    def __init__(self, uniforms):
        super().__init__(np.random.PCG64())
        self.uniforms = uniforms

    def random(self, *, out):
        assert len(out) == len(self.uniforms)
        out[:] = self.uniforms


STATES = list(product(range(ROOM + 1), *[(0, 1)] * ROOM))


def drawing(last):
    """Make a function of log-weights and a uniform variate that draws a number."""
    log_weights, u = pt.vector("log_weights"), pt.scalar("u", dtype="float64")
    number, _ = compiled.drawn_number(log_weights, u, last)
    draw = pytensor.function([log_weights, u], number, mode=REWRITTEN)
    return lambda weights, u: draw(weights, u).item()


def transitions(step, monkeypatch):
    """Enumerate all orders, and all numbers by the uniform variates that draw them."""
    [size] = step._sizes
    matrix = np.zeros((len(STATES), len(STATES)))
    drawn, known = size._drawn, {}
    draw = drawing(size._last)

    def shares_too(*arguments):
        *values, log_weights = drawn(*arguments)
        key = log_weights.tobytes()
        if key not in known:
            known[key] = share_of_each(lambda u: draw(log_weights, u))
        known["last"] = known[key]
        return *values, log_weights

    monkeypatch.setattr(size, "_drawn", shares_too)
    for row, (n, *x) in enumerate(STATES):
        choices = (np.arange(max(n, 1)) + 0.5) / max(n, 1)
        for u in choices:
            point = {"n": np.array(n), "x": np.array(x)}
            size.update(point, Known(np.array([u, 0.5])))
            for number, share in known["last"].items():
                new = (n if number < 0 else number, *point["x"].tolist())
                matrix[row, STATES.index(new)] += share / len(choices)
    return matrix


def share_of_each(draw):
    """How much of the uniform variates draws each number, by halving: it rises with them."""
    shares, at, number = {}, 0.0, draw(0.0)
    last = draw(np.nextafter(1, 0))
    while number != last:
        low, high = at, 1.0
        while high - low > 1e-15:
            middle = (low + high) / 2
            low, high = (middle, high) if draw(middle) == number else (low, middle)
        shares[number] = high - at
        at, number = high, draw(high)
    return shares | {number: 1 - at}


def posterior(model):
    joint = log_joint(model)
    log_p = [joint({"n": np.array(n), "x": np.array(x)}) for n, *x in STATES]
    return np.exp(log_p - np.logaddexp.reduce(log_p))


def is_stationary(model, monkeypatch):
    step = SizeStep([model["n"]], model=model)
    p = posterior(model)
    matrix = transitions(step, monkeypatch)
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    return np.allclose(p @ matrix, p, atol=1e-11)


def test_the_posterior_is_stationary(model, monkeypatch):
    assert is_stationary(model, monkeypatch)
    matrix = transitions(SizeStep([model["n"]], model=model), monkeypatch)
    # From each number of records all others are reached at once, and all orders.
    start = matrix[STATES.index((2, 1, 0, 0))]
    assert {state for state, p in zip(STATES, start, strict=True) if p > 0} == {
        (n, *x) for n in range(ROOM + 1) for x in ((1, 0, 0), (0, 1, 0))
    }


def known_total():
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 0, ROOM)
        x = pm.Bernoulli("x", P, shape=ROOM)
        pmd.LaplaceMechanism(1.5).potential("count", n, released=2.2)
        pmd.invariant("total", (pmd.present(n, ROOM) * x).sum(), 1)
    return model


def reached(matrix, start):
    """States that a chain of such draws comes to."""
    after = np.linalg.matrix_power(matrix, 9)[STATES.index(start)]
    return {state for state, p in zip(STATES, after, strict=True) if p > 0}


def test_any_record_may_leave_where_a_total_is_known(monkeypatch):
    model, start = known_total(), (2, 0, 1, 0)
    assert is_stationary(model, monkeypatch)
    step = SizeStep([model["n"]], model=model)
    assert reached(transitions(step, monkeypatch), start) == {
        *((1, 1, 0, 0), (2, 1, 0, 0), (2, 0, 1, 0)),
        *((3, *x) for x in ((1, 0, 0), (0, 1, 0), (0, 0, 1))),
    }
    with edited(compiled, "shuffled", {FIRST: "first = pt.constant(0)"}):
        step = SizeStep([model["n"]], model=model)
        assert reached(transitions(step, monkeypatch), start) == {start, (3, 0, 1, 0), (3, 0, 0, 1)}


def test_a_block_with_an_impossible_number_is_refused_after_tuning(model):
    step = SizeStep([model["n"]], model=model)
    step.setup_chain(np.random.default_rng(1), 2, 5)
    reports = [np.array([[3.0, 0.5], [-1.0, 0.0]])]
    assert len(step.statistics(2, reports)) == 2
    step.passed(2, reports)
    assert step.at_the_end == [0.0]
    step.passed(1, reports)
    with pytest.raises(SamplingError):
        step.statistics(2, reports)


FAULTS = {
    "the prior of the number is dropped": (
        steps,
        "read_size",
        {
            "if factor not in own "
            "and not {size, present, *records}.isdisjoint(ancestors([graph]))": (
                "if factor not in (*own, name)"
                " and not {size, present, *records}.isdisjoint(ancestors([graph]))"
            )
        },
    ),
    "a record that isn't there counts": (
        reading_model,
        "_cumulated",
        {
            "return pt.concatenate([at_none, at_none + pt.cumsum(added, axis=0)])": (
                "return pt.concatenate("
                "[at_none, at_none + pt.cumsum(pt.roll(added, -1, axis=0), axis=0)])"
            )
        },
    ),
    "sums of the old order": (
        steps,
        "compile_draw",
        {
            "[log_weights] = rebuild([reading.log_weights], records)": (
                "log_weights = reading.log_weights"
            )
        },
    ),
    "the room ends one record early": (
        compiled,
        "drawn_number",
        {"total = cumulated[-1]": "total = cumulated[-2]"},
    ),
    "one record too many": (
        compiled,
        "drawn_number",
        {
            "number = pt.le(cumulated, u * total).sum()": (
                "number = (cumulated[:-1] <= u * total).sum() + (u * total < cumulated[-2])"
            )
        },
    ),
    "an absent record is shuffled, too": (
        compiled,
        "shuffled",
        {FIRST: f"n = pt.minimum(n + 1, rows.shape[0]); {FIRST}"},
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_caught(name, model, monkeypatch):
    # Nor may the step itself notice, as it does where the log-density isn't the model's.
    monkeypatch.setattr(self_check, "agree", lambda *_: True)
    monkeypatch.setattr(steps, "check_compiled", lambda *_: None)
    with edited(*FAULTS[name]):
        assert not is_stationary(model, monkeypatch)


def test_rows_that_differ_stay_where_they_are():
    model = MODELS["tied"]()
    step = SizeStep([model["n"]], model=model)
    step.setup_chain(np.random.default_rng(0), tune=0, draws=20)
    point = model.initial_point() | {"x": np.array([0.1, 0.2, 0.3, 0.4])}
    for _ in range(20):
        point, _ = step.step(point)
        assert point["x"].tolist() == [0.1, 0.2, 0.3, 0.4]
        assert 1 <= point["n"] <= 4
    assert "aren't shuffled, since the prior of 'x'" in step.describe()


def test_whole_rows_are_shuffled():
    model = MODELS["normal"]()
    step = SizeStep([model["n"]], model=model)
    step.setup_chain(np.random.default_rng(0), tune=0, draws=9)
    rows = np.arange(7.0) / 7
    point = model.initial_point() | {"n": np.array(5), "x": rows, "y": 10 * rows}
    new, _ = step.step(point)
    assert sorted(new["x"]) == rows.tolist()
    assert np.any(new["x"] != rows)
    np.testing.assert_array_equal(new["y"], 10 * new["x"])
    assert new["x"][5:].tolist() == rows[5:].tolist()
    assert point["x"] is rows  # what was handed over stays as it was


def warnings_of(model, draws=30, **start):
    step = SizeStep([model["n"]], model=model)
    step.setup_chain(np.random.default_rng(0), tune=5, draws=draws)
    point, told = model.initial_point() | start, []
    for _ in range(draws + 5):
        point, [stats] = step.step(point)
        told.append(stats[WARNING_STAT])
    assert told[:-1] == [None] * (draws + 4)
    return told[-1]


def narrow(released, prior=lambda: pm.Poisson("n", 10)):
    with pm.Model() as model:
        n = prior()
        x = pm.Bernoulli("x", 0.5, shape=40)
        pmd.GaussianMechanism(sigma=1.0).potential("count", n, released=released)
        pmd.LaplaceMechanism(9.0).potential(
            "total", (pmd.present(n, 40) * x).sum(), released=released / 2
        )
    return model


def test_a_posterior_near_the_end_of_the_room_is_told():
    assert warnings_of(narrow(12.0)) is None
    told = warnings_of(narrow(39.0, lambda: pm.Poisson("n", 40)))
    assert "'n' comes near 40, where the room" in told.message
    assert "Give 'x' more room: a longer first axis, such as 80" in told.message
    bound = warnings_of(narrow(39.0, lambda: pm.DiscreteUniform("n", 0, 40)))
    assert "isn't known to be at most 40, raise both" in bound.message
    assert warnings_of(narrow(39.0, lambda: pm.Binomial("n", 40, 0.9))) is None  # of 40 people
    assert warnings_of(narrow(39.0, lambda: pm.Binomial("n", 60, 0.6))) is not None


@pytest.mark.usefixtures("in_python")
def test_it_is_told_once_of_several_chains(caplog):
    with narrow(39.0, lambda: pm.Poisson("n", 40)):
        pmd.sample(3, tune=1, chains=2, cores=1, random_seed=1, progressbar=False)
    assert sum("comes near 40" in message for message in caplog.messages) == 1


def test_a_number_above_the_room_comes_into_it():
    model = narrow(12.0)
    step = SizeStep([model["n"]], model=model)
    step.setup_chain(np.random.default_rng(0), tune=0, draws=9)
    point, _ = step.step(model.initial_point() | {"n": np.array(99)})
    assert 0 <= point["n"] <= 40


def test_an_impossible_state_is_left_to_other_steps():
    with pm.Model() as model:
        n = pm.Poisson("n", 3)
        x = pm.Bernoulli("x", 0.5, shape=6)
        pmd.invariant("total", (pmd.present(n, 6) * x).sum(), 2)
    step = SizeStep([n], model=model)
    step.setup_chain(np.random.default_rng(0), tune=0, draws=9)
    point, _ = step.step({"n": np.array(3), "x": np.zeros(6, dtype="int64")})
    assert point["n"] == 3


def test_what_it_says():
    model = MODELS["groups"]()
    step = SizeStep([model["n"], model["m"]], model=model)
    assert repr(step) == "<SizeStep: n of 4, m of 5>"
    said = step.describe()
    assert "Draws 'm' from its conditional distribution on 0, ..., 5, given all records" in said
    assert "'z', with room for 5" in said
    assert "'both', 'number'" in said


def test_variables_that_are_no_numbers_of_records_are_refused():
    model = MODELS["groups"]()
    with pytest.raises(ReadingError, match=r"'mu' isn't a number of records.*pmd.present"):
        SizeStep([model["mu"]], model=model)
    with pytest.raises(ReadingError, match="'x' isn't a number of records"):
        SizeStep([model["x"]], model=model)


@pytest.mark.parametrize("tune", [0, 2])
def test_that_no_number_is_possible_is_not_passed_over(tune):
    """Catches draws that stay where they began."""
    with bernoulli(ROOM, p=P) as model:
        pm.Potential("exact", pm.math.switch(pm.math.eq(model["n"], ROOM + 1), 0.0, -np.inf))
        step = SizeStep([model["n"]])
    step.setup_chain(np.random.default_rng(1), tune, 2)
    point = model.initial_point()
    for _ in range(tune + 1):
        point, _ = step.step(point)
    message = r"no number 'n' from 0 to 3 is possible.*'exact'.*give 'x' more room"
    with pytest.raises(SamplingError, match=message):
        step.step(point)
