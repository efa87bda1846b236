"""Graphs are optimised as PyTensor's own are, and leave their inputs as they are."""

import pytensor.tensor as pt
import pytest

from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.backend.rewrites import rewritten

X, Y = pt.dvector("x"), pt.dvector("y")


def overwritten(graph):
    """What operations of a graph write their results into."""
    return [
        node.inputs[k]
        for node in graph.toposort()
        for places in node.op.destroy_map.values()
        for k in places
    ]


@pytest.mark.parametrize("output", [pt.set_subtensor(X[0], 1.0), pt.exp(X), pt.sort(X), X + Y])
def test_no_input_is_overwritten(output):
    graph = rewritten([X, Y], [output], numba_mode(None))
    assert len(graph.inputs) == 2
    assert set(graph.inputs).isdisjoint(overwritten(graph))


def test_graphs_are_simplified():
    graph = rewritten([X, Y], [pt.log(pt.exp(X)) + 0 * Y], numba_mode(None))
    assert not any("log" in str(node.op).lower() for node in graph.toposort())
