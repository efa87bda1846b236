"""Small tools for PyTensor graphs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph import Apply, Constant, Variable, graph_inputs
from pytensor.graph.basic import equal_computations
from pytensor.graph.traversal import io_toposort
from pytensor.scalar.basic import ScalarType, get_scalar_type
from pytensor.tensor.basic import constant
from pytensor.tensor.shape import Shape, Shape_i

type Graph = tuple[list[Variable], list[Variable]]
"""Inputs and outputs."""


def with_inputs(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
    """Apply the node to other inputs; return its own outputs if nothing changes."""
    if inputs == node.inputs:
        return node.outputs
    return node.clone_with_new_inputs(inputs, strict=False).outputs


def at_inputs(node: Apply, inputs: Sequence[Variable]) -> Apply:
    """Apply the node to other inputs of the same shapes.

    PyTensor finds out what shapes these give, even of a node whose outputs have known ones.
    """
    known = not any(None in getattr(x.type, "shape", ()) for x in node.outputs)
    same = [x.type for x in inputs] == [x.type for x in node.inputs]
    return node.clone_with_new_inputs(inputs, strict=known and same)


def with_static_shape(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
    """Replace known shapes by constants: they don't depend on values."""
    shape = getattr(inputs[0].type, "shape", (None,)) if inputs else (None,)
    if isinstance(node.op, Shape) and None not in shape:
        return [constant(np.array(shape, dtype=np.int64))]
    if isinstance(node.op, Shape_i) and shape[node.op.i] is not None:
        return [constant(np.array(shape[node.op.i], dtype=np.int64))]
    return node.outputs if inputs == node.inputs else at_inputs(node, inputs).outputs


def rebuild[V: Variable](
    graphs: Sequence[V],
    replacements: Mapping[Variable, Variable] | None = None,
    replace_node: Callable[[Apply, list[Variable]], Sequence[Variable]] = with_inputs,
) -> list[V]:
    """Rebuild graphs in topological order; unchanged parts are kept, not copied.

    Replacements replace variables. ``replace_node`` gets a node and its new inputs, and returns the
    new outputs.
    """
    new: dict[Variable, Variable] = dict(replacements or {})
    for node in io_toposort(list(new), list(graphs)):  # skips ancestors of replaced variables only
        outputs = replace_node(node, [new.get(variable, variable) for variable in node.inputs])
        for old, replacement in zip(node.outputs, outputs, strict=True):
            new.setdefault(old, replacement)
    return [new.get(graph, graph) for graph in graphs]


def same_function(one: Graph, other: Graph) -> bool:
    """Whether two graphs compute the same, each from its own inputs."""
    types, others = ([x.type for each in graph for x in each] for graph in (one, other))
    same = types == others and len(one[0]) == len(other[0])
    return same and equal_computations(one[1], other[1], one[0], other[0])


def with_constants_as_inputs(graph: Graph) -> tuple[Graph, list[Any]]:
    """Have a graph take its constants as further inputs, with axes of any length.

    Single numbers of 1 or less stay, such as the start of a slice, and so do arrays with a number
    below zero, such as a shape with -1.
    """
    inputs, outputs = graph
    new: dict[Variable, Variable] = {}
    values: list[Any] = []
    for x in graph_inputs(outputs):
        data = np.asarray(x.data) if isinstance(x, Constant) and x.data is not None else np.ones(())
        if data.dtype.kind not in "iuf" or data.min(initial=0) < 0 or (not data.ndim and data <= 1):
            continue
        # PyTensor keeps whole numbers in the shortest type that holds them. Here all have one type.
        whole = data.dtype.kind in "iu"
        values.append(np.array(data, "int64" if whole else data.dtype, order="C"))
        shape = [n if whole or n == 1 else None for n in data.shape]
        new[x] = pt.tensor(dtype=values[-1].dtype, shape=shape)
        if isinstance(x.type, ScalarType):
            values[-1], new[x] = values[-1][()], get_scalar_type(values[-1].dtype)()
    return ([*inputs, *new.values()], rebuild(outputs, new)), values


def inline_symbolic_ops[V: Variable](graphs: Sequence[V]) -> list[V]:
    """Replace operations that wrap a graph (einsum, logsumexp, mixtures) by that graph."""

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        if isinstance(node.op, OpFromGraph):
            inner = node.op.fgraph
            return inner.bind(dict(zip(inner.inputs, inputs, strict=True)))
        return with_inputs(node, inputs)

    graphs = list(graphs)
    # An inlined graph may contain further such operations.
    while any(isinstance(node.op, OpFromGraph) for node in io_toposort([], graphs)):
        graphs = rebuild(graphs, replace_node=replace_node)
    return graphs


def dependent_variables(roots: Iterable[Variable], graphs: Sequence[Variable]) -> set[Variable]:
    """Collect the variables between ``roots`` and ``graphs`` that depend on a root."""
    dependent = set(roots)
    for node in io_toposort([], list(graphs)):
        if not dependent.isdisjoint(node.inputs):
            dependent.update(node.outputs)
    return dependent


def frontier(roots: Iterable[Variable], graph: Variable) -> list[Variable]:
    """Return variables that ``graph`` is computed from, beside ``roots``, and that come first.

    They don't depend on a root. Variables that depend on constants only are left out.
    """
    dependent = dependent_variables(roots, [graph])
    inputs = [x for x in graph_inputs([graph]) if not isinstance(x, Constant)]
    varying = dependent_variables(inputs, [graph]) - dependent
    found: dict[Variable, None] = {}
    for node in io_toposort([], [graph]):
        if not dependent.isdisjoint(node.outputs):
            found.update(dict.fromkeys(x for x in node.inputs if x in varying))
    return list(found)
