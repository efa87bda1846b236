"""Two passes beside the normal equations."""

import numpy as np
import pytest

from pymc_dapper.reference import table_tree_least_squares, tree_least_squares

PARENT = [-1, 0, 0, 1, 1, 2, 2, 2]
RELEASED = np.array([31.0, np.nan, 19.5, 4, -3, 7, 2, 11])
SD = np.array([2.0, 1, 1.5, 3, 4, 2, 6, 1])


def by_normal_equations(sd):
    leaves = [3, 4, 5, 6, 7]
    design = np.zeros((8, 5))
    for column, leaf in enumerate(leaves):
        node = leaf
        while node >= 0:
            design[node, column] = 1
            node = PARENT[node]
    known = ~np.isnan(RELEASED)
    weights = known / np.maximum(sd, 1e-4) ** 2
    covariance = np.linalg.inv((design.T * weights) @ design)
    estimate = covariance @ ((design.T * weights) @ np.nan_to_num(RELEASED))
    return design @ estimate, np.sqrt(np.diag(design @ covariance @ design.T))


@pytest.mark.parametrize("exact", [None, 0, 3])
def test_estimates_and_their_sd(exact):
    sd = SD.copy()
    if exact is not None:
        sd[exact] = 0
    found = tree_least_squares(PARENT, RELEASED, sd)
    estimate, expected = by_normal_equations(sd)
    np.testing.assert_allclose(found.estimate, estimate, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.sd, expected, rtol=1e-4, atol=1e-4)
    if exact is None:
        np.testing.assert_allclose(found.sd, expected, rtol=1e-10)


def test_what_has_no_estimate():
    with pytest.raises(ValueError, match="of node 4"):
        tree_least_squares(PARENT, np.where(np.arange(8) == 4, np.nan, RELEASED), SD)
    with pytest.raises(ValueError, match="circle"):
        tree_least_squares([-1, 2, 1], [1.0, 1, 1], [1.0, 1, 1])
    with pytest.raises(ValueError, match="is no node"):
        tree_least_squares([-1, 0, 7], [1.0, 1, 1], [1.0, 1, 1])


CELLS = np.array([(a, b) for a in range(2) for b in range(3)]).T
QUERIES = {
    "total": np.zeros(6, int),
    "a": CELLS[0],
    "b": CELLS[1],
    "all": np.arange(6),
    "those of a = 1": np.where(CELLS[0] == 1, CELLS[1], -1),
}
"""The class of each cell of a table of 2 by 3. The last crosses no other, and isn't of all."""


def measured(names, seed, exact=False):
    """Noisy counts by several queries; some aren't asked in some areas, and noise differs."""
    rng, queries = np.random.default_rng(seed), {}
    people = np.zeros((8, 6))
    people[3:] = rng.poisson(5, (5, 6))
    for area in (2, 1, 0):
        people[area] = people[[k for k, above in enumerate(PARENT) if above == area]].sum(axis=0)
    for name in names:
        classes = QUERIES[name]
        sd = rng.uniform(0.5, 4, 8)
        sums = people @ (classes == np.arange(classes.max() + 1)[:, None]).T
        released = sums + sd[:, None] * rng.normal(size=sums.shape)
        if exact and name == "total":
            sd[0], released[0] = 0, sums[0]
        released[[1] if name == "all" else [4]] = np.nan
        queries[name] = (classes, released, sd)
    queries["all"][1][4] = 3.0
    return queries


def densely(queries, margin):
    """The normal equations of all cells of all leaves; exact counts have hardly any noise."""
    rows, values, weights = [], [], []
    for classes, released, sd in queries.values():
        for area in range(8):
            for k, value in enumerate(released[area]):
                if not np.isnan(value):
                    rows.append(inside(area, classes == k))
                    values.append(value)
                    weights.append(1 / max(sd[area], 1e-4) ** 2)
    design, weights = np.array(rows), np.array(weights)
    covariance = np.linalg.inv((design.T * weights) @ design)
    estimate = covariance @ ((design.T * weights) @ np.array(values))
    wanted = [[inside(area, margin == k) for k in range(margin.max() + 1)] for area in range(8)]
    sd = np.sqrt(np.einsum("akx,xy,aky->ak", wanted, covariance, wanted))
    return np.array(wanted) @ estimate, sd


def inside(area, cells):
    """Which of the leaves' cells are in an area."""
    found = np.zeros((5, 6))
    for k, node in enumerate(range(3, 8)):
        while node >= 0:
            if node == area:
                found[k] = cells
            node = PARENT[node]
    return found.ravel()


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("names", [["all"], ["total", "all"], ["total", "a", "b", "all"]])
def test_tables_by_crossing_queries(names, exact):
    queries = measured(names, 3, exact)
    margins = {name: QUERIES[name] for name in ("total", "b", "those of a = 1")}
    found = table_tree_least_squares(PARENT, queries, margins)
    for name, margin in margins.items():
        estimate, sd = densely(queries, margin)
        tolerance = 1e-3 if exact else 1e-9
        np.testing.assert_allclose(found[name].estimate, estimate, atol=tolerance)
        np.testing.assert_allclose(found[name].sd, sd, atol=tolerance)


def test_estimates_of_tables_see_a_fault():
    """The broken twin takes the standard deviation of one area's noise twice as large."""
    queries = measured(["total", "a", "b", "all"], 3)
    wrong = {
        name: (c, y, np.where(np.arange(8) == 5, 2 * sd, sd))
        for name, (c, y, sd) in queries.items()
    }
    found = table_tree_least_squares(PARENT, wrong, {"b": QUERIES["b"]})["b"]
    estimate, sd = densely(queries, QUERIES["b"])
    assert np.max(np.abs(found.estimate - estimate)) > 1e-3
    assert np.max(np.abs(found.sd - sd)) > 1e-3


def test_queries_that_are_no_margins_are_refused():
    queries = measured(["total", "a", "b", "all"], 3)
    queries["some"] = (np.array([0, 0, 0, 0, 0, 1]), np.ones((8, 2)), 1.0)
    with pytest.raises(ValueError, match="the others aren't margins of one table"):
        table_tree_least_squares(PARENT, queries, {"b": QUERIES["b"]})
    queries["some"] = (CELLS[0], np.where(np.eye(8, 2), np.nan, 1), 1.0)
    with pytest.raises(ValueError, match="an area has some of its counts only"):
        table_tree_least_squares(PARENT, queries, {"b": QUERIES["b"]})
    with pytest.raises(ValueError, match="of node 3"):
        table_tree_least_squares(PARENT, {"a": measured(["a", "all"], 3)["a"]}, {"a": CELLS[0]})
