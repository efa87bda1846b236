"""PyTensor's settings, changed for a while.

They are one process's, not one thread's. PyTensor puts back what it found, which may be what
another thread has set meanwhile, and would then stay.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from pytensor import config

_lock = Lock()
_changed: dict[str, tuple[Any, int]] = {}
"""By setting: what it was before anybody changed it here, and how many have."""


@contextmanager
def changed_flag(name: str, value: Any) -> Iterator[None]:
    """Change a setting until the last of all that change it has come to its end.

    All set it to the same value, in whichever thread.
    """
    with _lock:
        was, n = _changed.get(name, (getattr(config, name), 0))
        setattr(config, name, value)
        _changed[name] = was, n + 1
    try:
        yield
    finally:
        with _lock:
            was, n = _changed.pop(name)
            if n > 1:
                _changed[name] = was, n - 1
            else:
                setattr(config, name, was)
