"""Counts within linear limits are as near as can be."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from pymc_dapper.graphs.nearest_counts import nearest_counts

MATRIX = np.array([[1, 1, 0], [0, 1, 2], [1, 1, 1]])


@pytest.mark.parametrize("low", [[0, 3, 4], [2, 2, 5], [5, 0, 5]])
def test_no_other_counts_are_nearer(low):
    low, present = np.array(low, dtype=float), np.array([4, 0, 1])
    high = low + np.array([2.0, 3.0, np.inf])
    found = nearest_counts(sparse.csr_array(MATRIX), (low, high), present)
    fitting = [
        each
        for each in product(range(9), repeat=3)
        if np.all((MATRIX @ each >= low) & (MATRIX @ each <= high))
    ]
    assert tuple(found) in fitting
    distances = [np.abs(np.array(each) - present).sum() for each in fitting]
    assert np.abs(found - present).sum() == min(distances) < max(distances)


def test_there_may_be_none():
    matrix = sparse.csr_array(np.array([[2.0, 2.0]]))
    assert nearest_counts(matrix, (np.array([3.0]), np.array([3.0])), np.array([1, 1])) is None
