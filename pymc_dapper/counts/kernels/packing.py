"""Several arrays of integers in one: each array argument of a compiled function takes time."""

from collections.abc import Sequence

import numpy as np
from numba import njit


def packed(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Join arrays of integers, with the starts of all and the end of the last before them."""
    starts = len(arrays) + 1 + np.cumsum([0] + [len(x) for x in arrays])
    return np.concatenate([starts, *arrays]).astype(np.int64)


@njit
def part(packed: np.ndarray, k: int) -> np.ndarray:
    """Return one of the packed arrays."""
    return packed[packed[k] : packed[k + 1]]
