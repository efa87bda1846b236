"""Values in a graph that are known before evaluation."""

from math import prod

import numpy as np
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import graph_inputs, io_toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.evaluated import Evaluated, can_be_evaluated
from pymc_dapper.backend.internals import constant_fold
from pymc_dapper.graphs.errors import FAILURES


def known_value(variable: Variable) -> np.ndarray | None:
    """Value of a variable that depends only on constants and static shapes; None for others.

    Also None if the value can't be evaluated.
    """
    if _is_of_constants(variable):
        try:
            return np.asarray(*Evaluated([], [variable], check_bounds=True)())
        except FAILURES:  # any error of an operation
            return None
    if variable.owner is None:
        return None
    [value] = constant_fold([variable], raise_not_constant=False)
    return None if isinstance(value, Variable) else np.asarray(value)


def _is_of_constants(variable: Variable) -> bool:
    """Whether a variable is computed from constants alone, without checks on the way."""
    if not all(isinstance(x, Constant) for x in graph_inputs([variable])):
        return False
    checks = (isinstance(node.op, CheckAndRaise) for node in io_toposort([], [variable]))
    return not any(checks) and can_be_evaluated([], [variable])


def known_size(variable: TensorVariable) -> int | None:
    """Return the number of entries if the shape is static."""
    shape = variable.type.shape
    return None if None in shape else prod(shape)
