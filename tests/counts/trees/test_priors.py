"""Priors as users write them."""

import numpy as np
import pytest
from scipy import stats

from pymc_dapper.counts.trees.priors import read_prior
from pymc_dapper.counts.trees.weights import FLAT, NEGATIVE_BINOMIAL, OF_TABLE, POISSON

LARGEST = np.array([30, 40])


def tables(read):
    starts, lowest, values = read.tables
    return [(at, values[a:b]) for at, a, b in zip(lowest, starts[:-1], starts[1:], strict=True)]


def test_laws_that_the_kernels_know():
    assert read_prior("flat", 2, LARGEST).kind.tolist() == [FLAT, FLAT]
    read = read_prior(stats.poisson([1.0, 2.5]), 2, LARGEST)
    assert read.kind.tolist() == [POISSON] * 2
    assert read.first.tolist() == [1, 2.5]
    read = read_prior(stats.nbinom(2.0, [0.1, 0.5]), 2, LARGEST)
    assert read.kind.tolist() == [NEGATIVE_BINOMIAL] * 2
    assert read.second.tolist() == [0.1, 0.5]


def test_other_laws_have_a_table_each():
    read = read_prior(stats.betabinom([20, 30], 2.0, 3.0), 2, LARGEST)
    assert read.kind.tolist() == [OF_TABLE] * 2
    for k, (lowest, values) in enumerate(tables(read)):
        x = lowest + np.arange(len(values))
        assert x.tolist() == list(range([20, 30][k] + 1))
        np.testing.assert_allclose(values, stats.betabinom.logpmf(x, [20, 30][k], 2, 3))


def test_equal_laws_share_a_table_as_long_as_needed():
    read = read_prior(stats.zipf(2.5), 2, LARGEST)
    [(lowest, values)] = tables(read)
    assert lowest == 1
    np.testing.assert_allclose(values, stats.zipf.logpmf(np.arange(1, 41), 2.5))


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("poisson", "must be 'flat'"),
        (np.zeros((2, 3)), "one dimension"),
        ([np.nan, 0.0], "must be numbers"),
        ([0.5, 0.5], "add up to"),
        (stats.norm(0, 1), "continuous"),
        (stats.poisson([1.0, 2.0, 3.0]), "one for each leaf"),
        (stats.poisson([1.0, -2.0]), "invalid at leaf 1"),
    ],
)
def test_what_is_no_prior_is_refused(prior, message):
    with pytest.raises(ValueError, match=message):
        read_prior(prior, 2, LARGEST)
