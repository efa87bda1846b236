"""Evaluate graphs of a reading in Python, at states of the records, with careful sums."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from pymc import Model
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import OPT_MINIMUM, Mode
from pytensor.graph import (
    Apply,
    Constant,
    FunctionGraph,
    Variable,
    explicit_graph_inputs,
    graph_inputs,
)
from pytensor.graph.traversal import io_toposort
from pytensor.scan.op import Scan
from pytensor.tensor.math import Sum, add
from pytensor.tensor.type import float_dtypes
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.evaluated import Evaluated
from pymc_dapper.graphs.rebuild import (
    dependent_variables,
    inline_symbolic_ops,
    rebuild,
    with_inputs,
)

type Point = Mapping[str, np.ndarray]
"""Values by the names of their variables."""

RUN = 128


def sum_of_rows(rows: np.ndarray) -> np.ndarray:
    """Sum over the first axis: first over runs of rows, then over the runs' sums.

    NumPy does this along the last axis only.
    """
    while len(rows) > RUN:
        rows = np.add.reduceat(rows, np.arange(0, len(rows), RUN), axis=0)
    return rows.sum(axis=0)


class CarefulSum(Sum):
    """A sum that is evaluated in Python, by :func:`sum_of_rows`."""

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], outputs: Any) -> None:
        """Sum over the axes."""
        [x] = inputs
        axes = tuple(range(x.ndim)) if self.axis is None else self.axis
        rows = x.transpose((*axes, *(k for k in range(x.ndim) if k not in axes)))
        rows = rows.reshape((prod(rows.shape[: len(axes)]), *rows.shape[len(axes) :]))
        total = sum_of_rows(rows.astype(self.acc_dtype or rows.dtype, copy=False))
        outputs[0][0] = np.asarray(total, dtype=node.outputs[0].dtype)


def with_careful_sums[V: Variable](graph: V) -> V:
    """Evaluate the sums of a graph by :class:`CarefulSum`."""

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        if type(node.op) is not Sum:
            return with_inputs(node, inputs)
        op = node.op
        return [CarefulSum(axis=op.axis, dtype=op.dtype, acc_dtype=op.acc_dtype)(*inputs)]

    [careful] = rebuild([graph], replace_node=replace_node)
    return careful


AS_WRITTEN = Mode("vm", OPT_MINIMUM.including("canonicalize_db"))
"""Rewrites nothing but, once it's told how, what is done about invalid parameters in loops."""

# Sums over records are in another order than the model's; rounding is far below this.
TOLERANCE = {"float64": 1e-8, "float32": 1e-5}


def compile_in_python(
    model: Model, inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> Callable[..., list[np.ndarray]]:
    """Make a function of a graph without compiling it, for few calls.

    As in PyMC's functions, a log-density with invalid parameters is minus infinity; with
    ``check_bounds=False`` it isn't checked. Stand-ins for shared data that aren't inputs have the
    data's present value.
    """
    kinds = {type(node.op) for node in io_toposort(list(inputs), outputs)}
    if any(issubclass(kind, OpFromGraph) for kind in kinds):
        outputs = inline_symbolic_ops(outputs)
        kinds = {type(node.op) for node in io_toposort(list(inputs), outputs)}
    if any(issubclass(kind, Scan) for kind in kinds):
        roots = {x for x in graph_inputs(outputs, inputs) if not isinstance(x, Constant)}
        graph = FunctionGraph([*inputs, *(roots - {*inputs})], outputs)
        done = "check_parameter_to_ninf_switch" if model.check_bounds else "remove_check_parameter"
        AS_WRITTEN.including(f"local_{done}").optimizer.rewrite(graph)
        inputs, outputs = graph.inputs[: len(inputs)], graph.outputs
    return Evaluated(inputs, outputs, check_bounds=model.check_bounds)


def at_point(model: Model, graphs: Sequence[Variable]) -> Callable[..., list[np.ndarray]]:
    """Make a function of a point, evaluated in Python: graphs of the model, or of its view.

    It takes values by the names of their variables, and, as ``besides``, by the variables.
    """
    inputs = [x for x in explicit_graph_inputs(graphs) if not hasattr(x.tag, "stands_for")]
    function = compile_in_python(model, inputs, graphs)

    def evaluate(
        point: Point, besides: Mapping[Variable, np.ndarray] | None = None
    ) -> list[np.ndarray]:
        given = besides or {}
        values = (given[x] if x in given else point[x.name] for x in inputs)
        return function(*(_typed(x, y) for x, y in zip(inputs, values, strict=True)))

    return evaluate


def _typed(x: Variable, value: Any) -> np.ndarray:
    """Take a value as its variable has it, but don't cut it to whole numbers."""
    typed = np.asarray(value).astype(x.dtype)
    if x.dtype not in float_dtypes and not np.array_equal(typed, value):
        raise TypeError(f"'{x.name}' holds whole numbers, not {value}")
    return typed


def log_density_at(model: Model, graphs: Sequence[TensorVariable]) -> Callable[..., float]:
    """Make a function of a point, as :func:`at_point` does: log-densities, all added up."""
    evaluate = at_point(model, [add(0.0, *(x.sum() for x in graphs))])
    return lambda point, besides=None: float(*evaluate(point, besides))


def choose_rows(
    which: np.ndarray, yes: Sequence[np.ndarray], no: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Combine two states: the rows of chosen records from one, all other rows from the other."""
    pairs = zip(yes, no, strict=True)
    return [np.where(which.reshape((-1,) + (1,) * (a.ndim - 1)), a, b) for a, b in pairs]


def rounding(records: Sequence[Variable], graphs: Sequence[Variable]) -> float:
    """Return the expected relative rounding error: that of the least precise number computed."""
    computed = dependent_variables(records, graphs)
    single = any(getattr(x.type, "dtype", None) in ("float16", "float32") for x in computed)
    return TOLERANCE["float32" if single else "float64"]


def agree(computed: Any, expected: Any, allowed: float, size: Any = None) -> np.ndarray:
    """Compare numbers up to a share of their size; all infinite or nan ones are equal.

    ``size`` is that of the numbers that they were computed from; without it, of those expected.
    """
    with np.errstate(invalid="ignore"):
        off = np.abs(np.subtract(computed, expected))
    near = np.isfinite(off) & (off <= allowed * (1 + (np.abs(expected) if size is None else size)))
    return np.where(np.isfinite(expected), near, ~np.isfinite(computed))


@dataclass(frozen=True)
class Checked:
    """A point at which a reading was checked, with the log-density there."""

    point: Point
    log_density: Any
    """One number, or several."""
    tolerance: float
    """The relative rounding error to expect."""
