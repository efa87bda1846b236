"""A second process that compiles some functions and leaves them in the cache on disk.

numba compiles one function at a time, on one core, whatever the number of threads. A process forked
from this one has the same graphs in memory, and compiles some of them at the same time. Nothing is
passed back: its results are found on disk, like those of any earlier process, and missing ones are
compiled here. So if the process fails, only time is lost.

Depends on Linux, where forks are safe here, and on numba's events. With two idle cores, a new
model's first draw takes a third to a half less time by the clock; CPU time stays the same. Without
it, steps are compiled one after the other.

It is begun at the first function that isn't on disk: if all are, it would only cost time. Each
process takes the next step from a pipe until none is left, those that take longest first. The
second one is silent, doesn't hear of interrupts, and is ended when the first one fails or is done
waiting, but not while it writes a file. The fork is made under numba's lock, as no other thread is
compiling then.

There is none with ``cores=1``, with a mode of the user's, for models of more than 100,000 values
(both processes would hold copies), in a process that `multiprocessing` began, on a single core,
without a cache that can be written to, or elsewhere than on Linux. `pm.sample` with steps built by
hand or by `assign_steps` has none.
"""

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from multiprocessing import get_context, parent_process
from select import select
from typing import Any, Self

from numba.core import event
from numba.core.caching import IndexDataCacheFile
from pytensor import config
from pytensor.link.numba import cache

from pymc_dapper.backend.accelerate.optimised_once import is_under_way

CLOSED = -1
"""Stands in for an end of a pipe."""

MOST_SHARED = 256
"""Number of tasks that fit into a byte; further ones are done by this process alone."""

PATIENCE = 2.0
"""Seconds without any work after which the second process is given up."""


def in_two_processes[R](tasks: Sequence[Callable[[], R]]) -> list[R]:
    """Do tasks that compile, while a second process does some of them, too.

    Parameters
    ----------
    tasks : sequence of callable
        The tasks, in any order. They are begun from the end.

    Returns
    -------
    list
        Their results. This process does all tasks, each once; it finds on disk what the second one
        has compiled.
    """
    done: dict[int, R] = {}
    if len(tasks) > 1 and can_be_shared():
        with _SecondProcess(tasks[:MOST_SHARED]) as second:
            for number in chain(second.take(), second.wait()):
                done[number] = tasks[number]()
    return [done[k] if k in done else task() for k, task in enumerate(tasks)]


def can_be_shared() -> bool:
    """Whether a second process could compile something, and its work be found.

    There must be a core for it, and a cache that can be written to. A process that another one
    began to have work shared begins none. Elsewhere than on Linux, forks aren't safe.
    """
    return (
        sys.platform == "linux"
        and len(os.sched_getaffinity(0)) > 1
        and parent_process() is None
        and bool(config.numba__cache)
        and os.access(cache.NUMBA_CACHE_PATH, os.W_OK)
    )


class _SecondProcess(event.Listener):
    """A process that takes tasks by turns with this one, from a pipe of their numbers."""

    def __init__(self, tasks: Sequence[Callable[[], Any]]):
        self._tasks, self._left = tasks, len(tasks)
        self._process: Any = None
        self._todo = self._reports = self._report = CLOSED
        self._thread = threading.get_ident()

    def __enter__(self) -> Self:
        (self._todo, fill), (self._reports, self._report) = os.pipe(), os.pipe()
        os.write(fill, bytes(reversed(range(len(self._tasks)))))
        os.close(fill)
        event.register("numba:compile", self)
        return self

    def __exit__(self, *error: object) -> None:
        event.unregister("numba:compile", self)
        if self._process is not None:
            self._process.terminate()
            self._process.join(PATIENCE)
            self._process.kill()
            self._process.join()
        for end in (self._todo, self._reports, self._report):
            if end != CLOSED:
                os.close(end)

    def on_start(self, event: event.Event) -> None:
        """Begin the process, as something isn't on disk."""
        ours = is_under_way() and threading.get_ident() == self._thread
        if ours and self._left > 0 and self._process is None:
            process = get_context("fork").Process(target=self._work, daemon=True)
            try:
                with warnings.catch_warnings():
                    # Of threads: none of them is compiling, as numba's lock is held here.
                    warnings.simplefilter("ignore")
                    process.start()
            except OSError:  # no process more, or no memory for one
                self._left = 0
            else:
                self._process = process

    def on_end(self, event: event.Event) -> None:
        """Nothing ends with a function."""

    def take(self) -> Iterator[int]:
        """Take tasks, one by one, that nobody has taken."""
        while number := os.read(self._todo, 1):
            self._left -= 1
            yield number[0]

    def wait(self) -> Iterator[int]:
        """Wait for the tasks that the process has taken, as long as it works."""
        os.close(self._report)  # so that there is an end when the process has ended
        self._report = CLOSED
        worked = None
        while self._process is not None:
            if select([self._reports], [], [], PATIENCE)[0]:
                number = os.read(self._reports, 1)
                if not number:
                    return
                yield number[0]
            elif worked == (worked := _work_of(self._process.pid)):
                return

    def _work(self) -> None:
        """Do tasks in the second process, silently."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process handles interrupts
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._left = 0
        logging.disable()
        warnings.simplefilter("ignore")
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        for standard in (1, 2):
            os.dup2(sys.stdout.fileno(), standard)
        save = _to_the_end(IndexDataCacheFile.save)
        IndexDataCacheFile.save = save  # type: ignore[method-assign]
        for number in self.take():
            self._tasks[number]()
            os.write(self._report, bytes([number]))


def _to_the_end(save: Callable[..., None]) -> Callable[..., None]:
    """Finish writing files before the process is terminated."""

    def saved(*arguments: Any) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            save(*arguments)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    return saved


def _work_of(pid: int) -> list[str] | None:
    """Return the CPU time of a process, as Linux writes it; None if it has gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[11:13]
    except OSError:
        return None
