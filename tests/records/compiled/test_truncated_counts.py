"""Counts within bounds, drawn given PyMC's parameters of their distribution."""

import numpy as np
import pymc as pm
import pytest
from pymc.logprob import logp

from pymc_dapper.graphs.noise import truncated_draw
from pymc_dapper.records.compiled import truncated_counts  # noqa: F401  (registers the draws)

M = 20_001
UNIFORMS = (np.arange(M) + 0.5) / M


@pytest.mark.parametrize(
    "base",
    [
        lambda: pm.Poisson.dist(2.5),
        lambda: pm.Binomial.dist(7, 0.4),
        lambda: pm.Binomial.dist(5, 1.0),
        lambda: pm.NegativeBinomial.dist(mu=3.0, alpha=0.7),
    ],
)
def test_pymcs_parameters_are_understood(base):
    node = base().owner
    draws = truncated_draw(node.op, pm.math.constant(UNIFORMS), 1, 6, *node.op.dist_params(node))
    values = np.arange(1, 7)
    log_weights = logp(base(), values).eval(mode="FAST_COMPILE")
    exact = np.exp(log_weights - np.logaddexp.reduce(log_weights))
    found = np.bincount(draws.eval(mode="FAST_COMPILE").astype(int), minlength=7)[1:] / M
    assert np.abs(found - exact).max() <= 2 / M
