"""Do draws follow a law? And in what do they differ, if not?"""

import numpy as np
from scipy.stats import chisquare

PASS = 1e-4
"""A right sampler's p-value is below this once in ten thousand seeds."""
FAIL = 1e-12
"""A wrong sampler's must be below this."""


def p_value(draws, cdf, edges):
    """Chi-square test of the counts between edges; a cell holds its upper edge.

    Parameters
    ----------
    draws : ndarray
    cdf : ndarray
        The law's cdf at the edges.
    edges : ndarray
        Increasing.
    """
    observed = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=len(edges) + 1)
    expected = np.diff(np.concatenate([[0.0], cdf, [1.0]])) * draws.size
    rare = expected < 20
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] < 20:  # too few for a cell of their own
            observed[0], expected[0] = observed[0] + observed[-1], expected[0] + expected[-1]
            observed, expected = observed[:-1], expected[:-1]
    return chisquare(observed, expected).pvalue


def integer_edges(mu, spread):
    """Integers at which to cut a law of about this spread."""
    steps = np.unique(np.rint(np.linspace(-4, 4, 33) * spread))
    return np.round(mu) + np.union1d(steps, [-1.0, 0.0])
