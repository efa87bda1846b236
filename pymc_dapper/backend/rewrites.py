"""Graphs that are compiled into an operation of ours."""

from collections.abc import Sequence

from pytensor.compile.aliasing import add_supervisor_to_fgraph
from pytensor.compile.io import In
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph
from pytensor.tensor.basic import Join, join
from pytensor.tensor.math import Sum

from pymc_dapper.graphs.rebuild import rebuild, with_inputs


def rewritten(
    inputs: Sequence[Variable], outputs: Sequence[Variable], mode: Mode
) -> FrozenFunctionGraph:
    """Optimise a graph for the backend; its inputs stay untouched when it is evaluated."""
    graph = FunctionGraph(list(inputs), list(outputs), clone=True)
    specs = [In(x, borrow=True, mutable=False) for x in graph.inputs]
    add_supervisor_to_fgraph(graph, specs, accept_inplace=True)
    mode.optimizer.rewrite(graph)
    return graph.freeze()


def with_sums_before_joins[V: Variable](graph: V) -> V:
    """Sum columns before they are put side by side, where a statistic sums a table of them.

    The compiler then makes each column's entries while it sums them, and writes none of them out;
    sums of columns that don't change are computed once.
    """

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        table = inputs[0].owner if isinstance(node.op, Sum) else None
        if table is None or not isinstance(table.op, Join):
            return with_inputs(node, inputs)
        n_axes = inputs[0].type.ndim
        axis = table.op.axis % n_axes
        across = range(n_axes) if node.op.axis is None else node.op.axis
        if axis in across:
            return with_inputs(node, inputs)
        [total] = node.outputs
        left = axis - sum(k < axis for k in across)
        return [join(left, *(node.op(part) for part in table.inputs)).astype(total.dtype)]

    [graph] = rebuild([graph], replace_node=replace_node)
    return graph
