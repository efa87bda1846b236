"""Stages before the first draw, shown while they run: on a line, or in PyMC's log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from threading import Event, Thread
from time import perf_counter

from rich.console import Console, ConsoleOptions
from rich.live import Live
from rich.text import Text

LOGGER = logging.getLogger("pymc.dapper")
"""A child of PyMC's logger, which shows what ``pm.sample`` does."""

NOTICEABLE = 1.0
"""Seconds that something has to take to leave a trace, after it is done."""

PER_SECOND = 4
"""Seconds between updates of the line."""


_DISPLAY: ContextVar["_Line | _Log | None"] = ContextVar("display", default=None)


def stage(doing: str) -> None:
    """Report a new stage, such as "Reading the model", if stages are shown."""
    display = _DISPLAY.get()
    if display is not None:
        display.stage(doing)


@contextmanager
def progress(*, show: bool, console: Console | None = None) -> Iterator[None]:
    """Show the stages within the context, with their times.

    In a terminal or a notebook on one line that changes. Otherwise PyMC's log gets each stage that
    took a second, when it is over. Without ``show`` stages aren't shown, whatever the outer
    context. The console is that of the standard output by default.
    """
    outer = _DISPLAY.get()
    if show and outer is not None:
        yield
        return
    display = _display(Console() if console is None else console) if show else None
    token, done = _DISPLAY.set(display), False
    try:
        yield
        done = True
    finally:
        _DISPLAY.reset(token)
        if display is not None:
            display.close(done=done)


def _display(console: Console) -> "_Line | _Log":
    # Without widgets, rich would warn in a notebook, and show nothing.
    in_notebook = console.is_jupyter and find_spec("ipywidgets") is not None
    return _Line(console) if in_notebook or console.is_interactive else _Log()


class _Line:
    """One line that changes. It disappears if it was short or ended in an error."""

    def __init__(self, console: Console):
        self._began = perf_counter()
        self._doing = ""
        self._live = Live(self, console=console, transient=True, auto_refresh=False)
        self._closed = Event()
        # Rich's own isn't waited for when it ends, and PyMC forks soon after.
        self._refreshing = Thread(target=self._refresh, name="pymc_dapper progress", daemon=True)
        self._live.start()
        self._refreshing.start()

    def stage(self, doing: str) -> None:
        self._doing = f"{doing} ..."

    def close(self, *, done: bool) -> None:
        self._closed.set()
        self._refreshing.join()
        if done and self._seconds() >= NOTICEABLE:
            self._live.transient = False
            self._doing = "Read the model and compiled its steps:"
            self._live.refresh()
        self._live.stop()

    def _refresh(self) -> None:
        while not self._closed.wait(1 / PER_SECOND):
            self._live.refresh()

    def _seconds(self) -> float:
        return perf_counter() - self._began

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        seconds = f" {self._seconds():.0f} s" if self._doing else ""
        line = Text(self._doing)
        line.truncate(options.max_width - len(seconds), overflow="ellipsis")
        yield line.append(seconds)


class _Log:
    """A line in the log for each stage that took a while."""

    def __init__(self) -> None:
        self._began = perf_counter()
        self._doing = ""

    def stage(self, doing: str) -> None:
        if doing != self._doing:
            self._end()
            self._doing, self._began = doing, perf_counter()

    def close(self, *, done: bool) -> None:
        if done:
            self._end()

    def _end(self) -> None:
        seconds = perf_counter() - self._began
        if self._doing and seconds >= NOTICEABLE:
            LOGGER.info("%s: %.0f s", self._doing, seconds)
