"""Draws of a split beside its distribution, however they come about."""

import numpy as np
import pytest
from scipy import stats

from pymc_dapper.counts.trees import draws as module
from pymc_dapper.counts.trees.draws import _go_through, draw_from
from pymc_dapper.counts.trees.forest import Forest, Releases
from pymc_dapper.counts.trees.priors import NO_TABLES, Prior
from tests.long_cases import one_in_three

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


def same_trees(n):
    """A total of 30 of two counts, each with noise, several times over."""
    parent = np.where(np.arange(3 * n) % 3, 3 * (np.arange(3 * n) // 3), -1)
    arrays = [np.array([1, 2, 2]), np.array([30.0, 8, 12]), np.array([0, 5.0, 9])]
    zeros = np.zeros((3, 3 * n))
    releases = Releases(*(np.tile(x, n) for x in arrays))
    return Forest(parent, releases, Prior(*zeros, NO_TABLES))


@pytest.mark.parametrize("at_once", one_in_three([module.REPEATED - 1, N]))
def test_a_split_is_drawn_the_same_way_by_rejection_and_by_going_through(at_once):
    """The number of draws of a tree decides between both."""
    made = same_trees(N // at_once + 1)
    solved = made.solve()
    lowest, pmf = made.pmf(solved, 1)
    assert lowest == 0
    drawn = made.draw(solved, at_once, np.random.default_rng(1))[:, 1::3].ravel()[:N]
    likely = pmf * N > 5
    observed = np.bincount(drawn, minlength=len(pmf))[: len(pmf)]
    counts = np.append(observed[likely], observed[~likely].sum())
    expected = np.append(pmf[likely], pmf[~likely].sum()) * N
    assert stats.chisquare(counts, expected).pvalue > 1e-3
