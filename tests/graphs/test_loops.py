"""Loops over records, written as operations on arrays."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import io_toposort
from pytensor.scan.op import Scan

from pymc_dapper.graphs.loops import without_loops

X = pt.tensor("x", dtype="float64", shape=(5,))
SCALE = pt.scalar("scale", dtype="float64")


def squares():
    return pytensor.scan(lambda x: (SCALE * x) ** 2, sequences=[X], return_updates=False)


def total():
    return pytensor.scan(
        lambda x, so_far: so_far + SCALE * x,
        sequences=[X],
        outputs_info=[pt.constant(np.array(0.5))],
        return_updates=False,
    )[-1]


def cumulated():
    return pytensor.scan(
        lambda x, so_far: so_far * x,
        sequences=[X],
        outputs_info=[pt.constant(np.array(1.0))],
        return_updates=False,
    )[-1]


@pytest.mark.parametrize(
    ("build", "expected"),
    [(squares, lambda x: (2 * x) ** 2), (total, lambda x: 0.5 + 2 * x.sum())],
)
def test_loops_that_map_and_add_up_become_operations_on_arrays(build, expected):
    [graph] = without_loops([build()])
    assert not any(isinstance(node.op, Scan) for node in io_toposort([], [graph]))
    x = np.linspace(-1, 2, 5)
    np.testing.assert_allclose(graph.eval({X: x, SCALE: 2.0}, mode="FAST_COMPILE"), expected(x))


def test_other_loops_stay():
    loop = cumulated()
    assert without_loops([loop]) == [loop]
