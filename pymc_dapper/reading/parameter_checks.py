"""PyMC's checks of distribution parameters, made record by record.

A log-density in PyMC's graphs is wrapped in a check that *all* its parameters are valid, else it is
-inf as a whole. Where parameters depend on the records, "all" ties the records together. The same
check made for each record apart gives the same product of densities.
"""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.utils import CheckParameterValue
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.basic import MakeVector, ScalarFromTensor
from pytensor.tensor.math import All
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.reading.graphs import dependent_variables, rebuild, with_inputs


def localise_checks(
    graphs: Sequence[TensorVariable], records: Sequence[TensorVariable]
) -> list[TensorVariable]:
    """Turn checks that depend on records into -inf where the condition fails."""
    dependent = dependent_variables(records, graphs)

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        checks_records = isinstance(node.op, CheckParameterValue) and not dependent.isdisjoint(
            node.inputs[1:]
        )
        if not checks_records:
            return with_inputs(node, inputs)
        value, *conditions = inputs
        for condition in (c for whole in conditions for c in _conditions(whole)):
            value = pt.switch(_per_value(condition, value), value, -np.inf)
        return [value]

    return rebuild(graphs, replace_node=replace_node)


def valid_parameters(graphs: Sequence[TensorVariable]) -> TensorVariable:
    """Say whether all checks of parameters that graphs hold are passed: a scalar of bool.

    For what takes the place of a log-density and would lose its checks.
    """
    conditions = [
        condition.all()
        for node in io_toposort([], list(graphs))
        if isinstance(node.op, CheckParameterValue)
        for whole in node.inputs[1:]
        for condition in _conditions(whole)
    ]
    return pt.all(pt.stack(conditions)) if conditions else pt.constant(True)


def _conditions(condition: Variable) -> list[TensorVariable]:
    """Take "all of these conditions" apart."""
    node = condition.owner
    if node is not None and isinstance(node.op, MakeVector):
        return [each for part in node.inputs for each in _conditions(part)]
    if node is not None and isinstance(node.op, ScalarFromTensor | All):
        return _conditions(node.inputs[0])
    return [condition]


def _per_value(condition: TensorVariable, value: TensorVariable) -> TensorVariable:
    """Reduce a condition on vectors, the parameters of multivariate densities, to the batch."""
    excess = condition.type.ndim - value.type.ndim
    return condition.all(axis=tuple(range(-excess, 0))) if excess > 0 else condition
