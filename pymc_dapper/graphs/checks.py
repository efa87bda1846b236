"""PyMC's checks of distribution parameters, made record by record.

PyMC's log-density has a check that *all* its parameters are valid; otherwise it is -inf as a whole.
If parameters depend on the records, "all" couples the records. A separate check for each record
gives the same product of densities.
"""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph import Apply, Variable, ancestors
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.basic import MakeVector, ScalarFromTensor
from pytensor.tensor.math import All
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import CheckParameterValue
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.rebuild import (
    dependent_variables,
    inline_symbolic_ops,
    rebuild,
    with_inputs,
)
from pymc_dapper.graphs.view import view_of


def localise_checks(
    graphs: Sequence[TensorVariable], records: Sequence[TensorVariable]
) -> list[TensorVariable]:
    """Turn checks that depend on records into -inf where the condition fails."""
    dependent = dependent_variables(records, graphs)

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        if not _checks(node, dependent):
            return with_inputs(node, inputs)
        value, *conditions = inputs
        others = []
        for whole, before in zip(conditions, node.inputs[1:], strict=True):
            for condition, old in zip(_conditions(whole), _conditions(before), strict=True):
                if old in dependent:
                    value = pt.switch(_per_value(condition, value), value, -np.inf)
                else:
                    others.append(pt.as_tensor(condition).all())
        # One condition, as in PyMC: PyTensor can't evaluate many separate ones.
        return [node.op(value, pt.stack(others).all()) if others else value]

    return rebuild(graphs, replace_node=replace_node)


def checks_of_records(
    graph: TensorVariable, records: Sequence[TensorVariable]
) -> list[TensorVariable]:
    """Return the conditions on each value, of checks that depend on records."""
    dependent = dependent_variables(records, [graph])
    return [
        condition
        for node in io_toposort([], [graph])
        if _checks(node, dependent)
        for whole in node.inputs[1:]
        for condition in (_per_value(x, node.inputs[0]) for x in _conditions(whole))
        if not set(records).isdisjoint(ancestors([condition]))
    ]


def valid_parameters(graphs: Sequence[TensorVariable]) -> TensorVariable:
    """Return whether all parameter checks in some graphs hold: a scalar of bool.

    Use it if a replacement of a log-density would lose its checks.
    """
    conditions = [
        pt.as_tensor(condition).all()
        for node in io_toposort([], inline_symbolic_ops(graphs))
        if isinstance(node.op, CheckParameterValue)
        for whole in node.inputs[1:]
        for condition in _conditions(whole)
    ]
    return pt.all(pt.stack(conditions)) if conditions else pt.constant(True, dtype="bool")


def impossible_if_invalid(log_density: TensorVariable) -> TensorVariable:
    """Make a log-density -inf where a check of an inverse distribution function fails.

    PyMC raises then. A proposal of parameters so far away is to be rejected.
    """
    conditions: list[TensorVariable] = []

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        if isinstance(node.op, CheckParameterValue) and not node.op.can_be_replaced_by_ninf:
            conditions.extend(pt.as_tensor(x).all() for x in inputs[1:])
            return inputs[:1]
        return with_inputs(node, inputs)

    [unchecked] = rebuild([log_density], replace_node=replace_node)
    return pt.switch(pt.stack(conditions).all(), unchecked, -np.inf) if conditions else unchecked


def check_parameters(model: Model) -> None:
    """Refuse a model in which known parameters of a distribution leave it no value.

    Some truncated laws of whole numbers, such as geometric ones, are refused, too: PyMC takes their
    draws for real numbers between bounds, and never reaches a bound. Potentials and distributions
    are refused if they depend on random draws that are no variables of the model.

    Raises
    ------
    ReadingError
        It names the variable, and the check that fails in PyMC's words, such as "sigma > 0".
    """
    view = view_of(model)
    graphs = inline_symbolic_ops(view.log_densities(model.basic_RVs))
    beneath = {x.name: ancestors([x], blockers=model.basic_RVs) for x in model.potentials}
    beneath |= {rv.name: ancestors([x]) for rv, x in zip(model.basic_RVs, graphs, strict=True)}
    for name, variables in beneath.items():
        if any(isinstance(x.type, RandomType) for x in variables):
            raise ReadingError(
                f"'{name}' depends on a random draw that is no variable of the model. Write "
                "pm.Normal('x', ...) for pm.Normal.dist(...). pm.Minibatch can't be used: the "
                "density is of all data"
            )
    free = dependent_variables(view.values.values(), graphs)
    for rv, graph in zip(model.basic_RVs, graphs, strict=True):
        base = getattr(rv.owner.op, "base_rv_op", None)
        if model.rvs_to_transforms.get(rv) and str(getattr(base, "dtype", "")).startswith("int"):
            raise ReadingError(
                f"'{rv.name}' takes whole numbers, but PyMC moves it as a real number. If it is a "
                "record, write pm.Truncated(..., default_transform=None); if not, take another law"
            )
        for node in io_toposort([], [graph] if model.check_bounds else []):
            if isinstance(node.op, CheckParameterValue):
                known = [x for x in node.inputs[1:] if x not in free]
                if not all(compile_in_python(model, [], known)()):
                    raise ReadingError(f"'{rv.name}' has impossible parameters: not {node.op.msg}")


def _checks(node: Apply, dependent: set[Variable]) -> bool:
    """Whether a node is a check that depends on records."""
    return isinstance(node.op, CheckParameterValue) and not dependent.isdisjoint(node.inputs[1:])


def _conditions(condition: Variable) -> list[TensorVariable]:
    """Split "all of these conditions" into its conditions."""
    node = condition.owner
    if node is not None and isinstance(node.op, MakeVector):
        return [each for part in node.inputs for each in _conditions(part)]
    if node is not None and isinstance(node.op, ScalarFromTensor | All):
        return _conditions(node.inputs[0])
    return [condition]


def _per_value(condition: TensorVariable, value: TensorVariable) -> TensorVariable:
    """Reduce a condition on vectors to the batch; multivariate densities have such parameters."""
    excess = condition.type.ndim - value.type.ndim
    return condition.all(axis=tuple(range(-excess, 0))) if excess > 0 else condition
