"""Functions for numba: of a text, and of scalar operations."""

import pytest
from pytensor import scalar as ps
from pytensor.scalar.basic import Composite

from pymc_dapper.backend.kernel_key import MODEL_KEYS
from pymc_dapper.backend.numba_ops import from_source, function_of, numba_njit


def test_a_function_is_defined_by_its_text_and_what_that_refers_to():
    twice = from_source("def f(x):\n    return by * x", "f", by=2)
    assert twice(4) == 8


def test_a_scalar_operation_becomes_a_function_with_a_key():
    x, y = ps.float64("x"), ps.float64("y")
    function = function_of(Composite([x, y], [x * y + 1]))
    assert numba_njit(lambda x, y: function(x, y), final_function=True)(2.0, 3.0) == 7
    same, other = (function_of(Composite([x, y], [output])) for output in (x * y + 1, x * y + 2))
    assert MODEL_KEYS[function] == MODEL_KEYS[same] != MODEL_KEYS[other]


def test_a_text_that_defines_something_else_is_no_function():
    with pytest.raises(KeyError):
        from_source("def f(x):\n    return x", "g")
