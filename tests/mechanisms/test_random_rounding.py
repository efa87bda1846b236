"""Random rounding: probabilities, and that it is unbiased."""

import numpy as np
import pytest

from pymc_dapper.mechanisms import RandomRounding


@pytest.mark.parametrize("base", [2, 3, 5, 10])
def test_counts_go_to_the_multiples_around_them_without_bias(base):
    values, counts = np.arange(60), np.arange(45)
    p = np.exp(RandomRounding(base).logp(values, counts[:, None]).eval(mode="FAST_COMPILE"))
    np.testing.assert_allclose(p @ values, counts, rtol=1e-13)
    for n, row in zip(counts, p, strict=True):
        assert set(np.flatnonzero(row)) == {n - n % base, n + -n % base}


def test_probabilities_to_go_up_may_be_others():
    p = np.exp(RandomRounding(3, [0.5, 1.0]).logp([0, 3], [[1], [2]]).eval(mode="FAST_COMPILE"))
    np.testing.assert_allclose(p, [[0.5, 0.5], [0, 1]], rtol=1e-14)
    with pytest.raises(ValueError, match="one for each remainder 1 to 2"):
        RandomRounding(3, [0.5])
    with pytest.raises(ValueError, match="from 0 to 1"):
        RandomRounding(3, [0.5, 1.5])


@pytest.mark.parametrize("base", [1, 201, 2.5])
def test_a_base_is_a_whole_number(base):
    with pytest.raises((TypeError, ValueError), match="base must be"):
        RandomRounding(base)
