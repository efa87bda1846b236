"""Many iterations in one call give what the calls one by one give."""

from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit

from pymc_dapper.backend.iterations import Call, Iterations


def drift(rng, slope, x, table):
    """Changes a number and a matrix, and tells a vector."""
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


def calls_of(compile_):
    told = [((2,), "float64")]
    return [
        Call(function(compile_(drift)), [(0, 0), "x", "table"], ["x", "table"], told),
        Call(function(compile_(count)), ["x", "numbers"], ["numbers"], []),
    ]


START = {
    (0, 0): 0.5,
    "x": np.array(1.0),
    "table": np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]),
    "numbers": np.array([1, 2, 3]),
}


def rngs():
    return [np.random.default_rng(k) for k in (1, 2)]


def one_by_one(n):
    values, own, moved, told = dict(START), rngs(), [], []
    for _ in range(n):
        values["x"], values["table"], tells = drift(
            own[0], values[0, 0], values["x"], values["table"]
        )
        [values["numbers"]] = count(own[1], values["x"], values["numbers"])
        moved.append([values[name] for name in ("x", "table", "numbers")])
        told.append(tells)
    return moved, told, own


@pytest.fixture(scope="module")
def compiled():
    return Iterations(calls_of(njit), START)


@pytest.fixture(scope="module")
def in_python():
    return Iterations(calls_of(lambda f: f), START)


@pytest.mark.parametrize("how", ["compiled", "in_python"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_iterations_are_those_of_the_functions_called_one_by_one(how, n, request):
    own = rngs()
    moved, told = request.getfixturevalue(how)(n, own, START)
    expected, expected_told, after = one_by_one(n)
    for k, name in enumerate(("x", "table", "numbers")):
        assert len(moved[name]) == n
        for value, row in zip(moved[name], expected, strict=True):
            assert isinstance(value, np.ndarray)
            assert value.shape == row[k].shape
            np.testing.assert_allclose(value, row[k], rtol=1e-13)
    [[outcomes], []] = told
    np.testing.assert_allclose(outcomes, expected_told, rtol=1e-13)
    for used, known in zip(own, after, strict=True):
        assert used.bit_generator.state == known.bit_generator.state


def test_a_loop_that_passes_on_old_values_would_show():
    """The twin's second function reads what the first one has read."""
    twin = Iterations(calls_of(lambda f: f), START)
    source = twin._source(START)
    loop = "    for i in range(n):\n"
    stale = source.replace(loop, f"{loop}        before = x0\n")
    stale = stale.replace("f1(rng1, x0", "f1(rng1, before")
    assert stale.count("before") == 2
    made = {}
    exec(stale, made)
    twin._loop = made["iterations"]
    moved, _ = twin(5, rngs(), {**START, "x": np.array(-30.0), (0, 0): -0.5})
    assert moved["numbers"][0].tolist() == START["numbers"].tolist()
    assert one_step_from(-30.0, -0.5) > 0


def one_step_from(x, slope):
    return drift(rngs()[0], slope, np.array(x), START["table"])[0]


def test_an_error_comes_through(compiled):
    with pytest.raises(ValueError, match="too large"):
        compiled(3, rngs(), {**START, "x": np.array(2e6)})


def test_arrays_that_nobody_may_write_to_are_taken(compiled):
    table = START["table"].copy()
    table.flags.writeable = False
    moved, _ = compiled(2, rngs(), {**START, "table": table})
    np.testing.assert_allclose(moved["table"][-1], one_by_one(2)[0][-1][1], rtol=1e-13)


def test_values_that_are_handed_out_are_not_written_to_again(compiled):
    moved, _ = compiled(4, rngs(), START)
    before = [x.copy() for x in moved["numbers"]]
    compiled(4, rngs(), START)
    np.testing.assert_array_equal(moved["numbers"], before)
    assert START["numbers"].tolist() == [1, 2, 3]
