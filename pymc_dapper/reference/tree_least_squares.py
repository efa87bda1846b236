"""Generalised least squares of counts on a tree, for normal intervals.

All noise is taken as normal, and counts as any numbers, negative and fractional ones among them.
The best linear unbiased estimates and their variances then take one pass up the tree and one down.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class TreeLeastSquares(NamedTuple):
    """Estimates of the counts of all nodes."""

    estimate: np.ndarray
    """Shape (number of nodes,), or (number of nodes, number of counts)."""
    sd: np.ndarray
    """Standard deviation of its error, of the same shape."""


def tree_least_squares(parent: ArrayLike, released: ArrayLike, sd: ArrayLike) -> TreeLeastSquares:
    """Estimate counts on a tree by generalised least squares.

    Parameters
    ----------
    parent : array_like of int, shape (number of nodes,)
        The parent of each node, -1 for roots.
    released : array_like of float, shape (number of nodes,) or (number of nodes, n)
        Noisy counts; nan without a release. Columns are trees of their own.
    sd : array_like of float, of the same shape
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
    shape = values.shape
    sums, spreads = np.zeros(shape), np.zeros(shape)  # of the children's estimates
    best, variance = np.zeros(shape), np.zeros(shape)
    is_leaf = np.ones(shape, dtype=bool)
    is_leaf[parents[parents >= 0]] = False
    if np.any(is_leaf & ~known):
        leaf = int(np.argwhere(is_leaf & ~known)[0, 0])
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


def table_tree_least_squares(
    parent: ArrayLike, queries: Mapping[str, Any], margins: Mapping[str, ArrayLike]
) -> dict[str, TreeLeastSquares]:
    """Estimate tables of people on a tree of areas by generalised least squares.

    Parameters
    ----------
    parent : array_like of int, shape (areas,)
        The area that each is a part of, -1 for none.
    queries : mapping of str to tuple
        For each query, the class of each cell, -1 for cells that it doesn't count; its noisy
        counts, shape (areas, classes), nan in areas where it wasn't asked; and the standard
        deviation of the noise, one for all areas or for each, 0 for exact counts.
    margins : mapping of str to array_like
        What to estimate: the class of each cell, as of queries.

    Returns
    -------
    dict of str to TreeLeastSquares
        Of each margin, arrays of shape (areas, classes).

    Raises
    ------
    ValueError
        If queries aren't margins of one table, or coarser ones whose classes have the same number
        of cells; or if those of an area without parts don't determine its table.

    Notes
    -----
    Matrices of classes, which say for each two cells whether a query counts them together, then
    have the same eigenvectors. Along each of these, tables are a tree of single numbers. So time is
    linear in the areas; the estimates are those of [1]_, which handles other queries, too, with a
    matrix of cells by cells for each area.

    References
    ----------
    .. [1] Cumings-Menon, R., and Zhuravlev, P. (2024). Least squares estimation for hierarchical
       data. arXiv:2404.13164.
    """
    given = {name: (np.asarray(c), np.asarray(y, float)) for name, (c, y, *_) in queries.items()}
    sums = {name: classes == np.arange(y.shape[1])[:, None] for name, (classes, y) in given.items()}
    generator = np.random.default_rng(0)
    mixed = sum(generator.uniform(1, 2) * (1.0 * one.T @ one) for one in sums.values())
    vectors = np.linalg.eigh(mixed)[1]
    shape = (np.size(parent), len(vectors))
    told, precision = np.zeros(shape), np.zeros(shape)
    exact = np.full(shape, np.nan)
    for name, (_, _, scale, *_) in queries.items():
        along = sums[name] @ vectors
        value = np.sum(along**2, axis=0)
        value[value < 1e-8] = 0
        if np.max(np.abs(sums[name].T @ along - vectors * value)) > 1e-8 * max(1, value.max()):
            raise ValueError(
                f"queries: {name!r} and the others aren't margins of one table. Leave out one "
                "whose classes differ in their numbers of cells, such as hhinstlevels beside hhgq"
            )
        sd = np.broadcast_to(np.asarray(scale, float), shape[:1])
        missing = np.isnan(given[name][1])
        known = ~missing.any(axis=1)
        if np.any(missing[~known] != 1):
            raise ValueError(f"queries[{name!r}]: an area has some of its counts only")
        noisy = known & (sd > 0)
        weight = 1 / sd[noisy, None] ** 2
        told[noisy] += weight * (given[name][1][noisy] @ along)
        precision[noisy] += weight * value
        is_exact, there = np.flatnonzero(known & (sd == 0))[:, None], value > 0
        exact[is_exact, there] = (given[name][1][is_exact[:, 0]] @ along)[:, there] / value[there]
    with np.errstate(divide="ignore", invalid="ignore"):
        released = np.where(precision > 0, told / precision, np.nan)
        sd = np.where(np.isnan(exact), 1 / np.sqrt(precision), 0)
    trees = tree_least_squares(parent, np.where(np.isnan(exact), released, exact), sd)
    found = {}
    for name, classes in margins.items():
        own = np.asarray(classes)
        along = (own == np.arange(own.max() + 1)[:, None]) @ vectors
        sd = np.sqrt(trees.sd**2 @ (along.T) ** 2)
        found[name] = TreeLeastSquares(trees.estimate @ along.T, sd)
    return found


def _levels(parents: np.ndarray) -> list[np.ndarray]:
    """Nodes by their distance from the root."""
    levels = [np.flatnonzero(parents < 0)]
    while levels[-1].size:
        levels.append(np.flatnonzero(np.isin(parents, levels[-1])))
    if sum(nodes.size for nodes in levels) < parents.size:
        raise ValueError("the parents run in a circle, or one of them is no node")
    return levels[:-1]
