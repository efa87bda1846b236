"""Random numbers that a sweep over counts asks for."""

import numpy as np
import pytest

from pymc_dapper.counts.kernels.draws import Draws, choose, exponential, find_share, pick


def draws(*uniforms):
    return Draws(np.array(uniforms), np.zeros(1, dtype=np.int64))


def test_numbers_are_taken_in_order_and_counted_beyond_the_last():
    given = draws(0.0, 0.5, 0.99)
    assert [pick(given, 3, 6) for _ in range(4)] == [3, 5, 6, 3]
    assert given.used == [4]


def test_exponential_draws_are_quantiles():
    np.testing.assert_allclose(exponential(draws(1 - np.exp(-2.5))), 2.5)
    assert exponential(draws(0.0)) == 0


@pytest.mark.parametrize(("uniform", "index"), [(0.0, 1), (0.19, 1), (0.21, 3), (0.999999, 3)])
def test_an_index_has_its_share_of_the_weights(uniform, index):
    weights = np.array([0.0, 1.0, 0.0, 4.0])
    assert choose(draws(uniform), weights) == index


def test_rounding_never_leads_beyond_the_last_index():
    assert find_share(np.full(3, 0.1), 1.0) == 2
