"""Whole graphs as one function: compiled, cached, and of what its arrays are."""

from hashlib import sha256

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.conditional.op import ifelse
from pytensor.graph.fg import FunctionGraph

from pymc_dapper.backend.one_function.linker import ONE_FUNCTION
from pymc_dapper.backend.one_function.writer import write
from tests.backend.one_function.graphs_to_write import VALUES, close, expected, graphs, variables

COMPILED = ("isnan of special numbers", "sums of bools", "max of special numbers", "gradient")
"""Graphs of each kind, in one function, as compiling it takes its time."""


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


def written(build, **types):
    inputs = [pt.tensor(name, dtype="float64", shape=shape) for name, shape in types.items()]
    return write(FunctionGraph(inputs, build(*inputs), clone=True), "one_function")


def test_the_key_is_of_all_that_is_compiled():
    keys = {
        written(lambda x: [x + 1], x=(None,)).key,
        written(lambda x: [x + 2], x=(None,)).key,
        written(lambda x: [x + 1], x=(3,)).key,
        written(lambda x: [x + np.arange(3.0)], x=(3,)).key,
        written(lambda x: [x + np.arange(3.0)[::-1].copy()], x=(3,)).key,
        written(lambda x: [pt.psi(x)], x=(3,)).key,
        written(lambda x: [pt.erfinv(x)], x=(3,)).key,
    }
    assert None not in keys
    assert len(keys) == 7
    assert written(lambda x: [x + 1], x=(3,)).key in keys
    assert all(len(key) == len(sha256().hexdigest()) for key in keys)


def test_an_input_of_another_shape_is_refused():
    """Where its type says which it is, as loops rely on it."""
    text = written(lambda x: [x.sum()], x=(3,))
    names = dict(text.in_python)
    exec(text.source, names)
    with pytest.raises(ValueError, match="another shape"):
        names["one_function"](np.zeros(2))


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda x, y: [x + y], "fit together"),
        (lambda x, y: [pt.dot(x, y)], "fit together"),
        (lambda x, y: [x[y.astype("int64")]], "out of bounds"),
        (lambda x, y: [x[y[0].astype("int64")]], "out of bounds"),
        (lambda x, y: [pt.set_subtensor(x[:2], y)], "another shape"),
        (lambda x, y: [x.reshape((2, -1))], "wrong number"),
        (lambda x, y: [pt.concatenate([x[None], y[None]])], "differ in length"),
    ],
)
def test_shapes_that_do_not_fit_are_errors(build, error):
    text = written(build, x=(None,), y=(None,))
    names = dict(text.in_python)
    exec(text.source, names)
    with pytest.raises((ValueError, IndexError), match=error):
        names["one_function"](np.arange(5.0), np.full(3, 7.0))


def test_outputs_share_no_memory_with_inputs_but_where_they_are_inputs():
    text = written(lambda x: [x[1:], x[None], x.reshape((2, 2)), x.T, x, x * 1], x=(4,))
    names = dict(text.in_python)
    exec(text.source, names)
    given = np.arange(4.0)
    *views, same, product = names["one_function"](given)
    assert same is given
    assert not any(np.shares_memory(each, given) for each in [*views[:3], product])
