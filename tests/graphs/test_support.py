"""Ranges of statistics: never too narrow, and as narrow as people expect of common ones."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.graphs.support import bounds_by_support

SIZE = 6


def statistics():
    category = pm.Categorical.dist([0.2, 0.3, 0.5], shape=SIZE)
    binary = pm.Bernoulli.dist(0.4, shape=SIZE)
    normal = pm.Normal.dist(0, 3, shape=SIZE)
    weights = np.array([1.0, -2.0, 0.5, 3.0, 0.0, 1.0])
    scores = pt.as_tensor([[1.0, 5.0], [2.0, 0.0], [-1.0, 3.0]])
    filled = pt.zeros(3)[category].inc(1.0)
    return {
        "one-hot counts": (pt.eye(3)[category].sum(axis=0), 0, SIZE),
        "counts by comparison": (pt.eq(category[:, None], [0, 1, 2]).sum(axis=0), 0, SIZE),
        "counts by filling in": (filled, 0, SIZE),
        "a total": (binary.sum(), 0, SIZE),
        "a share": (binary.mean(), 0, 1),
        "a weighted sum": ((weights * binary).sum(), -2 * SIZE, 3 * SIZE),
        "scores looked up": (scores[category].sum(axis=0), -SIZE, 5 * SIZE),
        "a clamped sum": (pt.clip(normal, -1, 2).sum(), -SIZE, 2 * SIZE),
        "clamped squares": ((pt.clip(normal, -1, 2) ** 2).sum(), 0, 4 * SIZE),
        "several sums": (pt.stack([binary.sum(), category.sum()]), 0, 2 * SIZE),
        "a difference": (binary.sum() - pt.switch(binary, 2.0, -1.0).sum(), -2 * SIZE, 2 * SIZE),
        "two tables": (pm.Multinomial.dist(n=[7, 9], p=np.ones((2, 3)) / 3), 0, 9),
        "a binomial count": (pm.Binomial.dist(pm.DiscreteUniform.dist(2, 8), 0.5), 0, 8),
        "a quotient": (binary.sum() / (1 + category.sum()), 0, SIZE),
        "absolute values": (pt.abs(pt.clip(normal, -3, -1)).sum(), SIZE, 3 * SIZE),
        "smaller and larger": (pt.minimum(pt.maximum(normal, 0), 1).sum(), 0, SIZE),
        "joined": (pt.concatenate([binary, category]), 0, 2),
        "unbounded": (normal.sum(), -np.inf, np.inf),
        "unbounded above": (pm.Poisson.dist(3, shape=SIZE).sum(), 0, np.inf),
        "a distribution without a rule": (pm.ZeroInflatedPoisson.dist(0.5, 3.0), -np.inf, np.inf),
        "an operation without a rule": (pt.cumsum(binary), -np.inf, np.inf),
    }


CASES = list(statistics())


@pytest.mark.parametrize("case", CASES)
def test_ranges_are_those_of_the_records(case):
    graph, lower, upper = statistics()[case]
    found = bounds_by_support(graph)
    assert (found.low, found.high) == (lower, upper)


@pytest.mark.parametrize("case", CASES)
def test_draws_lie_within(case):
    graph = statistics()[case][0]
    found = bounds_by_support(graph)
    draws = pm.draw(graph, draws=50, random_seed=1, mode="FAST_COMPILE")
    assert found.low <= np.min(draws)
    assert np.max(draws) <= found.high
