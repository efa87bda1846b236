"""Many iterations in one call give what the calls one by one give."""

from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit

from pymc_dapper.backend.iterations import Iterations, Transition, _source


def drift(rng, slope, x, table):
    """Changes a number and a matrix, and reports a vector."""
    if x > 1e6:
        raise ValueError("too large")
    moved = np.empty(())
    moved[()] = slope * x[()] + rng.normal() + table[0, 1]
    return moved, table.T.copy().T + moved[()], np.array([x[()], slope])


def count(rng, x, numbers):
    """Changes a vector of whole numbers."""
    return (numbers + np.int64(x > 0),)


def function(compiled, *, squeezed=True):
    """As `JitFunction` has it."""
    return SimpleNamespace(jitted=compiled, handed=lambda rng: rng)


def transitions_of(compile_, slope=0.5):
    reports = (((2,), "float64"),)
    return [
        Transition(function(compile_(drift)), (slope, "x", "table"), ("x", "table"), reports),
        Transition(function(compile_(count)), ("x", "numbers"), ("numbers",)),
    ]


class Loop:
    """Iterations of these functions."""

    def __init__(self, compile_):
        self.transitions = transitions_of(compile_)
        self.iterations = Iterations(self.transitions, START)

    def __call__(self, n, own, start=None):
        moved, reports = self.iterations(
            n, self.transitions, own, START if start is None else start
        )
        return dict(zip(START, moved, strict=True)), reports


SLOPE = 0.5
START = {
    "x": np.array(-1.0),
    "table": np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]),
    "numbers": np.array([1, 2, 3]),
}


def rngs():
    return [np.random.default_rng(k) for k in (1, 2)]


def one_by_one(n):
    values, own, moved, reports = dict(START), rngs(), [], []
    for _ in range(n):
        values["x"], values["table"], report = drift(own[0], SLOPE, values["x"], values["table"])
        [values["numbers"]] = count(own[1], values["x"], values["numbers"])
        moved.append([values[name] for name in ("x", "table", "numbers")])
        reports.append(report)
    return moved, reports, own


@pytest.fixture(scope="module")
def compiled():
    return Loop(njit)


@pytest.fixture(scope="module")
def in_python():
    return Loop(lambda f: f)


@pytest.mark.parametrize("how", ["compiled", "in_python"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_iterations_are_those_of_the_functions_called_one_by_one(how, n, request):
    own = rngs()
    moved, reports = request.getfixturevalue(how)(n, own)
    expected, expected_reports, after = one_by_one(n)
    for k, name in enumerate(("x", "table", "numbers")):
        assert len(moved[name]) == n
        for value, row in zip(moved[name], expected, strict=True):
            assert isinstance(value, np.ndarray)
            assert value.shape == row[k].shape
            np.testing.assert_allclose(value, row[k], rtol=1e-13)
    [[outcomes], []] = reports
    np.testing.assert_allclose(outcomes, expected_reports, rtol=1e-13)
    for used, known in zip(own, after, strict=True):
        assert used.bit_generator.state == known.bit_generator.state


def test_a_loop_that_passes_on_old_values_would_show():
    """The twin's second function reads what the first one has read."""
    twin = Loop(lambda f: f)
    source = _source(twin.transitions, START)
    loop = "    for i in range(n):\n"
    stale = source.replace(loop, f"{loop}        before = x0\n")
    stale = stale.replace("f1(rng1, x0", "f1(rng1, before")
    assert stale.count("before") == 2
    made = {}
    exec(stale, made)
    twin.iterations._loop = made["iterations"]
    moved, _ = twin(5, rngs())
    assert not np.array_equal(moved["numbers"], [row[2] for row in one_by_one(5)[0]])


def test_an_error_comes_through(compiled):
    with pytest.raises(ValueError, match="too large"):
        compiled(3, rngs(), {**START, "x": np.array(2e6)})


def test_arrays_that_nobody_may_write_to_are_taken(compiled):
    table = START["table"].copy()
    table.flags.writeable = False
    moved, _ = compiled(2, rngs(), {**START, "table": table})
    np.testing.assert_allclose(moved["table"][-1], one_by_one(2)[0][-1][1], rtol=1e-13)


def test_values_that_are_handed_out_are_not_written_to_again(compiled):
    moved, _ = compiled(4, rngs())
    before = [x.copy() for x in moved["numbers"]]
    compiled(4, rngs())
    np.testing.assert_array_equal(moved["numbers"], before)
    assert START["numbers"].tolist() == [1, 2, 3]


def noise(rng, n):
    return (rng.random(n),)


def shift(uniforms, numbers):
    """Moves if the first uniform number is small; says so."""
    return numbers + 1, np.array([uniforms[0], np.float64(uniforms[0] < 0.5)])


@pytest.mark.parametrize("compile_", [njit, lambda f: f], ids=["compiled", "in_python"])
def test_numbers_may_be_drawn_for_another_function_and_variables_stay(compile_):
    start = {"numbers": np.array([1.0, 2.0])}
    reports = (((2,), "float64"),)
    transitions = [
        Transition(function(compile_(noise)), (3,), ("uniforms",)),
        Transition(
            function(compile_(shift)),
            ("uniforms", "numbers"),
            ("numbers",),
            reports,
            draws=False,
            may_stay=True,
        ),
    ]
    pair = [np.random.default_rng(1)] * 2
    [moved], [[], [outcomes]] = Iterations(transitions, start)(8, transitions, pair, start)
    drawn = np.random.default_rng(1).random((8, 3))[:, 0]
    np.testing.assert_array_equal(outcomes[:, 0], drawn)
    np.testing.assert_array_equal(moved, start["numbers"] + np.cumsum(drawn < 0.5)[:, None])
    assert 0 < np.sum(drawn < 0.5) < 8
