"""Terms of the log-density, as they are looked up and called."""

import numpy as np

from pymc_dapper.backend.numba_ops import from_source
from pymc_dapper.counts.compiled.op import TermFunction, _term_source


def test_each_kind_of_term_is_handed_its_linear_functions_and_context():
    functions = (TermFunction(None, 1, 2), TermFunction(None, 2, 0))
    log_term = from_source(
        _term_source(functions), "log_term", function_0=lambda *x: x, function_1=lambda *x: x
    )
    values, slopes = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, -1.0])
    context = (np.array([7.0, 8.0, 9.0]),)
    # From the second value on, two steps along the line; from the second place in the context on.
    assert log_term(0, 1, 1, values, slopes, 2, context) == (4.0, 8.0, 9.0)
    assert log_term(1, 1, 0, values, slopes, 2, context) == (4.0, 1.0)
    assert log_term(-1, 0, 0, values, slopes, 2, context) == 0
