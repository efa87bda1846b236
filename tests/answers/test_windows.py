"""Tables of what was released: against enumeration, to a thousandth of a standard deviation."""

import numpy as np
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.answers import windows
from pymc_dapper.answers.cells import probabilities
from pymc_dapper.answers.law import law_of
from pymc_dapper.answers.windows import LARGEST, Support, tabulate
from tests.answers.by_enumeration import CASES, COUNTS, moments

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
    with pytest.raises(ValueError, match="'cases': what was released doesn't end what a true"):
        tables_of(pmd.LaplaceMechanism(3.0).clamped(0, 100), [100.0])
    tables = tables_of(pmd.LaplaceMechanism(3.0).clamped(0, 100), [100.0], Support(0, 500, True))
    assert tables.nodes[0, -1] == 501


def test_what_no_true_value_can_have_led_to_is_refused():
    mechanism = CASES["of a user's own"].mechanism
    with pytest.raises(ValueError, match="no true value can have led"):
        tables_of(mechanism, [-7])


def test_values_far_below_zero_are_refused_as_of_a_wrong_scale():
    with pytest.raises(ValueError, match="a released value is -100, so far from"):
        tables_of(pmd.LaplaceMechanism(3.0), [-100.0, 4.0])
    assert tables_of(pmd.LaplaceMechanism(3.0), [-30.0, 4.0]).whole
