"""Draws of a split beside its distribution, however they come about."""

import numpy as np
import pytest
from scipy import stats

from pymc_dapper.counts.trees import draws as module
from pymc_dapper.counts.trees.compiled import draw_from
from pymc_dapper.counts.trees.draws import _go_through
from pymc_dapper.counts.trees.forest import Forest
from pymc_dapper.counts.trees.priors import NO_TABLES

N = 20_000


def agree(drawn, pmf):
    observed = np.bincount(drawn, minlength=len(pmf))
    assert np.all(observed[pmf == 0] == 0)
    return stats.chisquare(observed[pmf > 0], N * pmf[pmf > 0]).pvalue > 1e-3


@pytest.mark.parametrize("pmf", [[0.2, 0.0, 0.5, 0.3], [0.0, 0.4, 0.6], np.full(40, 1 / 40)])
def test_draws_from_a_window(pmf):
    out = np.empty(N, dtype=np.int64)
    draw_from(np.random.default_rng(1), np.array(pmf), 7, out)
    assert agree(out - 7, np.array(pmf))


def test_all_counts_gone_through():
    a, b, n = np.array([0.5, 0.2, 0.0, 0.3]), np.array([0.1, 0.2, 0.7]), 3
    rng = np.random.default_rng(1)
    drawn = [_go_through.py_func(rng, a, b, 1, 3, n) for _ in range(N)]
    pmf = np.array([0.0, 0.2 * 0.7, 0.0, 0.3 * 0.1])
    assert agree(np.array(drawn), pmf / pmf.sum())


def test_a_split_is_drawn_the_same_way_by_rejection_and_by_going_through():
    """As the number of draws decides between both: 3 at once, or all."""

    arrays = [np.array([1, 2, 2]), np.array([30.0, 8, 12]), np.array([0, 5.0, 9])]
    made = Forest(np.array([-1, 0, 0]), *arrays, *np.zeros((3, 3)), NO_TABLES)
    solved = made.solve()
    lowest, pmf = made.pmf(solved, 1)
    assert lowest == 0
    rng, few = np.random.default_rng(1), module.REPEATED - 1
    at_once = made.draw(solved, N, rng)[:, 1]
    in_turn = np.concatenate([made.draw(solved, few, rng)[:, 1] for _ in range(N // few + 1)])[:N]
    likely = pmf * N > 5
    for drawn in (at_once, in_turn):
        observed = np.bincount(drawn, minlength=len(pmf))[: len(pmf)]
        counts = np.append(observed[likely], observed[~likely].sum())
        expected = np.append(pmf[likely], pmf[~likely].sum()) * N
        assert stats.chisquare(counts, expected).pvalue > 1e-3
