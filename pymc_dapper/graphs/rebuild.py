"""Small tools for PyTensor graphs."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import graph_inputs, io_toposort
from pytensor.tensor.basic import constant
from pytensor.tensor.shape import Shape, Shape_i


def with_inputs(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
    """Apply the node to other inputs; return its own outputs where nothing changes."""
    if inputs == node.inputs:
        return node.outputs
    return node.clone_with_new_inputs(inputs, strict=False).outputs


def with_static_shape(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
    """Put constants in the place of known shapes: a shape doesn't depend on any values."""
    shape = getattr(inputs[0].type, "shape", (None,)) if inputs else (None,)
    if isinstance(node.op, Shape) and None not in shape:
        return [constant(np.array(shape, dtype=np.int64))]
    if isinstance(node.op, Shape_i) and shape[node.op.i] is not None:
        return [constant(np.array(shape[node.op.i], dtype=np.int64))]
    return with_inputs(node, inputs)


def rebuild[V: Variable](
    graphs: Sequence[V],
    replacements: Mapping[Variable, Variable] | None = None,
    replace_node: Callable[[Apply, list[Variable]], Sequence[Variable]] = with_inputs,
) -> list[V]:
    """Rebuild graphs in topological order; what doesn't change is kept, not copied.

    Replacements are put in the place of other variables. Given a node and its inputs in the new
    graph, ``replace_node`` returns what stands for the node's outputs.
    """
    new: dict[Variable, Variable] = dict(replacements or {})
    for node in io_toposort(list(new), list(graphs)):  # not what only replaced ones come from
        outputs = replace_node(node, [new.get(variable, variable) for variable in node.inputs])
        for old, replacement in zip(node.outputs, outputs, strict=True):
            new.setdefault(old, replacement)
    return [new.get(graph, graph) for graph in graphs]


def inline_symbolic_ops[V: Variable](graphs: Sequence[V]) -> list[V]:
    """Replace operations that stand for a graph (einsum, logsumexp, mixtures) by that graph."""

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        if isinstance(node.op, OpFromGraph):
            inner = node.op.fgraph
            return inner.bind(dict(zip(inner.inputs, inputs, strict=True)))
        return with_inputs(node, inputs)

    graphs = list(graphs)
    # An inlined graph may hold such operations in turn.
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
    """Variables that ``graph`` is computed from, beside ``roots``, and that can be computed first.

    That is, those that don't depend on a root; what depends on constants only is left out.
    """
    dependent = dependent_variables(roots, [graph])
    inputs = [x for x in graph_inputs([graph]) if not isinstance(x, Constant)]
    varying = dependent_variables(inputs, [graph]) - dependent
    found: dict[Variable, None] = {}
    for node in io_toposort([], [graph]):
        if not dependent.isdisjoint(node.outputs):
            found.update(dict.fromkeys(x for x in node.inputs if x in varying))
    return list(found)
