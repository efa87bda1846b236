"""PyTensor's settings, and others of a process, changed for a while.

They are one process's, not one thread's. PyTensor puts back what it found, which may be what
another thread has set meanwhile, and would then stay.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Any

from pytensor import config

_lock = Lock()
_changed: dict[tuple[Any, str], tuple[Any, int]] = {}
"""By setting, and what it is one of: what it was before anybody changed it, and how many have."""


def changed_flag(name: str, value: Any) -> AbstractContextManager[None]:
    """Change a setting of PyTensor's; see :func:`changed`."""
    return changed(config, name, value)


@contextmanager
def changed(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Change a setting until the last of all that change it has come to its end.

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
