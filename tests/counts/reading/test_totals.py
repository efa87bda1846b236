"""Latent totals follow from the cells that they add up."""

from itertools import permutations

import numpy as np
import pytest
from scipy import sparse

from pymc_dapper.counts.reading.totals import find_totals


def test_totals_are_solved_for_whatever_the_order_of_equations():
    chain = [[1, -1, -1, 0, 0, 0], [0, 1, 0, -1, -2, 0], [0, 0, 1, 0, 0, -2]]
    for order in permutations(chain):
        totals = find_totals(sparse.csr_array(np.array(order, dtype=float)))
        np.testing.assert_array_equal(totals.follows, [1, 1, 1, 0, 0, 0])
        np.testing.assert_array_equal(
            totals.completed(np.array([9, 9, 9, 1, 2, 4])), [13, 5, 8, 1, 2, 4]
        )


@pytest.mark.parametrize("equation", [[1, 1, -1, -1], [2, -1, -1, 0], [1, 1, 1, 1], [0, 0, 1, 0]])
def test_a_count_that_is_no_sum_of_others_does_not_follow_from_them(equation):
    assert not find_totals(sparse.csr_array(np.array([equation], dtype=float))).follows.any()
