"""Tables of which sums are nested: against enumeration."""

import itertools

import numpy as np
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.answers import trees
from pymc_dapper.answers.law import law_of
from pymc_dapper.answers.trees import Sums, SumsTree
from pymc_dapper.answers.windows import Support, tabulate

DRAWS = 20_000
EACH, PAIR, ALL = np.arange(3), np.array([0, 0, 1]), np.zeros(3, dtype=np.int64)
CELLS, PAIRS = np.array([1.4, 6.2, 3.0]), np.array([5.0, 4.5])


def law(values, mechanism):
    return law_of(pmd.Query("cases", values, mechanism), whole=True)


def sums(scale=1.5):
    return [
        Sums(EACH, law(CELLS, pmd.LaplaceMechanism(scale))),
        Sums(PAIR, law(PAIRS, pmd.GaussianMechanism(1.5).rounded(0.5))),
        Sums(ALL, np.array([12])),
    ]


def enumerated():
    """All tables of 12 people in three cells, and their posterior probabilities."""
    tables = np.array([t for t in itertools.product(range(13), repeat=3) if sum(t) == 12])
    pairs = np.stack([tables[:, :2].sum(1), tables[:, 2]], axis=1)
    logs = -np.abs(tables - CELLS).sum(1) / 1.5
    normal = stats.norm(scale=1.5)
    logs += np.log(normal.cdf(PAIRS + 0.25 - pairs) - normal.cdf(PAIRS - 0.25 - pairs)).sum(1)
    return tables, np.exp(logs) / np.exp(logs).sum()


def chi_square(drawn):
    """How far the frequencies of tables are from their probabilities, as a p-value."""
    tables, p = enumerated()
    number = drawn[0] * 13 + drawn[1]
    expected = DRAWS * p
    found = np.array([np.count_nonzero(number == t[0] * 13 + t[1]) for t in tables])
    common = expected > 10
    found = np.append(found[common], found[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    return stats.chisquare(found, expected).pvalue


def test_tables_are_drawn_as_by_enumeration():
    drawn = SumsTree(3, sums()).draw(DRAWS, np.random.default_rng(1))
    assert (drawn.sum(axis=0) == 12).all()
    assert chi_square(drawn) > 1e-4
    wrong = SumsTree(3, sums(scale=1.7)).draw(DRAWS, np.random.default_rng(1))
    assert chi_square(wrong) < 1e-4


def test_the_evidence_is_that_by_enumeration():
    tables, _ = enumerated()
    alpha, p = 2.0, 0.3
    one = sums()[:1]
    known = [*one, Sums(ALL, np.array([12]))]
    found = SumsTree(3, known).log_evidence((alpha, p))
    logs = stats.nbinom(alpha, p).logpmf(tables).sum(1) - np.abs(tables - CELLS).sum(1) / 1.5
    constant = SumsTree(3, known).log_evidence((5.0, 0.5))
    other = stats.nbinom(5.0, 0.5).logpmf(tables).sum(1) - np.abs(tables - CELLS).sum(1) / 1.5
    expected = np.logaddexp.reduce(logs) - np.logaddexp.reduce(other)
    assert found - constant == pytest.approx(expected, rel=1e-9)


def test_windows_are_widened_until_no_draw_is_near_their_ends(monkeypatch):
    """Cells of which the released values say 10 each, and the total that they are 50."""

    def draws():
        known = [
            Sums(EACH, law(np.full(3, 10.0), pmd.GaussianMechanism(4.0))),
            Sums(ALL, np.array([150])),
        ]
        return SumsTree(3, known).draw(500, np.random.default_rng(1))

    drawn = draws()
    assert (drawn.sum(axis=0) == 150).all()
    # The released values leave all cells alike: near 50, with a variance of 16 (1 - 1 / 3).
    assert drawn[0].mean() == pytest.approx(50, abs=4 * np.sqrt(32 / 3 / 500))
    assert drawn[0].std() == pytest.approx(np.sqrt(32 / 3), rel=0.15)
    monkeypatch.setattr(trees.Windows, "hold", lambda self, number, counts: True)
    monkeypatch.setattr(trees, "DROP", 51.0)
    cut = draws()
    assert abs(cut[0].std() / np.sqrt(32 / 3) - 1) > 0.15


def test_windows_hold_counts_that_stay_away_from_their_ends():
    of, windows = law([10.0, 50.0], pmd.GaussianMechanism(2.0)), trees.Windows()
    support = Support(0, 100, True)
    number = windows.add(tabulate(of, support, drop=60.0, pieces=None), support, 60.0)
    assert number.tolist() == [0, 1]
    assert windows.lowest[0] == windows.inner[0][0] == 0  # nothing is possible below
    low, high = windows.inner[1]
    assert windows.lowest[1] < low
    assert high < windows.lowest[1] + windows.rows[1].size - 1
    for end in (low, high):
        assert windows.hold(number, np.array([[0, 10], [50, end]]))
    for end in (low - 1, high + 1):
        assert not windows.hold(number, np.array([[0, 10], [50, end]]))
        assert windows.hold(np.array([0, -1]), np.array([[0, 10], [50, end]]))


def test_two_releases_of_a_cell_count_twice():
    twice = [Sums(EACH[:1], law([5.0], pmd.GaussianMechanism(2.0)))] * 2
    drawn = SumsTree(1, twice).draw(DRAWS, np.random.default_rng(2))
    x = np.arange(40)
    p = stats.norm(5, 2 / np.sqrt(2)).pdf(x)
    p /= p.sum()
    mean, sd = p @ x, np.sqrt(p @ x**2 - (p @ x) ** 2)
    assert abs(drawn.mean() - mean) < 4 * sd / np.sqrt(DRAWS)
    assert drawn.std() == pytest.approx(sd, rel=0.02)


def test_totals_that_cannot_be_are_refused():
    known = [
        Sums(EACH, law([5, 5, 5], pmd.CustomMechanism(lambda r, s: 0.0 * r - 1e4 * (r - s) ** 2))),
        Sums(ALL, np.array([40])),
    ]
    with pytest.raises(ValueError, match="no table of counts fits the released cells and sums"):
        SumsTree(3, known).draw(10, np.random.default_rng(1))


def test_cells_without_an_end_are_refused():
    with pytest.raises(ValueError, match=r"some cells are unbounded: .* Give total="):
        SumsTree(2, []).draw(10, np.random.default_rng(1))
