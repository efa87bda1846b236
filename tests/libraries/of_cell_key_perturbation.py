"""A table that the ONS's own package made is read, and its law is that of `CellKey`."""

import numpy as np
import pandas as pd
import pytest
from cell_key_perturbation.create_perturbed_table import create_perturbed_table
from cell_key_perturbation.utils.generate_test_ptable import generate_ptable_10_5_rule
from scipy import stats

import pymc_dapper as pmd

RNG = np.random.default_rng(4)
N_KEYS = 256


def ptable():
    """A perturbation table with noise: small for small counts, none below zero."""
    pcv, ckey = (x.ravel() for x in np.mgrid[1:751, 0:N_KEYS])
    pvalue = RNG.choice([-2, -1, 0, 1, 2, 3], size=pcv.size, p=[0.1, 0.2, 0.3, 0.2, 0.1, 0.1])
    return pd.DataFrame({"pcv": pcv, "ckey": ckey, "pvalue": np.maximum(pvalue, -pcv)})


def table(counts, ptable, threshold):
    """What the package publishes of people in areas, with record keys of their own."""
    people = pd.DataFrame({"area": np.repeat(np.arange(len(counts)), counts), "one": 1})
    people["record_key"] = RNG.integers(N_KEYS, size=len(people))
    made = create_perturbed_table(
        data=people,
        geog=["area"],
        tab_vars=["one"],
        record_key="record_key",
        ptable=ptable,
        threshold=threshold,
    )
    published = made.sort_values("area")["count"].astype(float).to_numpy()
    return np.ma.masked_invalid(published)


def test_what_the_package_publishes_has_the_law_that_is_read():
    rows = ptable()
    mechanism = pmd.CellKey(rows)
    values = np.arange(-3, 5)
    for n in (1, 2, 40, 600, 760, 1250):
        published = table(np.full(800, n), rows, threshold=0)
        times = np.array([np.sum(published == n + v) for v in values])
        p = np.exp(mechanism.logp(n + values, np.array(n)).eval(mode="FAST_COMPILE"))
        assert times.sum() == 800
        assert not times[p == 0].any()
        expected = 800 * p[p > 0]
        distance = ((times[p > 0] - expected) ** 2 / expected).sum()
        assert distance < stats.chi2.isf(1e-4, max(1, len(expected) - 1))
        # Of another row, or of noise that is the same for all counts, it isn't.
        others = np.exp(mechanism.logp(n + 1 + values, np.array(n)).eval(mode="FAST_COMPILE"))
        assert times[others == 0].any() or (
            ((times - 800 * others)[others > 0] ** 2 / (800 * others[others > 0])).sum()
            > stats.chi2.isf(1e-4, 7)
        )


def test_the_10_5_rule_is_a_table_of_one_change_for_each_count():
    rows = generate_ptable_10_5_rule()
    mechanism = pmd.CellKey(rows).published_if(">=", 10)
    counts = RNG.integers(1, 40, size=300)
    published = table(counts, rows, threshold=10)
    released = mechanism.as_released("n", published)
    logp = mechanism.logp(released, counts).eval(mode="FAST_COMPILE")
    np.testing.assert_array_equal(logp, 0.0)  # each for sure
    other = mechanism.logp(released, counts + 5).eval(mode="FAST_COMPILE")
    assert np.all(np.isneginf(other[~published.mask]))


@pytest.mark.filterwarnings("ignore:release.. simulates")
def test_rates_from_a_table_of_the_package_hold_the_truth():
    rows = ptable()
    mechanism = pmd.CellKey(rows).published_if(">=", 3)
    people = RNG.uniform(20, 60, size=40)
    rate = 0.15
    truth = RNG.poisson(rate * people)
    published = table(truth, rows, threshold=3)
    empty = np.setdiff1d(np.arange(40), np.flatnonzero(truth))
    assert len(published) == 40 - len(empty)
    released = np.ma.masked_all(40)
    released[np.flatnonzero(truth)] = published
    law = mechanism.as_released("published", released), np.arange(200)[:, None]
    of_counts = np.exp(mechanism.logp(*law).eval(mode="FAST_COMPILE"))
    log_rate = np.linspace(-4, 0, 801)[:, None, None]
    prior = stats.poisson.pmf(law[1], people * np.exp(log_rate))
    logp = np.log((prior * of_counts).sum(axis=1)).sum(axis=1)
    logp += stats.norm.logpdf(log_rate[:, 0, 0], -2, 1)
    weights, rates = np.exp(logp - logp.max()), np.exp(log_rate[:, 0, 0])
    mean = np.average(rates, weights=weights)
    sd = np.sqrt(np.average((rates - mean) ** 2, weights=weights))
    assert abs(mean - truth.sum() / people.sum()) < 4 * sd
    assert sd > 0.95 * np.sqrt(truth.sum()) / people.sum()
