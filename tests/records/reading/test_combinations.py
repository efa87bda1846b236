"""Expressions of single records and sums over records are expanded into functions of sums."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dapper.records.reading.factors import AdditiveFactor, FullFactor, read_factors

N = 5
X = pt.vector("x", shape=(N,))
Z = np.array([1.0, -1.0, 0.5, 0.0, 2.0])

EXPANDED = {
    "variance": -((X - X.mean()) ** 2).sum(),
    "covariance": ((X - X.mean()) * (Z - Z.mean())).sum(),
    "third moment": ((X - X.mean()) ** 3).sum(),
    "scaled by a sum": (X * X.sum() / 3).sum(),
    "product": pt.dot(X - X.mean(), X + 1),
    "outer product": ((X - X.mean())[:, None] * np.array([1.0, 2.0])).sum(axis=0)[1],
}


@pytest.mark.parametrize("name", EXPANDED)
def test_polynomials_of_deviations_are_functions_of_sums(name):
    graph = EXPANDED[name]
    [factor] = read_factors({"privacy": graph}, [X])
    assert isinstance(factor, AdditiveFactor)
    assert factor.expanded
    x = np.random.default_rng(0).normal(size=N)
    totals = {
        each.total: each.contributions.eval(
            {X: x}, mode="FAST_COMPILE", on_unused_input="ignore"
        ).sum(axis=0)
        for each in factor.sums
    }
    # Of the records, nothing but how many they are.
    given = {**totals, X: np.full(N, np.nan)}
    found = factor.log_density.eval(given, mode="FAST_COMPILE", on_unused_input="ignore")
    np.testing.assert_allclose(found, graph.eval({X: x}, mode="FAST_COMPILE"), atol=1e-12)


@pytest.mark.parametrize(
    "graph",
    [pt.abs(X - X.mean()).sum(), pt.exp(X * X.sum()).sum(), ((X - X.mean()) ** X.sum()).sum()],
    ids=["absolute value", "exponential", "unknown power"],
)
def test_other_functions_than_polynomials_are_not_expanded(graph):
    [factor] = read_factors({"privacy": graph}, [X])
    assert isinstance(factor, FullFactor)
