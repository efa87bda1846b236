"""Machine code of cumulated sums is told apart by the number of axes."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dapper.backend.jit import JitFunction


def test_sums_of_vectors_and_of_arrays_have_code_of_their_own():
    vector, array = pt.dvector(), pt.tensor3()
    values = np.arange(12.0).reshape(3, 2, 2)
    for x, at in ((vector, values[:, 0, 1].copy()), (array, values)):
        function = JitFunction([x], [pt.cumsum(x, axis=0)], model=pm.Model(), compile_kwargs={})
        np.testing.assert_array_equal(function(at)[0], np.cumsum(at, axis=0))
