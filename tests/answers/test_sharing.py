"""Cells that share strength: their probability and their draws, at points of the grid."""

import numpy as np
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.answers import sharing
from pymc_dapper.answers.law import law_of
from pymc_dapper.answers.sharing import SharingCells, interpolation
from pymc_dapper.answers.smooth import Grid
from pymc_dapper.answers.windows import LARGEST, Support, tabulate

SCALE = 3.0
RELEASED = np.array([1.2, 70.0, 0.4, 2_500.0, 75.0, 900.0, 2_500.0])
GRID = Grid(np.array([0.8, 2.5, 40.0]), np.array([300.0, 700.0, 500.0]), np.full(3, 1 / 3))


def tables(mechanism=None, released=RELEASED, drop=690.0):
    query = pmd.Query("cases", released, mechanism or pmd.LaplaceMechanism(SCALE))
    law = law_of(query, whole=True)
    return tabulate(law, Support(0, LARGEST, True), drop=drop, pieces=None)


def joint_law(alpha, mu, released=RELEASED):
    """Weights of counts, by SciPy's laws."""
    counts = np.arange(6_000)
    law = np.exp(-np.abs(released[:, None] - counts) / SCALE)
    return law * stats.nbinom.pmf(counts, alpha, alpha / (alpha + mu))


def log_evidence(alpha, mu):
    return np.log(joint_law(alpha, mu).sum(axis=1)).sum()


def test_the_probability_of_a_release_agrees_with_scipy(monkeypatch):
    exact = [log_evidence(alpha, mu) for alpha, mu, _ in zip(*GRID, strict=True)]

    def differences():
        return np.diff(SharingCells(tables()).log_evidence(GRID.alpha, GRID.mu)) - np.diff(exact)

    assert np.abs(differences()).max() < 1e-4
    # Nodes that are too far from each other are seen.
    monkeypatch.setattr(sharing, "PER_SD", 0.5)
    assert np.abs(differences()).max() > 1e-2


def test_draws_follow_the_law_at_each_point():
    alpha, mu = GRID.alpha[2:], GRID.mu[2:]
    one_point, draws = Grid(alpha, mu, np.ones(1)), 20_000
    drawn = SharingCells(tables()).draw(one_point, draws, np.random.default_rng(1))

    def z_of(alpha):
        pmf = joint_law(alpha, mu[0])
        cdf = np.cumsum(pmf / pmf.sum(axis=1, keepdims=True), axis=1)
        z = []
        for of_cell, counts in zip(cdf, drawn, strict=True):
            at = np.searchsorted(of_cell, [0.1, 0.3, 0.5, 0.7, 0.9])
            p = of_cell[at]
            z.append(((counts[:, None] <= at).mean(axis=0) - p) / np.sqrt(p * (1 - p) / draws))
        return np.abs(z).max()

    assert z_of(alpha[0]) < 4.5
    assert z_of(10 * alpha[0]) > 4.5


def test_all_cells_of_a_draw_are_given_the_same_point():
    points = Grid(np.array([1e6, 1e6]), np.array([5.0, 60.0]), np.array([0.5, 0.5]))
    wide = pmd.LaplaceMechanism(1000.0)
    drawn = SharingCells(tables(wide, np.full(3, 30.0))).draw(
        points, 4000, np.random.default_rng(2)
    )
    assert np.all((drawn > 25).sum(axis=0) % 3 == 0)
    # Draws of both points are mixed.
    assert abs((drawn[0, :2000] > 25).mean() - (drawn[0, 2000:] > 25).mean()) < 0.08
    within = drawn[:, drawn[0] > 25]
    assert np.abs(np.corrcoef(within) - np.eye(3)).max() * np.sqrt(within.shape[1]) < 4.5


def test_polynomials_between_nodes_are_right_where_counts_are_large():
    counts = np.arange(9_000, 11_000)
    nodes, between = interpolation(counts)
    assert nodes.size < counts.size / 10
    law = stats.poisson(10_000)
    np.testing.assert_allclose(
        between @ law.pmf(nodes), law.pmf(counts), atol=1e-6 * law.pmf(10_000)
    )
    small, matrix = interpolation(np.array([0, 3, 50]))
    assert np.array_equal(matrix @ small, [0, 3, 50])
    assert matrix.nnz == 3


def test_evidence_counts_cells_that_share_a_row():
    points = np.array([1.5]), np.array([4.0])
    query = pmd.Query("cases", [3, 5, 3, 3], pmd.DiscreteLaplaceMechanism(2.0))
    own = pmd.Query("cases", [3, 5, 3, 3], pmd.DiscreteLaplaceMechanism(np.full(4, 2.0)))
    one, other = (
        SharingCells(tabulate(law_of(q, whole=True), Support(0, LARGEST, True))).log_evidence(
            *points
        )
        for q in (query, own)
    )
    assert one == pytest.approx(other, rel=1e-9)
