"""Nodes in post-order, and where they are cut."""

import numpy as np
import pytest

from pymc_dapper.counts.trees.nodes import cut, in_post_order

in_post_order, cut = in_post_order.py_func, cut.py_func


def leaves_below(left, right):
    """The leaves below each node, by their places."""
    below = []
    for i, children in enumerate(zip(left, right, strict=True)):
        found = [leaf for child in children if child >= 0 for leaf in below[child]]
        below.append(found or [i])
    return below


@pytest.mark.parametrize(
    "parent",
    [
        [-1],
        [-1, 0, 1],  # a chain: a node with one child
        [-1, 0, 0, 0, 0, 0, 2, 2],
        [2, 2, -1, 4, -1, 4, 4, 3],  # two roots, in no order
        [-1, *[0] * 9],
    ],
)
def test_each_node_keeps_its_leaves(parent):
    left, right, origin = in_post_order(np.array(parent))
    assert sorted(origin[origin >= 0]) == list(range(len(parent)))
    assert np.all(left < np.arange(len(left)))
    assert np.all(right < np.arange(len(left)))
    below = leaves_below(left, right)
    for place, node in enumerate(origin):
        if node < 0:
            continue
        expected = {i for i in range(len(parent)) if i not in parent and is_below(parent, i, node)}
        assert {origin[leaf] for leaf in below[place]} == expected


def is_below(parent, i, node):
    return i == node or (parent[i] >= 0 and is_below(parent, parent[i], node))


def test_nodes_in_between_halve_the_children():
    left, right, origin = in_post_order(np.array([-1, *[0] * 8]))
    assert (origin < 0).sum() == 6
    sizes = [len(leaves) for leaves in leaves_below(left, right)]
    assert sorted(sizes) == [1] * 8 + [2] * 4 + [4] * 2 + [8]


def test_nodes_in_a_circle_do_not_come_out():
    _, _, origin = in_post_order(np.array([-1, 2, 1, 0]))
    assert set(origin) == {0, 3}


def test_subtrees_are_as_large_as_allowed():
    left, right, _ = in_post_order(np.array([-1, 0, 0, 1, 1, 2, 2]))
    sizes, ends = cut(left, right, 3)
    assert sizes.tolist() == [1, 1, 3, 1, 1, 3, 7]
    assert np.flatnonzero(ends).tolist() == [2, 5]
    assert np.flatnonzero(cut(left, right, 7)[1]).tolist() == [6]
