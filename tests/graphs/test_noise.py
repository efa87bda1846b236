"""Draws from standard noise."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors

from pymc_dapper.graphs.noise import FEW_CATEGORIES, transform_noise

K = FEW_CATEGORIES + 4
OP = pm.Categorical.dist(np.ones(K) / K).owner.op


@pytest.mark.parametrize("leading", [(), (1,), (1, 1)])
def test_probabilities_of_all_records_are_searched_and_not_compared(leading):
    rng = np.random.default_rng(1)
    p, u = rng.dirichlet(np.ones(K)).reshape(*leading, K), rng.random((30,) * max(1, len(leading)))
    weights, noise = pt.tensor("p", shape=p.shape), pt.tensor("u", shape=u.shape)
    drawn = transform_noise(OP, noise, weights)
    np.testing.assert_array_equal(
        drawn.eval({weights: p, noise: u}, mode="FAST_COMPILE"),
        (u[..., None] >= p.cumsum(axis=-1)[..., :-1]).sum(axis=-1),
    )
    # Nothing is computed with an axis of records and one of categories.
    assert all(x.type.ndim <= max(u.ndim, p.ndim) for x in ancestors([drawn]))
    assert not any(x.type.shape == (*u.shape, K - 1) for x in ancestors([drawn]))
