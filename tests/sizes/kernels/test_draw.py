"""A random order of the rows that are there, and a draw by log-weights."""

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest

from pymc_dapper.sizes.kernels.draw import draw_index, shuffled

shuffle, draw = shuffled.py_func, draw_index.py_func


def orders(n, shuffle=shuffle):
    """How often each order comes, of all that the variates may choose."""
    choices = product(*([(k + 0.5) / (i + 1) for k in range(i + 1)] for i in range(n)))
    rows = np.arange(n + 1.0)[:, None]
    return Counter(tuple(shuffle(rows, np.array(u))[:, 0]) for u in choices)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_each_order_of_the_first_rows_is_equally_likely(n):
    assert orders(n) == Counter((*order, n) for order in permutations(range(n)))


def test_an_order_that_comes_more_often_is_caught():
    """Any row for each place, with those that have theirs: not all orders are equally likely."""

    def any_row(rows, uniforms):
        rows = rows.copy()
        for i, u in enumerate(uniforms):
            k = int(len(uniforms) * u)
            rows[[i, k]] = rows[[k, i]]
        return rows

    assert len(set(orders(3, any_row).values())) > 1


def test_whole_rows_change_places_and_the_same_in_each_array():
    rows, uniforms = np.random.default_rng(1).normal(size=(9, 3)), np.full(6, 0.3)
    before = rows.copy()
    new = shuffle(rows, uniforms)
    np.testing.assert_array_equal(rows, before)
    np.testing.assert_array_equal(new[:, :1], shuffle(rows[:, :1].copy(), uniforms))
    assert sorted(new[:6].tolist()) == sorted(rows[:6].tolist()) != new[:6].tolist()
    np.testing.assert_array_equal(new[6:], rows[6:])
    np.testing.assert_array_equal(shuffle(rows, np.empty(0)), rows)


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
