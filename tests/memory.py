"""What becomes of a result if memory that wasn't filled held something else."""

from contextlib import contextmanager
from unittest.mock import patch

import numpy as np


@contextmanager
def found_in_memory(value):
    """Fill what `np.empty` gives: with what another array may have left there."""
    empty = np.empty

    def left_by_others(*args, **kwargs):
        array = empty(*args, **kwargs)
        array.fill(value)
        return array

    with patch.object(np, "empty", left_by_others):
        yield


def whatever_was_in_memory(make):
    """Make something over two kinds of left-overs."""
    results = []
    for value in (1, 113):
        with found_in_memory(value):
            results.append(make())
    return results
