"""Graphs evaluated in Python, operation by operation, with nothing compiled or rewritten.

For graphs that are evaluated a few times: making PyTensor's functions takes four times as long.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from functools import partial, reduce
from typing import Any

import numpy as np
import pytensor.scalar as ps
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph import Apply, Constant, Op, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.elemwise import CAReduce, Elemwise

from pymc_dapper.backend.entries import LookUp
from pymc_dapper.backend.internals import CheckParameterValue

NUMPY_OPERANDS = 32
"""Largest number of inputs and outputs of a NumPy function; PyTensor refuses others."""
IN_TURN: dict[type[ps.ScalarOp], np.ufunc] = {
    ps.Add: np.add,
    ps.Mul: np.multiply,
    ps.AND: np.bitwise_and,
    ps.OR: np.bitwise_or,
    ps.XOR: np.bitwise_xor,
}
"""NumPy's functions of two operands, for operations with any number of operands."""

type Cell = list[Any]
"""Stores the value of a variable as long as it is needed."""
type Evaluation = Callable[[list[Any], list[Cell]], Any]
"""Given the values of an operation's inputs, puts those of its outputs into cells."""


class Evaluated:
    """A function of a graph, called with values of its inputs.

    It returns a list of the outputs' values, which belong to the caller. Shared variables, and
    stand-ins (``tag.stands_for``), are read at each call. A log-density with invalid parameters is
    minus infinity; without ``check_bounds``, parameters aren't checked. If that is None, and in
    graphs of operations, invalid parameters are an error.

    Raises
    ------
    ValueError
        If the outputs depend on a variable that isn't among the inputs.
    """

    def __init__(
        self, inputs: Iterable[Variable], outputs: Sequence[Variable], *, check_bounds: bool | None
    ):
        self._inputs, self._results, self._check_bounds = list(inputs), [*outputs], check_bounds
        nodes = list(io_toposort(self._inputs, self._results))
        cells: dict[Variable, Cell] = {x: [None] for x in self._inputs}
        computed = {x: [None] for node in nodes for x in node.outputs if x not in cells}
        cells |= computed
        self._shared: list[tuple[SharedVariable, Cell]] = []
        for x in (*(x for node in nodes for x in node.inputs), *outputs):
            if x not in cells:
                cells[x] = self._known(x)
        self._outputs = [cells[x] for x in outputs]
        self._given = [cells[x] for x in self._inputs]
        self._kept = [cells[x] for x in cells if x not in computed]
        self._computed = list(computed.values())

        needed = {*outputs}
        self._steps: list[tuple[Evaluation, list[Cell], list[Cell], list[Cell]]] = []
        for node in reversed(nodes):
            last = [x for x in {*node.inputs} if x in computed and x not in needed]
            needed |= {*last}
            inputs_of, outputs_of, done = (
                [cells[x] for x in each] for each in (node.inputs, node.outputs, last)
            )
            evaluate = _evaluation(node, inputs_of, outputs_of, check_bounds)
            self._steps.append((evaluate, inputs_of, outputs_of, done))
        self._steps.reverse()

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the graph: how operations are evaluated is found again."""
        make = partial(Evaluated, check_bounds=self._check_bounds)
        return make, (self._inputs, self._results)

    def _known(self, x: Variable) -> Cell:
        if isinstance(x, Constant):
            return [x.data]
        shared = getattr(x.tag, "stands_for", x)
        if not isinstance(shared, SharedVariable):
            raise ValueError(f"the graph depends on {x}, which isn't given")
        cell: Cell = [None]
        self._shared.append((shared, cell))
        return cell

    def __call__(self, *values: Any) -> list[Any]:
        """Evaluate the outputs."""
        for x, cell, value in zip(self._inputs, self._given, values, strict=True):
            cell[0] = x.type.filter(value)
        for shared, cell in self._shared:
            cell[0] = shared.get_value(borrow=True)
        try:
            with np.errstate(all="ignore"):
                for evaluate, inputs, outputs, done in self._steps:
                    evaluate([cell[0] for cell in inputs], outputs)
                    for cell in done:
                        cell[0] = None
            return list(self._own())
        finally:
            for cell in (*self._given, *self._computed):
                cell[0] = None

    def _own(self) -> Iterator[Any]:
        """Copy outputs that share memory with each other, or with arrays of somebody else."""
        shared = {id(cell[0]) for cell in self._kept}
        for cell in self._outputs:
            value = cell[0]
            if isinstance(value, np.ndarray):
                is_own = value.base is None and id(value) not in shared
                shared.add(id(value))
                yield value if is_own else value.copy()
            else:
                yield value if isinstance(value, np.generic) else deepcopy(value)


def _evaluation(
    node: Apply, inputs: list[Cell], outputs: list[Cell], check_bounds: bool | None
) -> Evaluation:
    op = node.op
    if isinstance(op, Elemwise):
        if isinstance(op.scalar_op, ps.Clip):
            return partial(_clamped, node.outputs[0].type.dtype)
        if isinstance(op.scalar_op, LookUp):
            return partial(_looked_up, op.scalar_op)
        if isinstance(op.scalar_op, ps.Second):
            return partial(_filled, node)
        if node.nin + 1 > NUMPY_OPERANDS and type(op.scalar_op) in IN_TURN:
            return partial(_in_turn, node)
    elif isinstance(op, CheckParameterValue) and (
        check_bounds is False or (check_bounds and op.can_be_replaced_by_ninf)
    ):
        return partial(_checked, node.outputs[0].type.dtype, check_bounds)
    elif isinstance(op, CAReduce) and not node.inputs[0].type.ndim:
        # Of a number, as in the density of pm.CAR: compiled code leaves it as it is.
        return partial(_taken, node.outputs[0].type.dtype)
    return _by_itself(node, inputs, outputs)


def _by_itself(node: Apply, inputs: list[Cell], outputs: list[Cell]) -> Evaluation:
    """Evaluate an operation as PyTensor does in Python, with a graph that it may have."""
    # Operations leave notes with a node, which are not to stay with the model.
    own, op = Apply(node.op, node.inputs, [x.type.make_variable() for x in node.outputs]), node.op
    calls_perform = type(op).make_thunk in (Op.make_thunk, Elemwise.make_thunk)
    if calls_perform and not op.destroy_map:
        op.prepare_node(own, None, None, "py")
        return partial(op.perform, own)
    overwritten = {node.inputs[k] for places in op.destroy_map.values() for k in places}
    pairs = zip(node.inputs, inputs, strict=True)
    storage: dict[Variable, Cell] = {x: [None] if x in overwritten else y for x, y in pairs}
    storage |= zip(own.outputs, outputs, strict=True)
    evaluate = op.make_thunk(own, storage, {x: [True] for x in storage}, [], impl="py")

    def evaluation(values: list[Any], _: list[Cell]) -> None:
        for x in overwritten:  # others may need it; a generator moves on
            value = values[node.inputs.index(x)]
            storage[x][0] = value.copy() if isinstance(value, np.ndarray) else value
        evaluate()

    return evaluation


def _filled(node: Apply, inputs: list[Any], outputs: list[Cell]) -> None:
    """Fill an array with a number; PyTensor would call Python for each entry."""
    node.op._check_runtime_broadcast(node, inputs)
    x, fill = inputs
    outputs[0][0] = np.full(np.broadcast_shapes(np.shape(x), np.shape(fill)), fill)


def _taken(dtype: str, inputs: list[Any], outputs: list[Cell]) -> None:
    """Take a number."""
    outputs[0][0] = np.array(inputs[0], dtype=dtype)


def _in_turn(node: Apply, inputs: list[Any], outputs: list[Cell]) -> None:
    """Add many arrays, or multiply them, one after the other: in the type of the result, as C."""
    dtype = np.dtype(node.outputs[0].type.dtype)
    node.op._check_runtime_broadcast(node, inputs)
    operands = (np.asarray(x).astype(dtype, copy=False) for x in inputs)
    value = reduce(IN_TURN[type(node.op.scalar_op)], operands)
    outputs[0][0] = np.asarray(value)


def _clamped(dtype: str, inputs: list[Any], outputs: list[Cell]) -> None:
    """Clamp all entries at once; PyTensor would call Python for each."""
    x, lower, upper = inputs
    clamped = np.where(x < lower, lower, np.where(x > upper, upper, x))
    outputs[0][0] = np.asarray(clamped, dtype=dtype)


def _looked_up(op: LookUp, inputs: list[Any], outputs: list[Cell]) -> None:
    """Look all entries up at once."""
    outputs[0][0] = np.asarray(op.at(*inputs))


def _checked(dtype: str, check_bounds: bool, inputs: list[Any], outputs: list[Cell]) -> None:
    value, *conditions = inputs
    if check_bounds and not all(map(np.all, conditions)):
        value = np.full(np.shape(value), -np.inf).astype(dtype)
    outputs[0][0] = value
