"""Cells that a process works on, claimed so that no other process runs them, too."""

import fcntl
import hashlib
import os
import threading
import warnings
from pathlib import Path

_guard = threading.Lock()
_open: dict[tuple[int, int], tuple[int, set[int]]] = {}
"""By device and inode: a file's descriptor, and the bytes of it that this process has locked.

It is opened once in a process and stays open: closing any descriptor of a file gives up all of
the process's locks on it.
"""


class Claims:
    """The claims of this process, in a file that all processes on a store share.

    A claim is a lock of the operating system on one byte of the file, at a place made from a name.
    So it ends with the process, however that dies, and leaves nothing behind. Processes forked from
    this one don't hold it. The file is made if it isn't there; nothing is written into it.
    """

    def __init__(self, path: Path):
        self._path = path
        path.touch()
        with _guard:
            status = path.stat()
            key = status.st_dev, status.st_ino
            if key not in _open:
                _open[key] = os.open(path, os.O_RDWR), set()
            self._file, self._taken = _open[key]
        self._mine: set[int] = set()
        self._warned = False

    def take(self, name: str) -> bool:
        """Claim a name, and return whether it is ours now.

        Warns if the file system has no locks. All names then count as ours.
        """
        place = _place(name)
        with _guard:
            if place in self._taken:
                return False  # a study in another thread of this process
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            except (BlockingIOError, PermissionError):
                return False
            except OSError as error:
                self._warn(error)
            self._taken.add(place)
            self._mine.add(place)
            return True

    def release(self, name: str) -> None:
        """Give up the claim of a name."""
        self._release(_place(name))

    def close(self) -> None:
        """Give up all claims."""
        for place in list(self._mine):
            self._release(place)

    def _release(self, place: int) -> None:
        with _guard:
            if place not in self._mine:
                return
            self._mine.remove(place)
            self._taken.remove(place)
            if not self._warned:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            warnings.warn(
                f"store={str(self._path.parent)!r} is on a file system without locks "
                f"({error.strerror}), so cells can't be claimed. Don't run two studies with this "
                "store at the same time: both would compute all cells",
                stacklevel=5,
            )
        self._warned = True


def _place(name: str) -> int:
    """Return the byte for a name; the chance that two names share one is negligible."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")
