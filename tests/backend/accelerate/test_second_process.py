"""A second process does some of the tasks, and nobody notices but by the time."""

import logging
import os
import signal
import sys
import threading
import time
import warnings
from multiprocessing import active_children
from multiprocessing.context import ForkProcess
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor
import pytest
from numba.core import event
from numba.core.caching import IndexDataCacheFile
from pytensor.link.numba import cache

import pymc_dapper as pmd
from pymc_dapper.backend.accelerate import second_process
from pymc_dapper.backend.accelerate.optimised_once import is_under_way, optimised_once
from pymc_dapper.backend.accelerate.second_process import can_be_shared, in_two_processes

HERE = os.getpid()


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    """A second process may be begun; none is left."""
    monkeypatch.setattr(second_process, "can_be_shared", lambda: True)
    there, n_open = children(), len(os.listdir("/proc/self/fd"))
    yield
    assert active_children() == []
    assert children() <= there
    assert len(os.listdir("/proc/self/fd")) == n_open


def children():
    """Processes that this one began and hasn't heard the end of; other tests may have left some."""
    threads = Path("/proc/self/task").iterdir()
    return {child for thread in threads for child in (thread / "children").read_text().split()}


def compiles():
    """Something isn't on disk."""
    with optimised_once(), event.trigger_event("numba:compile"):
        pass


class Tasks:
    """Tasks that note in a file which process began them."""

    def __init__(self, folder, n=4, *, here=lambda: None, there=lambda: None, compiles=compiles):
        self.notes, self.here, self.there, self.compiles = folder / "notes", here, there, compiles
        self.tasks = [lambda k=k: self.task(k) for k in range(n)]

    def task(self, k):
        with self.notes.open("a") as file:
            file.write(f"{k} {os.getpid()}\n")
        self.compiles()
        if os.getpid() != HERE:
            self.there()
        elif k == len(self.tasks) - 1:  # with which this process begins
            self.here()
        return k**2

    def begun(self):
        """What this process did, and what the second one did."""
        noted = [tuple(map(int, line.split())) for line in self.notes.read_text().splitlines()]
        return [k for k, by in noted if by == HERE], [k for k, by in noted if by != HERE]


def wait_for_others():
    """Give the second process the time to take the next task."""
    time.sleep(0.3)


def test_a_second_process_does_some_tasks_first_and_this_one_all(tmp_path):
    tasks = Tasks(tmp_path, here=wait_for_others)
    assert in_two_processes(tasks.tasks) == [0, 1, 4, 9]
    here, there = tasks.begun()
    assert here[0] == 3
    assert sorted(here) == [0, 1, 2, 3]
    assert there[0] == 2


@pytest.mark.parametrize("compiles", [lambda: None, lambda: event.trigger_event("numba:compile")])
def test_where_all_is_on_disk_or_isnt_kept_there_no_process_is_begun(compiles, tmp_path):
    tasks = Tasks(tmp_path, compiles=compiles)
    assert in_two_processes(tasks.tasks) == [0, 1, 4, 9]
    assert tasks.begun() == ([3, 2, 1, 0], [])


def test_other_threads_begin_no_process(tmp_path):
    def compiles_elsewhere():
        thread = threading.Thread(target=compiles)
        thread.start()
        thread.join()

    tasks = Tasks(tmp_path, compiles=compiles_elsewhere)
    assert in_two_processes(tasks.tasks) == [0, 1, 4, 9]
    assert tasks.begun() == ([3, 2, 1, 0], [])


def test_a_single_task_and_the_last_one_need_no_second_process(tmp_path):
    tasks = Tasks(tmp_path, n=1)
    assert in_two_processes(tasks.tasks) == [0]
    assert tasks.begun() == ([0], [])


def test_what_are_too_many_to_be_shared_are_done_here(tmp_path):
    tasks = Tasks(tmp_path, n=300)
    assert in_two_processes(tasks.tasks) == [k**2 for k in range(300)]
    here, there = tasks.begun()
    assert sorted(here) == list(range(300))
    assert max(there, default=0) < 256


@pytest.mark.parametrize("cannot", ["share", "fork"])
def test_all_is_done_here_where_there_can_be_no_second_process(cannot, tmp_path, monkeypatch):
    def no_fork(process):
        raise BlockingIOError("Resource temporarily unavailable")

    if cannot == "share":
        monkeypatch.setattr(second_process, "can_be_shared", lambda: False)
    monkeypatch.setattr(ForkProcess, "_Popen", staticmethod(no_fork))
    tasks = Tasks(tmp_path)
    assert in_two_processes(tasks.tasks) == [0, 1, 4, 9]
    assert sorted(tasks.begun()[0]) == [0, 1, 2, 3]


def test_failures_in_the_second_process_are_silent(tmp_path, capfd, caplog):
    """Nothing is printed, logged or warned of, either."""

    def fail():
        print("printed")
        os.write(2, b"written")
        warnings.warn("warned of", stacklevel=1)
        logging.getLogger("pymc").error("logged")
        raise ValueError("not here")

    tasks = Tasks(tmp_path, here=wait_for_others, there=fail)
    assert in_two_processes(tasks.tasks) == [0, 1, 4, 9]
    here, there = tasks.begun()
    assert sorted(here) == [0, 1, 2, 3]
    assert there == [2]
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


@pytest.mark.parametrize("end", [lambda: os._exit(1), lambda: os.kill(os.getpid(), signal.SIGKILL)])
def test_a_process_that_dies_is_done_without(end, tmp_path):
    tasks = Tasks(tmp_path, here=wait_for_others, there=end)
    assert in_two_processes(tasks.tasks) == [0, 1, 4, 9]
    assert tasks.begun()[1] == [2]


def test_a_process_that_does_nothing_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(second_process, "PATIENCE", 0.2)
    tasks = Tasks(tmp_path, here=wait_for_others, there=lambda: time.sleep(1000))
    assert in_two_processes(tasks.tasks) == [0, 1, 4, 9]
    assert tasks.begun()[1] == [2]


def test_a_process_that_works_is_waited_for(tmp_path, monkeypatch):
    finished = tmp_path / "finished"

    def work():
        began = time.process_time()  # a process has a clock of its own
        while time.process_time() - began < 0.5:
            pass
        finished.touch()

    monkeypatch.setattr(second_process, "PATIENCE", 0.2)
    tasks = Tasks(tmp_path, n=2, here=wait_for_others, there=work)
    first, last = tasks.tasks

    def seen():
        found.append(finished.exists() or os.getpid() != HERE)
        return first()

    found = []
    assert in_two_processes([seen, last]) == [0, 1]
    assert found == [True]
    assert tasks.begun() == ([1, 0], [0])


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_it_ends_where_this_one_is_interrupted_or_fails(error, tmp_path):
    def fail():
        wait_for_others()
        raise error

    tasks = Tasks(tmp_path, here=fail, there=lambda: time.sleep(1000))
    with pytest.raises(error):
        in_two_processes(tasks.tasks)
    assert tasks.begun() == ([3], [2])


def test_a_file_being_written_is_finished(tmp_path):
    class Slow(IndexDataCacheFile):
        def _dump(self, obj):
            (tmp_path / "begun").touch()
            time.sleep(0.5)
            return super()._dump(obj)

    def save():
        file = Slow(str(tmp_path), "function", 0)
        file.save("signature", "machine code")

    def fail():
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        raise KeyboardInterrupt

    tasks = Tasks(tmp_path, here=fail, there=save)
    with pytest.raises(KeyboardInterrupt):
        in_two_processes(tasks.tasks)
    assert IndexDataCacheFile(str(tmp_path), "function", 0).load("signature") == "machine code"
    assert not list(tmp_path.glob("*.tmp.*"))


def test_threads_are_neither_waited_for_nor_warned_of(tmp_path):
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        in_two_processes(Tasks(tmp_path, here=wait_for_others).tasks)
    finally:
        stop.set()
        thread.join()


def test_random_numbers_of_this_process_stay_as_they_are(tmp_path):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    tasks = Tasks(tmp_path, here=wait_for_others, there=np.random.random)
    in_two_processes(tasks.tasks)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_a_process_is_begun_where_there_is_a_core_and_a_cache_for_it(monkeypatch, tmp_path):
    def possible(*change):
        with monkeypatch.context() as patch:
            patch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
            patch.setattr(cache, "NUMBA_CACHE_PATH", tmp_path)
            if change:
                patch.setattr(*change)
            return can_be_shared()

    assert possible()
    assert not possible(os, "sched_getaffinity", lambda _: {1})
    assert not possible(cache, "NUMBA_CACHE_PATH", tmp_path / "missing")
    assert not possible(sys, "platform", "darwin")
    with pytensor.config.change_flags(numba__cache=False):
        assert not possible()


def test_a_process_that_another_one_began_begins_none():
    """A worker of PyMC's, or of a user's own."""
    process = ForkProcess(target=lambda: os._exit(can_be_shared()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    process.join()
    assert process.exitcode == 0
    process.close()


def test_it_is_known_when_something_is_compiled_for_us():
    assert not is_under_way()
    with optimised_once():
        assert is_under_way()


@pytest.mark.long
def test_draws_are_the_same_and_some_functions_come_from_the_second_process(tmp_path, monkeypatch):
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        scale = pm.HalfNormal("scale", 1)
        x = pm.Bernoulli("x", p, shape=20)
        pm.Potential("privacy", -(((x.sum() - 9.0) / (2 + scale)) ** 2))

    def draws(shared):
        folder = tmp_path / f"{shared}"
        folder.mkdir()
        count = CountCompilations()
        with monkeypatch.context() as patch, event.install_listener("numba:compile", count):
            patch.setattr(cache, "NUMBA_CACHE_PATH", folder)
            patch.setattr(second_process, "can_be_shared", lambda: shared)
            options = {"tune": 20, "chains": 1, "random_seed": 1, "progressbar": False}
            drawn = pmd.sample(
                20, model=model, records=x, compute_convergence_checks=False, **options
            )
        assert not list(folder.glob("*.tmp.*"))
        return drawn, count.number

    (alone, n_alone), (together, n_together) = draws(False), draws(True)
    assert n_together < n_alone
    for name in ("p", "scale"):
        np.testing.assert_array_equal(alone.posterior[name], together.posterior[name])


class CountCompilations(event.Listener):
    """How many functions this process has compiled."""

    number = 0

    def on_start(self, event):
        self.number += 1

    def on_end(self, event):
        pass
