"""Values in a graph that are known before evaluation."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from pytensor import scalar as ps
from pytensor.compile.mode import Mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph import Constant, Variable, graph_inputs, rewrite_graph
from pytensor.graph.traversal import io_toposort, walk
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.evaluated import Evaluated
from pymc_dapper.backend.internals import constant_fold
from pymc_dapper.graphs import ops
from pymc_dapper.graphs.asked_once import answer
from pymc_dapper.graphs.errors import FAILURES

IN_PYTHON = Mode("py", None)
"""Evaluates a graph of few numbers as it is."""


def known_value(variable: Variable) -> np.ndarray | None:
    """Value of a variable that depends only on constants and static shapes; None for others.

    Also None if the value can't be evaluated.
    """
    leaves = (x for x in walk([variable], _whose_values_count) if x.owner is None)
    if not all(isinstance(x, Constant) for x in leaves):
        return None
    if _is_evaluated_alone(variable):
        try:
            return np.asarray(*Evaluated([], [variable], check_bounds=True)())
        except FAILURES:  # any error of an operation
            return None
    [value] = constant_fold([variable], raise_not_constant=False)
    return None if isinstance(value, Variable) else np.asarray(value)


def _whose_values_count(variable: Variable) -> Sequence[Variable]:
    """Return the inputs whose values, not only shapes, determine a variable's value."""
    node = variable.owner
    if node is None or ops.only_measures(node):
        return ()
    fills = isinstance(getattr(node.op, "scalar_op", None), ps.Second)
    return node.inputs[1:] if fills else node.inputs


def _is_evaluated_alone(variable: Variable) -> bool:
    """Whether a variable can be evaluated by itself: from constants alone, without checks."""
    if not all(isinstance(x, Constant) for x in graph_inputs([variable])):
        return False
    return not any(isinstance(node.op, CheckAndRaise) for node in io_toposort([], [variable]))


def written_shape(variable: TensorVariable) -> TensorVariable:
    """Write a variable's shape without draws, unless it depends on one."""
    rewritten = partial(rewrite_graph, variable.shape, include=("fast_compile",), clone=True)
    return answer(None, ("shape", variable), rewritten)


def known_length(variable: TensorVariable) -> int | None:
    """Return the length of the last axis, as dims and data are; None if draws determine it."""
    if (static := variable.type.shape[-1]) is not None:
        return static
    length = written_shape(variable)[-1]
    sources = (x for x in graph_inputs([length]) if not isinstance(x, Constant))
    if not all(isinstance(x, SharedVariable) and isinstance(x.type, TensorType) for x in sources):
        return None
    return int(length.eval(mode=IN_PYTHON))
