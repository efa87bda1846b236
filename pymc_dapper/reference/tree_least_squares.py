"""Generalised least squares of counts on a tree, for normal intervals.

All noise is taken as normal, and counts as any numbers, negative and fractional ones among them.
The best linear unbiased estimates and their variances then take one pass up the tree and one down.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class TreeLeastSquares(NamedTuple):
    """Estimates of the counts of all nodes."""

    estimate: np.ndarray
    """Shape (number of nodes,)."""
    sd: np.ndarray
    """Standard deviation of its error, shape (number of nodes,)."""


def tree_least_squares(parent: ArrayLike, released: ArrayLike, sd: ArrayLike) -> TreeLeastSquares:
    """Estimate counts on a tree by generalised least squares.

    Parameters
    ----------
    parent : array_like of int, shape (number of nodes,)
        The parent of each node, -1 for roots.
    released : array_like of float, shape (number of nodes,)
        Noisy counts; nan without a release.
    sd : array_like of float, shape (number of nodes,)
        Standard deviations of their noise; 0 for exact counts.

    Returns
    -------
    TreeLeastSquares
        Estimates and their standard deviations.

    Raises
    ------
    ValueError
        If nothing was released of a leaf, or if the parents run in a circle.

    References
    ----------
    Hay, M., Rastogi, V., Miklau, G., and Suciu, D. (2010). Boosting the accuracy of differentially
    private histograms through consistency. Proceedings of the VLDB Endowment 3(1). Section 4.
    """
    parents = np.asarray(parent, dtype=np.int64)
    values, variances = np.asarray(released, dtype=float), np.asarray(sd, dtype=float) ** 2
    levels = _levels(parents)
    known = ~np.isnan(values)
    n = parents.size
    sums, spreads = np.zeros(n), np.zeros(n)  # of the children's estimates
    best, variance = np.zeros(n), np.zeros(n)
    is_leaf = np.ones(n, dtype=bool)
    is_leaf[parents[parents >= 0]] = False
    if np.any(is_leaf & ~known):
        leaf = int(np.flatnonzero(is_leaf & ~known)[0])
        raise ValueError(f"nothing was released of node {leaf}, which has no children")
    for nodes in reversed(levels):
        own, below = variances[nodes], np.where(is_leaf[nodes], np.inf, spreads[nodes])
        own = np.where(known[nodes], own, np.inf)
        # Of two estimates, each weighs as much as the other is uncertain.
        with np.errstate(invalid="ignore"):
            weight = np.where(np.isinf(below), 1.0, below / (own + below))
            weight = np.where(own + below == 0, 0.5, weight)
            variance[nodes] = np.where(np.isinf(below), own, below * (1 - weight))
        at_sum, at_value = sums[nodes], np.where(known[nodes], values[nodes], 0.0)
        best[nodes] = at_sum + weight * (at_value - at_sum)
        inside = nodes[parents[nodes] >= 0]
        np.add.at(sums, parents[inside], best[inside])
        np.add.at(spreads, parents[inside], variance[inside])
    estimate, final = best.copy(), variance.copy()
    for nodes in levels[1:]:
        above = parents[nodes]
        with np.errstate(invalid="ignore"):
            share = np.where(spreads[above] > 0, variance[nodes] / spreads[above], 0.0)
        estimate[nodes] += share * (estimate[above] - sums[above])
        final[nodes] -= share * (variance[nodes] - share * final[above])
    return TreeLeastSquares(estimate, np.sqrt(np.maximum(final, 0.0)))


def _levels(parents: np.ndarray) -> list[np.ndarray]:
    """Nodes by their distance from the root."""
    depth = np.full(parents.size, -1)
    depth[parents < 0] = 0
    levels = [np.flatnonzero(parents < 0)]
    while levels[-1].size:
        found = (depth < 0) & (depth[parents] == len(levels) - 1)
        depth[found] = len(levels)
        levels.append(np.flatnonzero(found))
    if np.any(depth < 0):
        raise ValueError("the parents run in a circle")
    return levels[:-1]
