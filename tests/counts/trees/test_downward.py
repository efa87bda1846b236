"""Messages down: the product with those up has the same sum at every node."""

import numpy as np
import pytest

from pymc_dapper.counts.trees import compiled, downward
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
    messages, values = up_and_down(forest.nodes, forest.solve().drop, None)
    means = []
    for begin, width, lowest in zip(messages.starts, messages.widths, messages.lowest, strict=True):
        p = (messages.values * values)[begin : begin + width]
        means.append(lowest + p @ np.arange(width) / p.sum())
    for i, (left, right) in enumerate(zip(forest.nodes.left, forest.nodes.right, strict=True)):
        if right >= 0:
            assert abs(means[left] + means[right] - means[i]) < 1e-11


@pytest.mark.parametrize("fault", [False, True])
def test_what_messages_leave_out_is_as_small_as_rounding_errors(fault, monkeypatch):
    """Marginals beside those of whole messages; without a thousandth at either end, they differ."""
    nodes, found = made([20.0, 12, 0, 3, 10, 8]).nodes, []
    messages = compiled.ascend(nodes, 200.0, True)
    for share in (0.0, 1e-3 if fault else downward.NEGLIGIBLE):
        monkeypatch.setattr(downward, "NEGLIGIBLE", share)
        values = downward.descend.py_func(nodes, messages, np.ones(messages.widths[-1]))
        parts = np.split(values * messages.values, messages.starts[1:])
        found.append(np.concatenate([p / p.sum() for p in parts]))
    assert (np.abs(found[1] - found[0]).max() < 1e-14) == (not fault)
    assert np.any((found[1] == 0) & (found[0] > 0))
