"""Where chains start: near what was released, and where people may be."""

import numpy as np

import pymc_dapper as pmd
from pymc_dapper.table_trees import start
from tests.table_trees.small import example


def test_first_people_are_possible_and_found_again():
    tree, _ = example(True)
    totals = np.array([3.0, 2, 1, 1, 1, 1, 0])
    shares = start.compositions(tree._areas, tree._queries, tree._fixed, totals)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert shares[1, 1] == 0
    rng = np.random.default_rng(1)
    first = start.first_people(rng, tree._areas, tree._tree, tree._fixed, shares)
    assert first[2].sum() == 3
    state = start.state_of(tree._fixed, tree._released, first)
    again = start.state_of(tree._fixed, tree._released, start.entries_of(state.people))
    for mine, other in zip(again.people, state.people, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_proportions_are_near_those_released():
    """With little noise, of a large group; the other was not measured, and has the state's."""
    p = np.array([0.7, 0.2, 0.1])
    released = np.full((5, 3), np.nan)
    released[0], released[1] = 10_000 * p, 5_000 * p[::-1]
    tree = pmd.TableTree(
        [-1, 0, 0, 1, 2],
        {"all": pmd.TableQuery([0, 1, 2], np.round(released), 1.0)},
        prior=np.log(np.full(20_000, 1 / 20_000)),
    )
    totals = np.array([10_000.0, 5_000, 5_000, 5_000, 5_000])
    shares = start.compositions(tree._areas, tree._queries, tree._fixed, totals)
    np.testing.assert_allclose(shares, [p[::-1], p], atol=1e-3)
