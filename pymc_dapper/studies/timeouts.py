"""Functions of the user's that are given up when their time is over."""

import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import Future

GRACE = 1.0
"""Seconds that a function gets to stop."""


class CellTimeout(Exception):
    """The function that took too long, and whether it couldn't be stopped."""

    def __init__(self, what: str, seconds: float, *, unfinished: bool = False):
        super().__init__(f"{what} took longer than {seconds:g} s, the study's timeout")
        self.unfinished = unfinished


def within[T](seconds: float | None, function: Callable[[], T], what: str) -> T:
    """Call a function; if it takes too long, stop it and raise `CellTimeout`.

    It is called in a thread of its own. A loop in Python can be stopped; a call that doesn't return
    to Python can't, and is left alone. Without seconds there is no limit.
    """
    if seconds is None:
        return function()
    outcome: Future[T] = Future()

    def call() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome.done():
        _stop(thread)
        thread.join(GRACE)
        raise CellTimeout(what, seconds, unfinished=thread.is_alive())
    return outcome.result()


def _stop(thread: threading.Thread) -> None:
    """Raise SystemExit in a thread, when it next runs Python code."""
    ident = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(SystemExit))
