"""What a sweep takes that depends on data alone, such as released values divided by a scale."""

from collections.abc import Iterable, Sequence
from operator import is_not
from typing import Any

import numpy as np
from pytensor.graph import Constant, graph_inputs
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.rebuild import dependent_variables
from pymc_dapper.records.compiled.op import Sweep
from pymc_dapper.records.reading.model import ModelReading


class DataArrays:
    """Arrays that a sweep takes and that depend on data alone.

    They are worked out when data have changed, not in each sweep. Each becomes one argument of the
    compiled sweep, however many data it is made of.

    Parameters
    ----------
    reading : ModelReading
        The model.
    arrays : sequence of TensorVariable
        The arrays, as graphs of the data.
    """

    def __init__(self, reading: ModelReading, arrays: Sequence[TensorVariable]):
        given, inputs = [*reading.parameters, *reading.data.values()], {*graph_inputs(arrays)}
        self._data = [k for k, x in enumerate(given) if x in inputs]
        data = [given[k] for k in self._data]
        self._work_out = compile_in_python(reading.model, data, arrays)
        self._of: list[np.ndarray] = []
        self._arrays: list[np.ndarray] = []

    def __call__(self, given: Sequence[Any]) -> list[np.ndarray]:
        """Return the arrays, given values of parameters and data."""
        now = [given[k] for k in self._data]
        if len(self._of) != len(now) or any(map(is_not, self._of, now)):
            self._arrays = [np.asarray(x, order="C") for x in self._work_out(*now)]
            self._of = now
        return self._arrays


def of_data_alone(
    outputs: Sequence[TensorVariable], data: Iterable[TensorVariable]
) -> list[TensorVariable]:
    """List the arrays that sweeps take and that are worked out of data alone."""
    data = {*data}
    others = [x for x in graph_inputs(outputs) if not isinstance(x, Constant) and x not in data]
    alone = dependent_variables(data, outputs) - dependent_variables(others, outputs) - data
    nodes = [node for node in io_toposort([], outputs) if isinstance(node.op, Sweep)]
    return list(dict.fromkeys(x for node in nodes for x in node.inputs if x in alone))
