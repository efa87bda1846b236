"""A walk along lines: slices of whole numbers, against the exact transition matrix."""

import numpy as np
import pytest

from pymc_dapper.answers import walk
from pymc_dapper.answers.walk import IMPOSSIBLE, Terms, log_weight
from tests.monte_carlo import z_score_of_mean

LOGS = np.log(np.array([1.0, 3.0, 0.5, 2.0, 0.05, 4.0, 1.0]))
"""Of one cell, from 2 on: with two peaks."""


def terms(width=2, limits=(0, 100)):
    one, starts = np.array([0]), np.array([0, 1])
    return Terms(
        np.array([0]),
        np.array([0, LOGS.size]),
        np.array([2]),
        LOGS,
        np.array(limits),
        starts,
        one,
        np.array([1]),
        starts,
        one,
        np.array([1]),
        np.array([width]),
        0,
        np.zeros((2, 2)),
    )


def shares(of, n=20_000):
    cells, drawn = np.array([4]), np.empty((n, 1), dtype=np.int64)
    walk.walk(np.random.default_rng(1), of, cells, cells.copy(), np.zeros(2), 1, drawn)
    return drawn[:, 0]


@pytest.mark.parametrize("width", [1, 2, 5])
def test_shares_are_those_of_the_law(width):
    drawn, p = shares(terms(width)), np.exp(LOGS)
    p /= p.sum()
    z = [z_score_of_mean((drawn == 2 + k).astype(float), p[k]) for k in range(LOGS.size)]
    assert np.abs(z).max() < 4.5
    wrong = np.roll(p, 1)
    z = [z_score_of_mean((drawn == 2 + k).astype(float), wrong[k]) for k in range(LOGS.size)]
    assert np.abs(z).max() > 4.5


def test_limits_hold():
    drawn = shares(terms(limits=(3, 5)), 500)
    assert set(drawn) == {3, 4, 5}


def test_beyond_a_window_weights_fall():
    of = terms()
    assert log_weight.py_func(of, 0, 3) == LOGS[1]
    assert log_weight.py_func(of, 0, 1) < IMPOSSIBLE
    assert log_weight.py_func(of, 0, 20) < log_weight.py_func(of, 0, 9) < IMPOSSIBLE
