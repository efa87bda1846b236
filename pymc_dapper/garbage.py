"""Fewer searches for garbage, which Python starts by itself."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SEARCHED = 1_000_000
"""Objects made since the last search for garbage, from which on there is another one."""

_searched_less: ContextVar[bool] = ContextVar("searched_less", default=False)


@contextmanager
def searching_new_garbage_only() -> Iterator[None]:
    """Leave existing objects out of searches for garbage.

    Graphs have so many objects that Python searches again and again, and a search through all
    libraries takes longer than the work in between. Few of the objects are garbage: they are
    searched in large batches, and once.
    """
    # As somebody decided already; to count how much takes as long as a search does.
    if _searched_less.get() or gc.get_freeze_count() > 0:
        yield
        return
    token = _searched_less.set(True)
    newest, *older = gc.get_threshold()
    gc.freeze()
    if 0 < newest < SEARCHED:  # not if searches are turned off
        gc.set_threshold(SEARCHED, *older)
    try:
        yield
    finally:
        gc.set_threshold(newest, *older)
        gc.freeze()  # new objects now count as old ones
        gc.unfreeze()
        _searched_less.reset(token)
