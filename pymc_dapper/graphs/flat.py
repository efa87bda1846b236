"""Several arrays as one vector."""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any


def split[V: Any](flat: V, shapes: Iterable[Sequence[int]]) -> list[V]:
    """Cut a vector, of numbers or symbolic, into arrays of these shapes."""
    parts, start = [], 0
    for shape in shapes:
        stop = start + prod(shape)
        parts.append(flat[start:stop].reshape(tuple(shape)))
        start = stop
    return parts
