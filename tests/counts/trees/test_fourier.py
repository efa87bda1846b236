"""Transforms beside NumPy's, there and back."""

import numpy as np
import pytest

from pymc_dapper.counts.trees.fourier import LEVEL_ERROR, backward, forward, plan_of


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 8, 12, 64, 96, 128, 2048, 3072])
def test_there_and_back(n):
    rng = np.random.default_rng(n)
    plan = plan_of(n)
    x = rng.normal(size=(2, n))
    re, im, to_re, to_im = *x.copy(), *np.empty((2, n))
    forward(plan, re, im, to_re, to_im)
    found = (to_re + 1j * to_im)[plan.places]
    level = LEVEL_ERROR * max(np.log2(n), 1) * np.hypot(*x).sum()
    assert np.abs(found - np.fft.fft(x[0] + 1j * x[1])).max() <= level
    backward(plan, to_re, to_im, re, im)
    assert np.abs(np.array([re, im]) / n - x).max() <= 2 * level
