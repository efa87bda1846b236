"""Functions for numba: of a text, and of scalar operations."""

import numpy as np
import pytest
from pytensor import scalar as ps
from pytensor.scalar.basic import Composite

from pymc_dapper.backend import accelerate
from pymc_dapper.backend.entries import CellOf, LookUp
from pymc_dapper.backend.kernel_key import MODEL_KEYS, kernel_key
from pymc_dapper.backend.numba_ops import from_source, function_of, numba_function, numba_njit


def test_a_function_is_defined_by_its_text_and_what_that_refers_to():
    twice = from_source("def f(x):\n    return by * x", "f", by=2)
    assert twice(4) == 8


def test_a_scalar_operation_becomes_a_function_with_a_key():
    x, y = ps.float64("x"), ps.float64("y")
    function = function_of(Composite([x, y], [x * y + 1]))
    assert numba_njit(lambda x, y: function(x, y), final_function=True)(2.0, 3.0) == 7
    same, other = (function_of(Composite([x, y], [output])) for output in (x * y + 1, x * y + 2))
    assert MODEL_KEYS[function] == MODEL_KEYS[same] != MODEL_KEYS[other]


X, K = ps.float64("x"), ps.int64("k")
OF_NUMBERS = {
    "sums": (X * 2.0 - ps.sqr(X) / (1.0 + X), ps.true_div(K, 3) + K),
    "choices": (ps.switch(ps.lt(X, 0.5), -np.inf, ps.log1p(X)), ps.switch(ps.ge(K, 0), K, -1)),
    "special": (ps.math.gammaln(X + 1.0), ps.math.gammaln(ps.cast(X, "int64") + K + 1)),
    "nested": (Composite([X], [ps.exp(-X)])(X), ps.abs(X - K)),
}


def called_with_two(function):
    return numba_njit(lambda x, k: function(x, k), final_function=True)


@pytest.mark.parametrize("plain", [False, True], ids=["accelerated", "plain"])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_a_scalar_operation_has_the_values_that_python_finds(name, plain, monkeypatch):
    if plain:
        monkeypatch.setattr(accelerate, "whole_graphs", lambda: None)
    for output in OF_NUMBERS[name]:
        op = Composite([X, K], [ps.cast(output, "float64")])
        called = called_with_two(function_of(op))
        for x in np.array([0.0, 0.3, 2.0, 7.5]):
            for k in np.array([0, 1, 4]):
                assert called(x, k) == pytest.approx(op.impl(x, k), rel=1e-14)


def test_a_text_that_defines_something_else_is_no_function():
    with pytest.raises(KeyError):
        from_source("def f(x):\n    return x", "g")


def test_a_table_is_compiled_into_its_look_up_and_tells_its_key():
    table = np.array([[1.0, 2.0], [3.0, -np.inf]])
    function = numba_function(LookUp(table))
    called = numba_njit(lambda i, j: function(i, j), final_function=True)
    assert called(1, 0) == 3.0
    assert called(1, 1) == -np.inf
    same, other = (numba_function(LookUp(each)) for each in (table.copy(), table + 1))
    assert kernel_key(function) == kernel_key(same) != kernel_key(other)


def test_a_cell_is_compiled_with_its_cuts():
    cuts = np.array([0.0, 1.0, 4.0])
    function = numba_function(CellOf(cuts))
    called = numba_njit(lambda x: function(x), final_function=True)
    given = (-1.0, -0.0, 0.0, 0.5, 4.0, 9.0, -np.inf, np.inf, np.nan)
    assert [called(x) for x in given] == [CellOf(cuts).impl(x) for x in given]
    same, other = (numba_function(CellOf(each)) for each in (cuts.copy(), cuts + 1))
    assert kernel_key(function) == kernel_key(same) != kernel_key(other)
