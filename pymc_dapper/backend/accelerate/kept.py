"""Machine code on disk that is read as it was written: it has a digest.

Two processes that save code at once, of one function for other types each, may leave one's code
under the other's types: numba's own files then give wrong numbers from then on, without an error.
If a bit flips in them, the changed code runs. Depends on the class by which numba
reads and writes them. Gains no time. Files written without it, or by PyTensor's own cache, have no
digest.
"""

import pickle
from hashlib import sha256
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

LOOKED = {
    "numba.core.caching:IndexDataCacheFile": {"953c3b4c113b"},
    "numba.core.caching:Cache._load_overload": {"8cb8c1d9749f"},
    "numba.core.caching:Cache._save_overload": {"cfe1bb44a316"},
}
"""Digests of numba's code for which this was written."""


KIND = "with digest"


class WithDigest(IndexDataCacheFile):
    """Files of a function's machine code, each with a digest; apart from those without."""

    def save(self, key: Any, data: Any) -> None:
        """Save machine code, with its key."""
        content = self._dump(data)
        super().save((KIND, key), (_digest(key, content), content))

    def load(self, key: Any) -> Any:
        """Load machine code, if there is any."""
        found = super().load((KIND, key))
        if found is None:
            return None
        digest, content = found
        if digest != _digest(key, content):
            raise ValueError("it has another digest than when it was written")
        return pickle.loads(content)

    def _load_index(self) -> Any:
        """Load what there is; nothing, if it is of types that this version doesn't have."""
        try:
            return super()._load_index()
        except (AttributeError, ImportError):
            return {}


def keep_with_digest(function: Any) -> None:
    """Have a function of numba's read and write its machine code so, if it is kept on disk."""
    if isinstance(function._cache, FunctionCache):
        function._cache._cache_file.__class__ = WithDigest


def _digest(key: Any, content: bytes) -> str:
    return sha256(repr(key).encode() + content).hexdigest()
