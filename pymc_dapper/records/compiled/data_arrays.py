"""What a sweep takes that depends on data alone, such as released values divided by a scale."""

from collections.abc import Iterable, Sequence

from pytensor.graph import Constant, graph_inputs
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.rebuild import dependent_variables
from pymc_dapper.records.compiled.op import Sweep


def of_data_alone(
    outputs: Sequence[TensorVariable], data: Iterable[TensorVariable]
) -> list[TensorVariable]:
    """List the arrays that sweeps take and that are worked out of data alone."""
    data = {*data}
    others = [x for x in graph_inputs(outputs) if not isinstance(x, Constant) and x not in data]
    alone = dependent_variables(data, outputs) - dependent_variables(others, outputs) - data
    nodes = [node for node in io_toposort([], outputs) if isinstance(node.op, Sweep)]
    return list(dict.fromkeys(x for node in nodes for x in node.inputs if x in alone))
