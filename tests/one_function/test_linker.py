"""PyTensor's numba backend with one function for a graph. What that is: `test_writer.py`."""

import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.link.numba.linker import NumbaLinker

from pymc_dapper.one_function.linker import NOT_NEEDED, ONE_FUNCTION

X = pt.dvector("x")


def test_a_graph_is_one_function_that_calls_no_other():
    function = pytensor.function([X], [pt.exp(X).sum(), X[::-1] * 2], mode=ONE_FUNCTION)
    total, twice = function(np.zeros(3))
    assert total == 3
    np.testing.assert_array_equal(twice, np.zeros(3))
    assert "np.exp" in function.vm.jit_fn.py_func.__source__


def test_rewrites_that_are_left_out_are_pytensors():
    names = [rewrite.name for rewrite in pytensor.compile.mode.get_mode("NUMBA").optimizer.data]
    assert set(NOT_NEEDED) <= set(names)
    assert set(NOT_NEEDED).isdisjoint(rewrite.name for rewrite in ONE_FUNCTION.optimizer.data)


def test_the_mode_goes_to_other_processes():
    mode = pickle.loads(pickle.dumps(ONE_FUNCTION))
    assert isinstance(mode.linker, NumbaLinker)
