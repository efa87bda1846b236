"""Packed arrays are found again."""

import numpy as np

from pymc_dapper.counts.kernels.packing import packed, part


def test_each_array_is_found_again_also_an_empty_one():
    arrays = [np.array([3, 1]), np.zeros(0, dtype=int), np.array([7])]
    joined = packed(arrays)
    for k, array in enumerate(arrays):
        np.testing.assert_array_equal(part.py_func(joined, k), array)
