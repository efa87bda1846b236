"""Sums of tables are written as sums of their columns before they are compiled."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.basic import Join

from pymc_dapper.graphs.joins import with_sums_before_joins

RNG = np.random.default_rng(1)
X = pt.constant(RNG.normal(size=(6, 3)))
K = pt.constant(RNG.integers(0, 9, size=(6, 2)))
TABLE = pt.concatenate([X, K, X[:, :1] > 0], axis=1)


def joins(graph):
    """Shapes of joined arrays."""
    return [x.outputs[0].type.shape for x in io_toposort([], [graph]) if isinstance(x.op, Join)]


@pytest.mark.parametrize(
    ("graph", "sums_first"),
    [
        (TABLE.sum(axis=0), True),
        (2 * TABLE.sum(axis=0) + 1, True),
        (pt.stack([X, 2 * X], axis=2).sum(axis=(0, 1)), True),
        (pt.stack([X, 2 * X]).sum(axis=1), True),
        (pt.concatenate([K > 3, K > 5], axis=1).sum(axis=0), True),
        (TABLE.sum(axis=1), False),
        (TABLE.sum(), False),
        (pt.concatenate([X, X], axis=0).sum(axis=0), False),
    ],
)
def test_sums_of_joined_columns_are_joined_sums(graph, sums_first):
    """The same numbers of the same type; no table is made where there need not be one."""
    rewritten = with_sums_before_joins(graph)
    assert rewritten.dtype == graph.dtype
    values = [x.eval(mode="FAST_COMPILE") for x in (graph, rewritten)]
    np.testing.assert_allclose(values[1], values[0], rtol=1e-14)
    assert (joins(rewritten) == joins(graph)) == (not sums_first)
