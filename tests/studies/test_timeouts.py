"""Functions that take too long are stopped."""

import threading
import time

import pytest

from pymc_dapper.studies import timeouts
from pymc_dapper.studies.cell import CellRunner
from pymc_dapper.studies.grid import read_grid
from pymc_dapper.studies.timeouts import CellTimeout, within


def for_ever():
    while True:
        try:
            time.sleep(0.01)
        except Exception:  # as much as a user's function may swallow
            continue


def test_what_is_returned_or_raised_is_passed_on():
    assert within(60, lambda: 3, "simulate") == 3
    assert within(None, threading.current_thread, "simulate") is threading.current_thread()
    with pytest.raises(TimeoutError, match="of the function's own"):
        within(60, fail, "simulate")
    with pytest.raises(SystemExit):
        within(60, exit, "simulate")


def fail():
    raise TimeoutError("of the function's own")


def test_a_loop_is_stopped():
    before = threading.active_count()
    with pytest.raises(CellTimeout, match=r"simulate took longer than 0.1 s") as caught:
        within(0.1, for_ever, "simulate")
    assert not caught.value.unfinished
    assert threading.active_count() == before


def test_what_does_not_return_to_python_is_left_alone(monkeypatch):
    monkeypatch.setattr(timeouts, "GRACE", 0.05)
    begun = time.monotonic()
    with pytest.raises(CellTimeout) as caught:
        within(0.1, lambda: time.sleep(3), "simulate")
    assert caught.value.unfinished
    assert time.monotonic() - begun < 2


def test_a_study_bounds_simulate():
    [cell] = read_grid({"share": [0.3]}, 1).cells
    runner = CellRunner(lambda rng, share: for_ever(), None, 1, None, 0.9, 0.1, False, {})
    result = runner(cell)
    assert (result.status, result.unfinished) == ("timed out", False)
    assert result.message == "simulate took longer than 0.1 s, the study's timeout"
