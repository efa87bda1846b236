"""Functions that kernels are given, without accelerations."""

import sys

import numpy as np
import pytest
from numba import njit, types

from pymc_dapper.backend import accelerate
from pymc_dapper.backend.accelerate import given_function, passing
from pymc_dapper.backend.accelerate.switch import SWITCH
from pymc_dapper.backend.jit import kept_on_disk

CONTEXT = np.array([0.25, 0.75])
TAKES = types.float64(types.float64)


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    monkeypatch.setenv(SWITCH, "1")


def kernel(function, context, x):
    total = 0.0
    for k in range(4):
        total += function(context, x + k)
    return total


def times(number):
    return njit(lambda context, x: number * context[0].sum() * x)


def test_they_are_kept_on_disk_with_the_kernel_each_with_its_own():
    """As in a process that comes later; and no address is in it, as where numba passes them."""

    def kept(number):
        given = given_function(njit(kernel), times(number), TAKES, TAKES, "a kernel")
        return kept_on_disk(njit(lambda x: given((CONTEXT,), x)))

    first, second, other = map(kept, (2.25, 2.25, 3.25))
    assert first is not second
    assert (first(2.0), second(2.0), other(2.0)) == (31.5, 31.5, 45.5)
    assert sum(second.stats.cache_hits.values()) == 1


@pytest.mark.parametrize("by_type", [True, False])
def test_a_kernel_is_kept_on_disk_with_what_is_passed_to_it(by_type, monkeypatch):
    monkeypatch.setattr(accelerate, "_passed_by_type", lambda: by_type)

    def kept(number):
        called, function = passing(njit(kernel), times(number))
        return kept_on_disk(njit(lambda x: called(function, (CONTEXT,), x)))

    first, second, other = map(kept, (2.5, 2.5, 3.5))
    assert first is not second
    assert (first(2.0), second(2.0), other(2.0)) == (35.0, 35.0, 49.0)
    assert sum(second.stats.cache_hits.values()) == 1
    assert passing(njit(kernel), None)[1] is None


@pytest.mark.parametrize("gone", ["Dispatcher", "Callable", "Dummy"])
def test_they_are_passed_as_numba_passes_them_where_it_knows_no_such_type(gone, monkeypatch):
    monkeypatch.delattr(types, gone)
    monkeypatch.delitem(sys.modules, "pymc_dapper.backend.accelerate.given", raising=False)
    accelerate._passed_by_type.cache_clear()
    try:
        given = given_function(njit(kernel), times(2.25), TAKES, TAKES, "a kernel")
        assert not accelerate._passed_by_type()
    finally:
        accelerate._passed_by_type.cache_clear()
    monkeypatch.undo()
    assert njit(lambda x: given((CONTEXT,), x))(2.0) == 31.5
