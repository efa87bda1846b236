"""Graphs with other variables in them."""

import numpy as np
import pytensor.tensor as pt

from pymc_dapper.graphs.rebuild import (
    dependent_variables,
    frontier,
    inline_symbolic_ops,
    rebuild,
    with_inputs,
)

X, Y = pt.vector("x"), pt.vector("y")
FIXED = pt.exp(Y)
GRAPH = (X * FIXED).sum()


def test_what_does_not_change_is_kept():
    [same] = rebuild([GRAPH])
    assert same is GRAPH
    z = pt.vector("z")
    [new] = rebuild([GRAPH], {X: z})
    assert new.owner.inputs[0].owner.inputs == [z, FIXED]


def test_nodes_are_replaced_by_what_is_returned_for_them():
    def doubled(node, inputs):
        return [2 * inputs[0]] if node is FIXED.owner else with_inputs(node, inputs)

    [new] = rebuild([GRAPH], replace_node=doubled)
    at = {X: np.array([1.0, 2.0]), Y: np.array([3.0, 4.0])}
    assert new.eval(at, mode="FAST_COMPILE") == 2 * (1 * 3 + 2 * 4)


def test_operations_that_stand_for_a_graph_are_written_out():
    product = pt.einsum("i,i->", X, Y)
    [inlined] = inline_symbolic_ops([product])
    assert type(product.owner.op).__name__ not in str(inlined.owner.op)
    at = {X: np.array([1.0, 2.0]), Y: np.array([3.0, 4.0])}
    assert inlined.eval(at, mode="FAST_COMPILE") == 11


def test_what_lies_between_roots_and_a_graph():
    product = GRAPH.owner.inputs[0]
    assert dependent_variables([X], [GRAPH]) == {X, product, GRAPH}


def test_the_frontier_is_what_can_be_computed_first():
    assert frontier([X], GRAPH + 3) == [FIXED]
    assert frontier([X], GRAPH + Y.sum())[0] is FIXED
    assert frontier([X, Y], GRAPH) == []
