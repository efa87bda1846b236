"""A draw by log-weights."""

import numpy as np
import pytest

from pymc_dapper.sizes.kernels.draw import draw_index

draw = draw_index.py_func


def test_each_index_has_its_share():
    log_weights = np.array([-np.inf, 0.0, 1.0, np.nan, -1.0, -np.inf]) + 1000
    shares = np.exp([0.0, 1.0, -1.0])
    ends = np.cumsum(shares) / shares.sum()
    for k, low, high in zip((1, 2, 4), [0, *ends[:2]], ends, strict=True):
        for u in (low + 1e-12, (low + high) / 2, high - 1e-12):
            assert draw(log_weights, u, 4)[0] == k
    assert draw(log_weights, 0.3, 4)[1] == pytest.approx(shares[2] / shares.sum())
    assert draw(log_weights, 0.3, 0)[1] == pytest.approx(1)


def test_what_has_no_weight_is_never_drawn():
    weights = np.array([-np.inf, 0.0, -np.inf])
    assert [draw(weights, u, 2)[0] for u in (0.0, np.nextafter(1, 0))] == [1, 1]
    assert draw(np.full(3, -np.inf), 0.5, 2) == (-1, 0.0)
    assert draw(np.full(3, np.nan), 0.5, 2) == (-1, 0.0)
