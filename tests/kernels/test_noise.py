"""Noise drawn in another way for large arrays."""

import numpy as np
import pytest

from pymc_dapper.kernels.noise import FEWEST, standard_normal


@pytest.mark.parametrize("shape", [(), (3,), (FEWEST - 1,), (FEWEST,), (100_000, 3), (0, 2)])
def test_draws_and_the_generator_after_them_are_those_of_numpy(shape):
    """Catches a stream that depends on how it is drawn; 300,000 draws reach the tails' own code."""
    ours, numpys = np.random.default_rng(1), np.random.default_rng(1)
    noise, expected = standard_normal(ours, shape), numpys.standard_normal(shape)
    assert np.shape(noise) == shape
    np.testing.assert_allclose(noise, expected, rtol=1e-14, atol=0)
    assert ours.bit_generator.state == numpys.bit_generator.state


def test_a_generator_of_another_kind_draws_by_itself():
    ours, numpys = (np.random.Generator(np.random.Philox(1)) for _ in range(2))
    noise, expected = standard_normal(ours, (FEWEST,)), numpys.standard_normal((FEWEST,))
    np.testing.assert_array_equal(noise, expected)
