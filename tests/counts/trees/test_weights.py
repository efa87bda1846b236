"""Log-weights of counts, beside SciPy's."""

import numpy as np
import pytest
from scipy import stats

from pymc_dapper.counts.trees import weights
from pymc_dapper.counts.trees.nodes import Nodes
from tests.counts.trees.trees_by_enumeration import log_noise

KINDS = {
    "discrete_gaussian": weights.DISCRETE_GAUSSIAN,
    "discrete_laplace": weights.DISCRETE_LAPLACE,
    "gaussian": weights.GAUSSIAN,
    "laplace": weights.LAPLACE,
}


def one_leaf(prior, first, second=0.0):
    integers = np.zeros(1, dtype=np.int64)
    numbers = [np.zeros(1), np.zeros(1), np.array([prior]), np.array([first]), np.array([second])]
    return Nodes(integers, integers, integers, *numbers, integers, integers, integers, np.zeros(0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.3, 0.9, 1.1, 7.0])
def test_noise(kind, scale):
    for released in (3.0, -1.0):
        of_kind = {"noise": [KINDS[kind]], "released": [released], "scale": [scale]}
        nodes, found = one_leaf(weights.FLAT, 0.0)._replace(**of_kind), np.empty(6)
        assert weights.log_noise_weights.py_func(nodes, 0, 0, found) == found.max()
        found -= weights.log_normaliser.py_func(KINDS[kind], scale)
        expected = [log_noise(kind, released, scale, x) for x in range(6)]
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("prior", "first", "second", "law"),
    [
        (weights.POISSON, 3.7, 0.0, stats.poisson(3.7)),
        (weights.NEGATIVE_BINOMIAL, 1.3, 0.2, stats.nbinom(1.3, 0.2)),
    ],
)
def test_priors_and_their_tails(prior, first, second, law):
    nodes = one_leaf(prior, first, second)
    found = [weights.log_prior.py_func(nodes, 0, x) for x in range(9)]
    np.testing.assert_allclose(found, law.logpmf(np.arange(9)), rtol=1e-12)
    for drop in (5.0, 30.0):
        low, high = weights.prior_window.py_func(nodes, 0, drop)
        assert law.cdf(low - 1) + law.sf(high) <= 2 * np.exp(-drop)


def test_no_people_where_the_rate_is_0():
    nodes = one_leaf(weights.POISSON, 0.0)
    assert [weights.log_prior.py_func(nodes, 0, x) for x in range(3)] == [0, -np.inf, -np.inf]
