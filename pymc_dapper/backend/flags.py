"""PyTensor's settings, and others of a process, changed for a while.

Flags belong to a process, not to a thread. PyTensor restores the value that it found, which another
thread may have set meanwhile, and which would then stay.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

_lock = Lock()
_changed: dict[tuple[Any, str], tuple[Any, int]] = {}
"""By setting: its original value, and how many contexts have changed it."""


@contextmanager
def changed(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Change a setting until the last context that changed it ends.

    All set it to the same value, in whichever thread.
    """
    with _lock:
        was, n = _changed.get((owner, name), (getattr(owner, name), 0))
        setattr(owner, name, value)
        _changed[owner, name] = was, n + 1
    try:
        yield
    finally:
        with _lock:
            was, n = _changed.pop((owner, name))
            if n > 1:
                _changed[owner, name] = was, n - 1
            else:
                setattr(owner, name, was)
