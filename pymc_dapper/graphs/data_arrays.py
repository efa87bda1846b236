"""Arrays that depend on data alone: worked out in Python, and handed to what is compiled."""

from collections.abc import Iterable, Sequence
from operator import is_not
from typing import Any

import numpy as np
from pytensor.graph import Constant, Op, Variable, graph_inputs
from pytensor.graph.traversal import io_toposort

from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.rebuild import dependent_variables


class DataArrays:
    """Arrays that a sweep takes and that depend on data alone.

    They are worked out when data have changed, not in each sweep. Each becomes one argument of the
    compiled sweep, however many data it is made of.

    Parameters
    ----------
    reading : Reading
        The model, its parameters and data.
    arrays : sequence of Variable
        The arrays, as graphs of the data.
    """

    def __init__(self, reading: Any, arrays: Sequence[Variable]):
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
    outputs: Sequence[Variable], data: Iterable[Variable], sweeps: type[Op]
) -> list[Variable]:
    """List the arrays that such operations take and that are worked out of data alone."""
    data = {*data}
    others = [x for x in graph_inputs(outputs) if not isinstance(x, Constant) and x not in data]
    alone = dependent_variables(data, outputs) - dependent_variables(others, outputs) - data
    nodes = [node for node in io_toposort([], outputs) if isinstance(node.op, sweeps)]
    return list(dict.fromkeys(x for node in nodes for x in node.inputs if x in alone))
