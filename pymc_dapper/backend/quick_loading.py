"""Compiled code that is loaded without all that numba would compile with.

Before numba loads a function from disk, it imports all of Python's and NumPy's functions that it
knows, and registers them: longer than the loading itself. It does so before it compiles, too; a
process that only loads needs none of them.
"""

from typing import Any

from numba.core.caching import Cache
from numba.core.runtime import rtsys
from numba.cpython import hashing  # noqa: F401  (names what machine code that hashes refers to)


def load_overload(self: Cache, signature: Any, context: Any) -> Any:
    """Load what was compiled for a signature, if anything was."""
    rtsys.initialize(context)  # which arrays are allocated with
    with self._guard_against_spurious_io_errors():
        return self._load_overload(signature, context)
