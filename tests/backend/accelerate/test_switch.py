"""Accelerations are on, off, or given up, and what there is without them does the same."""

import logging

import numpy as np
import pytest
from numba import njit, types

from pymc_dapper.backend import accelerate
from pymc_dapper.backend.accelerate import outermost, switch
from pymc_dapper.backend.accelerate.switch import MODULES, SWITCH, is_on, once_more_without
from pymc_dapper.backend.in_python import in_python


@pytest.fixture
def anew(monkeypatch):
    """What this process has found out by now is found out again, and forgotten afterwards."""
    monkeypatch.setattr(switch, "failed", False)
    switch.found.cache_clear()
    yield
    switch.found.cache_clear()


def test_all_are_on_with_what_is_installed(monkeypatch):
    monkeypatch.delenv(SWITCH, raising=False)
    assert [is_on(name) for name in MODULES] == [True] * len(MODULES)


@pytest.mark.parametrize("value", ["1", "true"])
def test_one_variable_turns_all_of_them_off(value, monkeypatch):
    monkeypatch.setenv(SWITCH, value)
    assert [is_on(name) for name in MODULES] == [False] * len(MODULES)
    monkeypatch.setenv(SWITCH, "0")
    assert is_on("one_function")


def test_one_that_relies_on_a_name_that_is_gone_is_off_and_logged_once(anew, monkeypatch, caplog):
    monkeypatch.setitem(MODULES, "addresses", "pymc_dapper.backend.no_such_module")
    with caplog.at_level(logging.WARNING, "pymc"):
        on = [is_on(name) for name in MODULES if name != "addresses"] * 2
        assert not is_on("addresses")
    assert all(on)
    [record] = caplog.records
    assert "compiles models more slowly" in record.message
    assert "addresses (No module named" in record.message
    assert "Draws are right either way" in record.message


def test_one_that_replaces_what_looks_otherwise_is_off(anew, monkeypatch, caplog):
    """Whatever the version: the source of each function that it replaces is compared."""
    module = switch.found()["deferred_libraries"]
    assert len(module.LOOKED) > 10
    switch.found.cache_clear()
    name = next(iter(module.LOOKED))
    monkeypatch.setitem(module.LOOKED, name, {"another"})
    with caplog.at_level(logging.WARNING, "pymc"):
        assert not is_on("deferred_libraries")
    assert f"deferred_libraries ({name})" in caplog.records[0].message


class Works:
    """Work that compiles, within an acceleration, and fails there."""

    def __init__(self, monkeypatch, error):
        self.times, self.error = 0, error
        self.patch = monkeypatch

    def fail(self, *_):
        if is_on("deferred_libraries"):
            raise self.error

    def __call__(self):
        self.times += 1
        inner = njit(lambda x: x + 1)
        function = outermost(njit(lambda x: 2 * inner(x)))
        if is_on("deferred_libraries"):
            module = switch.found()["deferred_libraries"]
            self.patch.setattr(module.DeferredLibrary, "_called", self.fail)
        return function(2.0)


def test_what_fails_within_one_is_done_once_more_without(anew, monkeypatch, caplog):
    work = Works(monkeypatch, AttributeError("gone"))
    with caplog.at_level(logging.WARNING, "pymc"):
        assert once_more_without(work) == 6.0
        assert once_more_without(work) == 6.0  # from now on, without
    assert work.times == 3
    assert "one of them failed (AttributeError: gone)" in caplog.records[0].message
    assert len(caplog.records) == 1
    assert not is_on("one_function")


def test_what_fails_either_way_raises_its_own_error(anew, caplog):
    """And all are on afterwards: it isn't their fault."""

    def refused(x):
        raise NotImplementedError

    def work():
        times.append(1)
        outermost(njit(lambda x: refused(x).no_such_attribute))(1.0)

    times = []
    with pytest.raises(Exception, match="no_such_attribute"):
        once_more_without(work)
    assert len(times) == 2
    assert is_on("deferred_libraries")
    assert caplog.records == []


@pytest.mark.parametrize("error", [ValueError("a user's"), MemoryError()])
def test_a_task_without_accelerations_is_done_once(error):
    def work():
        times.append(1)
        raise error

    times = []
    with pytest.raises(type(error)):
        once_more_without(work)
    assert len(times) == 1


NUMBERS = types.float64[::1]


@pytest.mark.parametrize("plain", ["0", "1"])
def test_answers_are_the_same_with_and_without(plain, monkeypatch):
    monkeypatch.setenv(SWITCH, plain)
    kernel = njit(lambda function, context, x: 4 * function(context, x))
    function = njit(lambda context, x: context[0] * x[0])
    given = accelerate.given_function(
        kernel, function, types.float64(NUMBERS), types.float64(NUMBERS), "a kernel"
    )
    x = np.array([2.0, 3.0])
    assert njit(lambda x, a: given((a,), x))(x, 1.5) == 12.0
    assert in_python(given)((1.5,), x) == 12.0
    assert njit(lambda x: x.sum())(x) == 5.0
