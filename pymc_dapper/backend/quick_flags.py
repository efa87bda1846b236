"""numba's flags, told apart by those that are set.

While numba finds out types, it looks up by its flags what it has compiled already, tens of
thousands of times for one model. Each time, it makes a dictionary of all options there are, to
hash it or to compare it with another one. Here what is set is compared, and the hash is kept.
"""

from functools import cache
from typing import Any

from numba.core.targetconfig import TargetConfig

SAME = TargetConfig.__eq__
"""numba's own."""


def same_flags(flags: TargetConfig, other: Any) -> bool:
    """Say whether flags are equal."""
    if type(flags) is not type(other):
        return SAME(flags, other)
    one, two = flags._values, other._values
    # What is set in neither has the default of both.
    return one == two or all(getattr(flags, k) == getattr(other, k) for k in one.keys() | two)


def hash_of_flags(flags: TargetConfig) -> int:
    """Hash what numba does: the names of all options, be they set or not."""
    return _hash_of(type(flags))


@cache
def _hash_of(kind: Any) -> int:
    return hash(tuple(sorted(kind.options)))
