"""Searches for garbage, which Python begins by itself, kept short."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SEARCHED = 300_000
"""Objects made since the last search for garbage, from which on there is another one."""

_searched_less: ContextVar[bool] = ContextVar("searched_less", default=False)


@contextmanager
def searching_new_garbage_only() -> Iterator[None]:
    """Leave what exists already out of searches for garbage.

    Graphs are made of so many objects that Python searches again and again, and a search through
    all libraries takes longer than what is done in between. Few of them are garbage: those are
    searched many at a time, and once.
    """
    # As somebody decided already; to count how much takes as long as a search does.
    if _searched_less.get() or gc.get_freeze_count() > 0:
        yield
        return
    token = _searched_less.set(True)
    newest, *older = gc.get_threshold()
    gc.freeze()
    if 0 < newest < SEARCHED:  # not where nothing is searched
        gc.set_threshold(SEARCHED, *older)
    try:
        yield
    finally:
        gc.set_threshold(newest, *older)
        gc.freeze()  # what was made is as old as all else
        gc.unfreeze()
        _searched_less.reset(token)
