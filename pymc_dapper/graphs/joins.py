"""Sums of columns that are stacked side by side."""

from collections.abc import Sequence

from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.basic import Join, join
from pytensor.tensor.math import Sum

from pymc_dapper.graphs.rebuild import rebuild, with_inputs


def with_sums_before_joins[V: Variable](graph: V) -> V:
    """Sum columns before they are stacked, if a statistic sums the stacked table.

    The compiler then computes a column's entries while it sums them, without storing them. Sums of
    columns that don't change are computed once.
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
