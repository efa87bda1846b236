"""Where chains start: with totals near what was released, and where people may be."""

import numpy as np

from pymc_dapper.table_trees import start
from tests.table_trees.small_table_trees import example


def test_first_people_are_possible_and_found_again():
    tree, _ = example(True)
    rng = np.random.default_rng(1)
    first = start.first_people(rng, tree._areas, tree._tree, tree._fixed)
    assert first[2].sum() == 3
    many = [start.first_people(rng, tree._areas, tree._tree, tree._fixed) for _ in range(50)]
    blocks, cells, _ = np.concatenate(many, axis=1)
    impossible = (tree._fixed.group[blocks] == 1) & (cells == 1)
    assert (tree._fixed.group[blocks] == 1).any()
    assert not impossible.any()
    state = start.state_of(tree._fixed, tree._released, first)
    again = start.state_of(tree._fixed, tree._released, start.entries_of(state.people))
    for mine, other in zip(again.people, state.people, strict=True):
        np.testing.assert_array_equal(mine, other)
