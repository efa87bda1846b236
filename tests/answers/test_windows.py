"""Tables of what was released: against enumeration, to a thousandth of a standard deviation."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.answers import windows
from pymc_dapper.answers.cells import probabilities
from pymc_dapper.answers.law import law_of
from pymc_dapper.answers.windows import LARGEST, Support, tabulate
from tests.answers.cells_by_enumeration import CASES, COUNTS, moments

COUNTED = Support(0, LARGEST, True)
CLOSE = 1e-3
"""Standard deviations."""


def tables_of(mechanism, released, support=COUNTED):
    query = pmd.Query("cases", released, mechanism)
    return tabulate(law_of(query, whole=support.whole), support)


def errors(tables, exact):
    """Errors of mean and of standard deviation, in standard deviations; of a row of each count."""
    pmf, counts = probabilities(tables)[0], tables.nodes[0, :-1]
    mean, sd = moments(COUNTS, exact)
    found = moments(counts, pmf)
    return abs(found[0] - mean) / sd, abs(found[1] / sd - 1)


def table_of(case):
    [query] = case.release
    return tabulate(law_of(query, whole=True), COUNTED)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_posteriors_of_counts_are_those_by_enumeration(case):
    tables = table_of(case)
    assert tables.each_count
    assert max(errors(tables, case.pmf)) < CLOSE / 1e3


@pytest.mark.parametrize("wrong", [lambda p: np.roll(p, 1), lambda p: p**1.01])
def test_a_law_that_is_wrong_by_a_count_or_a_hundredth_is_seen(wrong):
    case = CASES["Laplace"]
    exact = wrong(case.pmf)
    assert max(errors(table_of(case), exact / exact.sum())) > CLOSE


def cdf_of(tables):
    [pmf] = probabilities(tables)
    return tables.nodes[0], np.concatenate([[0], np.cumsum(pmf)])


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (pmd.LaplaceMechanism(2000.0), stats.laplace(loc=900.0, scale=2000.0)),
        (pmd.GaussianMechanism(2000.0), stats.norm(loc=900.0, scale=2000.0)),
    ],
)
def test_wide_windows_of_counts_have_many_in_a_piece(mechanism, law, monkeypatch):
    counts = np.arange(100_000)
    exact = law.pdf(counts)
    exact = np.concatenate([[0], np.cumsum(exact) / exact.sum()])

    def error():
        nodes, cdf = cdf_of(tables_of(mechanism, [900.0]))
        assert len(nodes) <= windows.PIECES + 2
        return np.abs(cdf - exact[nodes]).max()

    # Where the density isn't near 0, a cdf that is off by so much is a quantile that is.
    assert error() < CLOSE / 10
    monkeypatch.setattr(windows, "slopes", lambda logs: np.zeros_like(logs[:, 1:]))
    assert error() > CLOSE / 10


@pytest.mark.parametrize("released", [-50.0, 400.0, 1010.0])
def test_sums_are_real_numbers_in_their_range(released):
    law = stats.laplace(loc=released, scale=40.0)
    nodes, cdf = cdf_of(
        tables_of(pmd.LaplaceMechanism(40.0), [released], Support(0.0, 1000.0, False))
    )
    exact = (law.cdf(nodes) - law.cdf(0.0)) / (law.cdf(1000.0) - law.cdf(0.0))
    assert np.abs(cdf - exact).max() < CLOSE / 10
    assert nodes[0] >= 0
    assert nodes[-1] <= 1000


def test_what_windows_neglect_is_bounded():
    tables = tables_of(pmd.LaplaceMechanism(3.0), [17.3])
    weights = stats.laplace(scale=3.0).pdf(17.3 - COUNTS)
    left_out = 1 - weights[tables.nodes[0, 0] : tables.nodes[0, -1]].sum() / weights.sum()
    assert left_out < windows.TAIL


def test_counts_beyond_any_end_are_refused():
    with pytest.raises(ValueError, match="'cases': neither the release nor the prior bounds"):
        tables_of(pmd.LaplaceMechanism(3.0).clamped(0, 100), [100.0])
    tables = tables_of(pmd.LaplaceMechanism(3.0).clamped(0, 100), [100.0], Support(0, 500, True))
    assert tables.nodes[0, -1] == 501


def test_what_no_true_value_can_have_led_to_is_refused():
    mechanism = CASES["of a user's own"].mechanism
    with pytest.raises(ValueError, match="no true value can have led"):
        tables_of(mechanism, [-7])


def test_values_far_below_zero_are_refused_as_of_a_wrong_scale():
    with pytest.raises(ValueError, match="released value -100 is too far from all possible"):
        tables_of(pmd.LaplaceMechanism(3.0), [-100.0, 4.0])
    assert tables_of(pmd.LaplaceMechanism(3.0), [-30.0, 4.0]).whole


def own_law(weights, released):
    """The law of a count given noise that has some values only."""

    def log_density(value, statistic):
        p = sum(p * pt.eq(value - statistic, noise) for noise, p in weights.items())
        return pt.log(pt.cast(p, "float64"))

    mechanism = pmd.CustomMechanism(log_density, whole_numbers=True)
    return law_of(pmd.Query("cases", np.atleast_1d(released), mechanism), whole=True)


@pytest.mark.parametrize("noise", [3, 1000, 30_000])
def test_gaps_of_a_law_of_ones_own_are_looked_into(noise):
    law = own_law({-noise: 0.25, 0: 0.25, noise: 0.5}, 50_000)
    tables = tabulate(law, COUNTED)
    counts, pmf = tables.nodes[0, :-1], probabilities(tables)[0]
    assert counts[pmf > 0].tolist() == [50_000 - noise, 50_000, 50_000 + noise]
    assert pmf[pmf > 0] == pytest.approx([0.5, 0.25, 0.25])
    if noise > 3:
        # As it would be with a law that is taken to have one peak.
        one_peak = replace(law, has_peak=True)
        assert np.count_nonzero(probabilities(tabulate(one_peak, COUNTED))) < 3


@pytest.mark.long
def test_where_rows_are_many_counts_are_looked_at_until_they_weigh_nothing():
    noise = {3000 * k: 0.2 for k in (-2, -1, 0, 1, 2)}
    tables = tabulate(own_law(noise, np.arange(20_000, 21_000)), COUNTED)
    assert np.all((probabilities(tables) > 0).sum(axis=1) == 5)


def test_an_own_law_far_from_its_release_is_refused():
    with pytest.raises(ValueError, match="no true value can have led"):
        tabulate(own_law({-140_000: 0.5, 140_000: 0.5}, 150_000), COUNTED)


@pytest.mark.parametrize(("width", "is_comb"), [(0.02, True), (8.0, False)])
def test_narrow_peaks_of_a_density_of_ones_own_are_refused(width, is_comb):
    def log_density(released, statistic):
        noise = released - statistic
        wave = 1 + 0.98 * pt.cos(2 * np.pi * noise / width)
        return pm.logp(pm.Normal.dist(0, 10), noise) + pt.log(wave)

    query = pmd.Query("sums", [50.0], pmd.CustomMechanism(log_density))
    law, support = law_of(query, whole=False), Support(0.0, 100.0, False)
    if is_comb:
        with pytest.raises(ValueError, match="'sums': the mechanism's log-density has narrow gaps"):
            tabulate(law, support)
    else:
        assert not tabulate(law, support).whole
