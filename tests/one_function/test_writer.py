"""Whole graphs as one function: compiled, cached, and their arrays."""

import inspect
import sys
from collections import Counter
from hashlib import sha256

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.conditional.op import ifelse
from pytensor.graph.fg import FunctionGraph

from pymc_dapper.one_function.linker import ONE_FUNCTION
from pymc_dapper.one_function.values import Value
from tests.one_function.graphs_to_write import (
    VALUES,
    as_python,
    close,
    expected,
    graphs,
    variables,
    written,
)

COMPILED = (
    *("isnan of special numbers", "sums of bools", "max of special numbers", "gradient"),
    "powers of small integers",
)
"""Graphs of each kind, in one function, as compiling it takes its time. Compiled with fastmath,
powers of small integers end the process."""


@pytest.mark.filterwarnings("ignore")
def test_compiled_it_has_the_same_values():
    inputs = variables()
    found = graphs(**inputs)
    branches = [ifelse(inputs["s"] > 0, inputs["v"], 2 * inputs["v"])]
    outputs = [x for name in COMPILED for x in found[name]] + branches
    function = pytensor.function(
        list(inputs.values()), outputs, mode=ONE_FUNCTION, on_unused_input="ignore"
    )
    given = {name: value.copy() for name, value in VALUES.items()}
    values = function(*given.values())
    reference = expected(list(inputs.values()), outputs[:-1])
    for mine, theirs in zip(values[:-1], reference, strict=True):
        assert close(np.asarray(mine), np.asarray(theirs))
    np.testing.assert_array_equal(values[-1], VALUES["v"])
    for name, value in given.items():
        np.testing.assert_array_equal(value, VALUES[name])


def text_of(build, **types):
    inputs = [pt.tensor(name, dtype="float64", shape=shape) for name, shape in types.items()]
    return written(FunctionGraph(inputs, build(*inputs), clone=True))


def test_the_key_is_of_all_that_is_compiled():
    keys = {
        text_of(lambda x: [x + 1], x=(None,)).key,
        text_of(lambda x: [x + 2], x=(None,)).key,
        text_of(lambda x: [x + 1], x=(3,)).key,
        text_of(lambda x: [x + np.arange(3.0)], x=(3,)).key,
        text_of(lambda x: [x + np.arange(3.0)[::-1].copy()], x=(3,)).key,
        text_of(lambda x: [pt.psi(x)], x=(3,)).key,
        text_of(lambda x: [pt.erfinv(x)], x=(3,)).key,
    }
    assert None not in keys
    assert len(keys) == 7
    assert text_of(lambda x: [x + 1], x=(3,)).key in keys
    assert all(len(key) == len(sha256().hexdigest()) for key in keys)


def test_an_input_of_another_shape_is_refused():
    """Where its type says which it is, as loops rely on it."""
    text = text_of(lambda x: [x.sum()], x=(3,))
    function = as_python(text)
    with pytest.raises(ValueError, match="another shape"):
        function(np.zeros(2))


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda x, y: [x + y], "fit together"),
        (lambda x, y: [pt.dot(x, y)], "fit together"),
        (lambda x, y: [x[y.astype("int64")]], "out of bounds"),
        (lambda x, y: [x[y[0].astype("int64")]], "out of bounds"),
        (lambda x, y: [pt.set_subtensor(x[:2], y)], "another shape"),
        (lambda x, y: [x.reshape((2, 3))], "wrong number"),
        (lambda x, y: [pt.concatenate([x[None], y[None]])], "differ in length"),
    ],
)
def test_shapes_that_do_not_fit_are_errors(build, error):
    text = text_of(build, x=(None,), y=(None,))
    function = as_python(text)
    with pytest.raises((ValueError, IndexError), match=error):
        function(np.arange(5.0), np.full(3, 7.0))


def test_outputs_share_no_memory_with_inputs_but_where_they_are_inputs():
    text = text_of(lambda x: [x[1:], x[None], x.reshape((2, 2)), x.T, x, x * 1], x=(4,))
    function = as_python(text)
    given = np.arange(4.0)
    *views, same, product = function(given)
    assert same is given
    assert not any(np.shares_memory(each, given) for each in [*views[:3], product])


def epidemic(n_steps, n_groups):
    """A recursion in which arrays are read several times, by number and by the group of persons."""
    beta, gamma = pt.vector("beta", shape=(n_groups,)), pt.scalar("gamma")
    left = 0.99 * pt.ones(n_groups)
    ill, new, of_persons = 1 - left, [], np.arange(1000) % n_groups
    for _ in range(n_steps):
        new.append(beta * left * ill)
        left, ill = left - new[-1], ill + new[-1] - gamma * ill
    return FunctionGraph([beta, gamma], [pt.stack(new), *(x[of_persons].sum() for x in new)])


# Numbers with names, and arrays in memory.
@pytest.mark.parametrize("n_groups", [pytest.param(3, marks=pytest.mark.long), 100])
def test_work_and_length_are_linear_in_the_graph(n_groups, monkeypatch):
    counts, most = Counter(), {"entries": 10_000}

    def counted(self, index, entry=Value.entry):
        counts["entries"] += 1
        assert counts["entries"] <= most["entries"]
        return entry(self, index)

    monkeypatch.setattr(Value, "entry", counted)

    def written_of(n_steps):
        counts.clear()
        text = written(epidemic(n_steps, n_groups))
        return np.array([counts["entries"], text.source.count("\n")])

    few = written_of(40)
    each = (written_of(80) - few) / 40
    most["entries"] = few[0] + 1.1 * 160 * each[0]
    np.testing.assert_array_less(written_of(200), few + 1.1 * 160 * each)


def test_a_deep_graph_needs_no_deep_stack():
    """Entries of arrays with a single use are worked out through all of them, in steps."""
    x, long = pt.vector("x", shape=(3,)), pt.vector("long")
    y, z, expected = x, long, (given := np.array([0.1, 0.2, 0.3]))
    for k in range(150):
        y, z, expected = (
            (np.cos(each[::-1]) if k % 7 else each[::-1] + start)
            for each, start in ((y, x), (z, long), (expected, given))
        )
    graph = FunctionGraph([x, long], [y, z], clone=True)
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 300)
    try:
        text = written(graph)
    finally:
        sys.setrecursionlimit(usual)
    function = as_python(text)
    for found in function(given, given):
        np.testing.assert_array_equal(found, expected)


def test_clipped_numbers_are_no_branches():
    """300 of them took numba 12 seconds in one function."""
    text = text_of(lambda x, n: [x.clip(-5, 5).sum(), n.clip(0, x.shape[0])], x=(9,), n=())
    assert " else " not in text.source


def test_a_vector_and_an_array_are_sorted_by_functions_of_their_own():
    """PyTensor has one key for both: told apart by that, one of them can't be compiled."""

    def n_functions(**types):
        text = text_of(lambda *inputs: [pt.sort(x, axis=0) for x in inputs], **types)
        return sum(hasattr(x, "py_func") for x in text.names.values())

    assert n_functions(x=(None,), y=(None, 2, None)) == 2
    assert n_functions(x=(None,), y=(None,)) == 1
