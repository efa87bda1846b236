"""Where the CPU time of a task goes, by sampling its stack.

So nothing has to be known of the code but where it stands, and each version of it is measured
alike. Looks are as many as the system's clock allows, every 4 ms or so: the parts of seconds are
exact enough, those of milliseconds aren't.
"""

import os
import signal
from collections.abc import Callable
from contextlib import contextmanager
from time import process_time

INTERVAL = 0.002
"""CPU seconds between two samples; each sample's function gets the time since the last one."""

Frame = tuple[str, str]
"""A file and the name of a function in it."""


def cpu_seconds() -> float:
    """CPU seconds of the process, with those of processes that it began and that ended."""
    return process_time() + _of_others()


def _of_others() -> float:
    now = os.times()
    return now.children_user + now.children_system


def _in(*folders: str) -> Callable[[Frame], bool]:
    return lambda frame: any(folder in frame[0] for folder in folders)


def _named(*names: str) -> Callable[[Frame], bool]:
    return lambda frame: frame[1] in names


def _checks(frame: Frame) -> bool:
    file, name = frame
    ours = "/pymc_dapper/" in file
    return ours and (file.endswith("check.py") or name.lstrip("_").startswith("check"))


IMPORT, OTHERS = "import", "other processes"

PARTS: dict[str, Callable[[Frame], bool]] = {
    IMPORT: _in("<frozen importlib"),
    "compiled code loaded from the cache": _named("load_overload", "_load_overload"),
    "numba's compilation": _in("/numba/core/compiler", "/numba/core/codegen"),
    "numba, besides": _in("/numba/", "/llvmlite/"),
    "checks of the reading": _checks,
    "reading the model": _in("/reading/", "/pymc_dapper/conjugacy/"),
    "PyTensor's rewriting": _in("/pytensor/graph/rewriting/"),
    OTHERS: lambda frame: False,
    "the rest": lambda frame: True,
}
"""The first of these that fits anything on the stack is what the process's own time goes to."""


def part_of(stack: list[Frame]) -> str:
    """Name the part that a stack belongs to."""
    return next(part for part, fits in PARTS.items() if any(map(fits, stack)))


@contextmanager
def parts():
    """Yield a dict which has the CPU seconds of each part once the context is left."""
    found = dict.fromkeys(PARTS, 0.0)
    last, others = process_time(), _of_others()

    def look(signum, frame):
        nonlocal last
        now, stack = process_time(), []
        while frame is not None:
            stack.append((frame.f_code.co_filename, frame.f_code.co_name))
            frame = frame.f_back
        found[part_of(stack)] += now - last
        last = now

    before = signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
    try:
        yield found
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        found["the rest"] += process_time() - last
        found[OTHERS] = _of_others() - others
