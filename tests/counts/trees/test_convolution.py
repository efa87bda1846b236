"""Convolutions beside NumPy's, and their errors beside exact ones."""

from fractions import Fraction

import numpy as np
import pytest

from pymc_dapper.counts.trees.convolution import convolve


@pytest.mark.parametrize("sizes", [(1, 1), (3, 40), (17, 23), (64, 5)])
def test_windows_of_convolutions(sizes):
    rng = np.random.default_rng(1)
    a, b = rng.random(sizes[0]), rng.random(sizes[1])
    padded = np.concatenate([np.zeros(80), np.convolve(a, b), np.zeros(160)])
    for first, size in ((0, sum(sizes) - 1), (-5, 9), (2, 3), (sum(sizes) - 3, 7), (-20, 150)):
        out = np.full(size, np.nan)
        convolve(a, b, first, out)
        np.testing.assert_allclose(out, padded[80 + first :][:size], rtol=1e-12, atol=1e-13)


def test_tails_keep_their_digits():
    a = np.exp(-0.5 * np.arange(40.0) ** 2 / 4)
    exact = float(sum(Fraction(x) * Fraction(y) for x, y in zip(a[30:], a[:29:-1], strict=True)))
    out = np.empty(1)
    convolve(a, a, 69, out)
    assert abs(out[0] / exact - 1) < 1e-14
