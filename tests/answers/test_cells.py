"""Independent draws of cells."""

import numpy as np
import pytest

import pymc_dapper as pmd
from pymc_dapper.answers.cells import draw_cells, probabilities
from pymc_dapper.answers.law import law_of
from pymc_dapper.answers.windows import LARGEST, Support, tabulate
from tests.answers.cells_by_enumeration import CASES, moments

DRAWS = 40_000


def tables_of(mechanism, values, support):
    query = pmd.Query("cases", values, mechanism)
    return tabulate(law_of(query, whole=support.whole), support)


def z_of_cdf(draws, cdf, at):
    """How many standard errors the shares of draws below some values lie from the cdf."""
    shares = (draws[:, None] < at).mean(axis=0)
    return (shares - cdf) / np.sqrt(cdf * (1 - cdf) / len(draws))


@pytest.mark.parametrize(
    ("scale", "support"),
    [
        (3.0, Support(0, LARGEST, True)),
        (900.0, Support(0, LARGEST, True)),
        (3.0, Support(0.0, 50.0, False)),
    ],
    ids=["each count", "many in a piece", "real"],
)
def test_draws_follow_the_tables(scale, support):
    tables = tables_of(pmd.LaplaceMechanism(scale), [17.3], support)
    [drawn] = draw_cells(tables, probabilities(tables), DRAWS, np.random.default_rng(1))
    cdf = np.concatenate([[0], np.cumsum(probabilities(tables)[0])])
    chosen = np.searchsorted(cdf, np.linspace(0.02, 0.98, 25))
    z = z_of_cdf(drawn, cdf[chosen], tables.nodes[0, chosen])
    assert np.abs(z).max() < 4.5
    # Ends of pieces that are taken for those of the next one are seen.
    assert np.abs(z_of_cdf(drawn, cdf[chosen], tables.nodes[0, chosen - 40])).max() > 4.5


def test_draws_within_pieces_follow_a_straight_logarithm():
    """Of counts in pieces of 20, against the law of each count."""
    from scipy import stats

    tables = tables_of(pmd.LaplaceMechanism(900.0), [1000.0], Support(0, LARGEST, True))
    [drawn] = draw_cells(tables, probabilities(tables), DRAWS, np.random.default_rng(2))
    counts = np.arange(60_000)
    exact = np.cumsum(stats.laplace(1000.0, 900.0).pdf(counts))
    at = np.searchsorted(exact / exact[-1], np.linspace(0.02, 0.98, 25))
    assert np.abs(z_of_cdf(drawn, exact[at - 1] / exact[-1], counts[at])).max() < 4.5
    assert np.unique(drawn % 20).size == 20


def test_cells_are_independent_of_each_other_and_along_draws():
    tables = tables_of(pmd.DiscreteLaplaceMechanism(3.0), [17, 17, 40], Support(0, LARGEST, True))
    drawn = draw_cells(tables, probabilities(tables), DRAWS, np.random.default_rng(3))

    def largest(x):
        both = np.corrcoef(np.concatenate([x, np.roll(x, 1, axis=1)]))
        return np.abs(both - np.eye(6)).max() * np.sqrt(DRAWS)

    assert largest(drawn) < 4.5
    # As draws would be that nobody put into random order.
    assert largest(np.sort(drawn, axis=1)) > 4.5


def test_a_prior_weighs_counts():
    tables = tables_of(CASES["Laplace"].mechanism, [17.3], Support(0, LARGEST, True))
    counts = tables.nodes[:, :-1]
    pmf = probabilities(tables, -0.1 * counts)
    exact = CASES["Laplace"].pmf * np.exp(-0.1 * np.arange(600))
    mean, sd = moments(np.arange(600), exact / exact.sum())
    assert moments(counts[0], pmf[0]) == pytest.approx((mean, sd), rel=1e-6)


def test_the_same_seed_gives_the_same_draws():
    tables = tables_of(pmd.LaplaceMechanism(3.0), [17.3, 4.0], Support(0, LARGEST, True))
    one, same, other = (
        draw_cells(tables, probabilities(tables), 100, np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_windows_of_more_counts_than_small_integers_have_are_drawn_from():
    query = pmd.Query("cases", [50_000.0], pmd.LaplaceMechanism(1000.0))
    law = law_of(query, whole=True)
    tables = tabulate(law, Support(0, LARGEST, True), pieces=None)
    assert tables.nodes.shape[1] > 2**15
    [drawn] = draw_cells(tables, probabilities(tables), DRAWS, np.random.default_rng(4))
    assert abs(drawn.mean() - 50_000) < 4.5 * 1000 * np.sqrt(2 / DRAWS)
