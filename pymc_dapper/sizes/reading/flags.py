"""Flags of rows: comparisons that are true, or false, of the first n rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph import Apply, Constant, Variable, explicit_graph_inputs, vectorize_graph
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.basic import ARange, Nonzero
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.entries import performed
from pymc_dapper.backend.evaluated import Evaluated
from pymc_dapper.graphs import ops
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import dependent_variables, rebuild, with_inputs

type Compare = Callable[[np.ndarray, np.ndarray], np.ndarray]

COMPARISONS: dict[type[ps.ScalarOp], tuple[Compare, Compare]] = {
    ps.LT: (np.less, np.greater),
    ps.LE: (np.less_equal, np.greater_equal),
    ps.GT: (np.greater, np.less),
    ps.GE: (np.greater_equal, np.less_equal),
}
"""Each comparison, and the same with its sides swapped."""


@dataclass(frozen=True, eq=False)
class Flag:
    """A comparison of row numbers with an unknown number of records."""

    n_rows: int
    """For how many records there is room."""
    axis: int
    """The rows' axis; all others are of length 1."""
    ndim: int
    """Number of axes."""
    absent: bool
    """Whether it is true for absent rows."""

    def of(self, present: TensorVariable) -> TensorVariable:
        """Write it as a function of which rows are present."""
        flags = ~present if self.absent else present
        return flags.dimshuffle(*("x" if k != self.axis else 0 for k in range(self.ndim)))


def find_flags(graphs: Sequence[Variable], size: TensorVariable) -> dict[Variable, Flag]:
    """Find the variables of graphs that mark the first ``size`` rows.

    Raises
    ------
    ReadingError
        If row numbers are compared with the size, but the comparison doesn't mark the first rows.
    """
    return {
        output: _flag(numbers, bound, size, is_true)
        for output, numbers, bound, is_true in _compared(graphs, size)
    }


def compares_an_entry(graphs: Sequence[Variable], sizes: TensorVariable) -> bool:
    """Whether row numbers are compared with an entry of a vector, or with a function of it."""
    return any(True for _ in _compared(graphs, sizes))


def _compared(
    graphs: Sequence[Variable], size: TensorVariable
) -> Iterator[tuple[Variable, np.ndarray, Variable, Compare]]:
    """Find comparisons of row numbers with a single number that depends on the size only."""
    dependent = dependent_variables([size], graphs)
    for node in io_toposort([], list(graphs)):
        compared = COMPARISONS.get(type(getattr(node.op, "scalar_op", None)), ())
        sides = node.inputs, node.inputs[::-1]
        for compare, (rows, bound) in zip(compared, sides, strict=False):
            if bound not in dependent or rows in dependent or not _is_single(bound, size):
                continue
            numbers = known_value(rows)
            if numbers is None or numbers.size < 2 or max(numbers.shape) < numbers.size:
                continue
            if numbers.ndim == node.outputs[0].type.ndim:
                yield node.outputs[0], numbers, bound, compare


def _is_single(bound: Variable, size: TensorVariable) -> bool:
    """Whether a variable is one number, and depends on the size only."""
    is_one = all(getattr(bound.type, "broadcastable", [False]))
    return is_one and set(explicit_graph_inputs([bound])) <= {size}


def _flag(numbers: np.ndarray, bound: Variable, size: TensorVariable, is_true: Compare) -> Flag:
    n_rows = numbers.size
    sizes = pt.vector("sizes", dtype=size.dtype)
    at = vectorize_graph(bound, {size: sizes})
    evaluated = Evaluated([sizes], [at], check_bounds=True)
    bounds = np.ravel(evaluated(np.arange(n_rows + 1, dtype=size.dtype)))
    row_numbers = np.ravel(numbers)
    # The bound never falls, so a row that is present at one size is present at all larger ones.
    rises = bool(np.all(np.diff(bounds) >= 0))
    before, after = is_true(row_numbers, bounds[:-1]), is_true(row_numbers, bounds[1:])
    if rises and (np.all(after & ~before) or np.all(before & ~after)):
        axis = int(np.argmax(numbers.shape))
        return Flag(n_rows, axis, numbers.ndim, absent=bool(before.all()))
    n = min(3, n_rows)
    found = np.count_nonzero(is_true(row_numbers, bounds[n]))
    raise ReadingError(
        f"'{size.name}' is compared with row numbers, but the comparison doesn't pick the first "
        f"'{size.name}' rows: at {size.name} = {n}, the comparison is true of {found} of {n_rows} "
        "rows. Let n be the number of rows itself: row k is there if k < n, as "
        f"pmd.present(n, {n_rows}) says"
    )


def at_flags(
    graphs: Sequence[TensorVariable], flags: TensorVariable, value: bool
) -> list[TensorVariable]:
    """Write graphs for the case that all flags are set, or that none is.

    Parts without effect are left out: the other branch of a ``switch``, and factors of zero.
    """
    [length] = flags.type.shape
    constant = pt.constant(np.full(length, value))
    known: dict[Variable, np.ndarray] = {constant: constant.data}

    def value_of(x: Variable) -> np.ndarray | None:
        return x.data if isinstance(x, Constant) else known.get(x)

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        values = [value_of(x) for x in inputs]
        if len(node.outputs) > 1 or not inputs:
            return with_inputs(node, inputs)
        if all(x is not None for x in values):
            new = with_inputs(node, inputs)
            known[new[0]] = performed(new[0].owner, values)
            return new
        if any(x in known for x in inputs):
            settled = _settled(node, inputs, values)
            if settled is not None:
                if isinstance(settled, Constant):
                    known[settled] = settled.data
                return [settled]
        return with_inputs(node, inputs)

    return rebuild(graphs, {flags: constant}, replace_node)


def _settled(
    node: Apply, inputs: Sequence[Variable], values: Sequence[np.ndarray | None]
) -> TensorVariable | None:
    """Return an operation's result if some known inputs determine it."""
    [output] = node.outputs
    shape = getattr(output.type, "shape", (None,))
    if None in shape:
        return None

    def handed_on(x: Variable) -> TensorVariable:
        x = x.astype(output.dtype)
        return x if x.type.shape == shape else pt.broadcast_to(x, shape)

    op = node.op.scalar_op if isinstance(node.op, Elemwise) else None
    if isinstance(op, ps.Switch) and values[0] is not None:
        condition = values[0]
        if condition.all() or not condition.any():
            return handed_on(inputs[1 if condition.all() else 2])
    product = isinstance(op, ps.Mul | ps.AND) or ops.action_of(node.op, node) == ops.Multiplies()
    if product and any(x is not None and not x.any() for x in values):
        return pt.constant(np.zeros(tuple(map(int, shape)), dtype=output.dtype))
    if isinstance(op, ps.Mul):
        pairs = zip(inputs, values, strict=True)
        others = [x for x, value in pairs if value is None or np.any(value != 1)]
        if len(others) < len(inputs):
            return handed_on(pt.mul(*others) if len(others) > 1 else others[0])
    return None


def is_zero(x: TensorVariable) -> bool:
    """Whether all entries are known to be zero."""
    value = known_value(x)
    return value is not None and not value.any()


def check_lengths(graphs: Sequence[Variable], size: TensorVariable) -> None:
    """Refuse arrays whose length depends on the number of records."""
    dependent = dependent_variables([size], graphs)
    for node in io_toposort([], list(graphs)):
        if _has_length_of(node, dependent):
            raise ReadingError(
                f"the length of an array depends on '{size.name}', like that of a slice. Write "
                f"pt.switch(pmd.present({size.name}, size), x, 0).sum() instead of "
                f"x[:{size.name}].sum()"
            )


def _has_length_of(node: Apply, dependent: set[Variable]) -> bool:
    """Whether the number of entries depends on the number of records."""
    if isinstance(node.op, ARange | Nonzero):
        return not dependent.isdisjoint(node.inputs)
    if isinstance(node.op, AdvancedSubtensor):
        return any(x in dependent and x.type.dtype == "bool" for x in node.inputs[1:])
    if not isinstance(node.op, Subtensor) or dependent.isdisjoint(node.inputs[1:]):
        return False
    return any(isinstance(index, slice) for index in node.op.idx_list)
