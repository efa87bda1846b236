"""PyTensor's settings, changed for a while."""

import threading
from contextlib import ExitStack

import pytest
from pytensor import config

from pymc_dapper.backend.flags import changed


def limit():
    return config.traceback__limit


def test_a_setting_is_as_it_was_afterwards():
    before = limit()

    def interrupted():
        with changed(config, "traceback__limit", before + 1):
            with changed(config, "traceback__limit", before + 1):
                pass
            found.append(limit())
            raise KeyboardInterrupt

    found = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert found == [before + 1]
    assert limit() == before
    with config.change_flags(traceback__limit=before + 2):  # a user's own, before or between
        with changed(config, "traceback__limit", before + 1):
            pass
        assert limit() == before + 2


def test_of_two_threads_the_last_one_puts_back_what_there_was():
    """And not what it found, which the other one had set."""
    before, begun = limit(), threading.Event()

    def other():
        with changed(config, "traceback__limit", before + 1):
            begun.set()
            ended.wait()
            found.append(limit())

    found, ended, thread = [], threading.Event(), threading.Thread(target=other)
    with ExitStack() as first:
        first.enter_context(changed(config, "traceback__limit", before + 1))
        thread.start()
        begun.wait()
    ended.set()
    thread.join()
    assert found == [before + 1]
    assert limit() == before


def test_a_setting_that_is_none_of_pytensors_is_refused_and_a_wrong_value_changes_nothing():
    before = limit()
    with pytest.raises(AttributeError), changed(config, "no_such_setting", 1):
        pass
    with pytest.raises(ValueError, match="many"), changed(config, "traceback__limit", "many"):
        pass
    assert limit() == before
    with changed(config, "traceback__limit", before + 1):
        assert limit() == before + 1
    assert limit() == before
