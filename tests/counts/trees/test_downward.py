"""Messages down: the product with those up has the same sum at every node."""

import numpy as np

from pymc_dapper.counts.trees.forest import up_and_down
from tests.counts.trees.test_messages import made


def test_marginals_of_a_node_and_of_its_only_child_are_the_same():
    forest = made([20.0, 12, 0, 3, 10, 8])
    solved = forest.solve()
    (lowest, pmf), (lowest_below, below) = forest.pmf(solved, 2), forest.pmf(solved, 5)
    at = lowest - lowest_below
    np.testing.assert_allclose(pmf, below[at : at + len(pmf)], atol=1e-13)


def test_means_of_children_add_up():
    forest = made([20.0, 12, 0, 3, 10, 8])
    messages, values = up_and_down(forest.nodes, forest.solve().settings, None)
    means = []
    for begin, width, lowest in zip(messages.starts, messages.widths, messages.lowest, strict=True):
        p = (messages.values * values)[begin : begin + width]
        means.append(lowest + p @ np.arange(width) / p.sum())
    for i, (left, right) in enumerate(zip(forest.nodes.left, forest.nodes.right, strict=True)):
        if right >= 0:
            assert abs(means[left] + means[right] - means[i]) < 1e-11
