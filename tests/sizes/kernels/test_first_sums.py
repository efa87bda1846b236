"""Sums over the first rows."""

import numpy as np
import pytest

from pymc_dapper.sizes.kernels.first_sums import sums_of_first


@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 8, 21])
def test_they_are_cumulated_sums(n):
    """Rows that the runs don't share out evenly are in them, too."""
    rows = np.random.default_rng(n).integers(-9, 9, size=(n, 2)).astype(float)
    sums = sums_of_first.py_func(rows)
    np.testing.assert_array_equal(sums, [rows[:k].sum(axis=0) for k in range(n + 1)])
