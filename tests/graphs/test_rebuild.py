"""Graphs with other variables in them."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.tensor.random.type import random_generator_type

from pymc_dapper.graphs.rebuild import (
    at_inputs,
    dependent_variables,
    frontier,
    inline_symbolic_ops,
    rebuild,
    same_function,
    with_constants_as_inputs,
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


def categories(p, size=None):
    """A draw, as an operation."""
    _, draw = pt.random.categorical(
        p, size=size, rng=random_generator_type("rng"), return_next_rng=True
    )
    return draw.owner


def test_shapes_are_found_where_they_are_not_known():
    p, n = pt.tensor("p", shape=(None, 3)), pt.lscalar("n")
    filled, drawn, fixed = pt.full((2, n), 1.0).owner, categories(p), categories(p, size=(5,))
    known = pt.tensor("q", shape=(4, 3))
    shapes = [
        node.outputs[-1].type.shape
        for node in (
            at_inputs(filled, [filled.inputs[0], filled.inputs[1], pt.constant(7)]),
            at_inputs(drawn, [*drawn.inputs[:-1], known]),
            at_inputs(fixed, [*fixed.inputs[:-1], 2 * p]),
        )
    ]
    assert shapes == [(2, 7), (4,), (5,)]


def test_shapes_that_are_known_are_not_found_again(monkeypatch):
    p = pt.tensor("p", shape=(3,))
    node = categories(p, size=(5,))
    monkeypatch.setattr(type(node.op), "make_node", None)
    new = at_inputs(node, [*node.inputs[:-1], 2 * node.inputs[-1]])
    assert new.outputs[1].type.shape == (5,)
    assert new.inputs[-1] is not node.inputs[-1]
    with pytest.raises(TypeError, match="not callable"):
        with_inputs(node, new.inputs)


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


def test_graphs_that_differ_in_constants_are_the_same_of_more_inputs():
    """Small numbers stay, and arrays with numbers below zero; an array may be empty."""

    def graph(weights):
        table = pt.constant(weights)
        n_rows, size = weights.shape
        rows = (X[: n_rows * size].reshape((n_rows, size)) * table)[:, :-1]
        chosen = pt.switch(pt.constant([True]), pt.alloc(0.0, 1, size), 2.5).sum()
        return [X], [chosen + rows + pt.constant(np.zeros(0)).sum()]

    of = [np.arange(6.0).reshape(2, 3), np.arange(20.0).reshape(5, 4) + 1]
    made = [with_constants_as_inputs(graph(weights)) for weights in of]
    assert same_function(made[0][0], made[1][0])
    assert not same_function(graph(of[0]), graph(of[1]))
    x = np.random.default_rng(1).random(30)
    (inputs, [output]), _ = made[0]
    for weights, (_, constants) in zip(of, made, strict=True):
        _, [expected] = graph(weights)
        given = dict(zip(inputs, [x, *constants], strict=True))
        np.testing.assert_array_equal(
            output.eval(given, mode="FAST_COMPILE"), expected.eval({X: x}, mode="FAST_COMPILE")
        )
