"""Functions for numba, run in Python with all that they call."""

import numpy as np
from numba import njit

from pymc_dapper.backend.in_python import in_python


@njit
def add(a, b):
    return a + b


@njit
def fold(function, xs, start=0.0):
    total = start
    for x in xs:
        total = add(total, function(x))
    return total


def closure(by):
    @njit
    def times(x):
        return add(by * x, 0.0)

    return times


@njit
def countdown(n):
    return 0 if n == 0 else 1 + countdown(n - 1)


def test_all_that_is_called_runs_in_python():
    plain, times = in_python(fold), in_python(closure(3))
    assert plain(times, np.arange(4.0)) == 18
    assert plain(times, np.arange(4.0), 1.0) == 19
    assert plain.__globals__["add"] is not add
    # Nothing was compiled for it.
    assert fold.signatures == add.signatures == []


def test_a_function_may_call_itself():
    assert in_python(countdown)(5) == 5
    assert countdown.signatures == []


def test_a_function_is_made_once():
    made = {}
    assert in_python(fold, made) is in_python(fold, made)
    assert made[add] is in_python(fold, made).__globals__["add"]
