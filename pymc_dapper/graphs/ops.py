"""What operations do to the entries of arrays: the one table that all readers use.

A reader walks through a graph to find how records, counts or a parameter enter a log-density. How
it interprets an operation is up to the reader; the operation's effect on entries is defined here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from math import prod
from typing import Any

import numpy as np
import pytensor.scalar as ps
from pytensor.compile.ops import DeepCopyOp, ViewOp
from pytensor.graph import Apply, Op, Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.sparse import math as sparse
from pytensor.tensor import basic, extra_ops, math, subtensor
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.sort import ArgSortOp, SortOp
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.entries import EntryOf, performed


class Action:
    """An operation's effect on the entries of its inputs."""


@dataclass(frozen=True)
class Maps(Action):
    """Makes each entry from the entries in the same place of inputs, broadcast to each other.

    Attributes
    ----------
    inputs : tuple of int, optional
        The inputs that are used entry by entry; others are used as a whole.
    """

    inputs: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Keeps(Action):
    """Returns its first input; the other inputs are checks."""


@dataclass(frozen=True)
class Moves(Action):
    """Moves, repeats or drops entries, whatever their values.

    Attributes
    ----------
    inputs : tuple of int, default (0,)
        The inputs that entries are taken from; the other inputs are indices or shapes.
    all : bool, default False
        Whether no entry is dropped.
    """

    inputs: tuple[int, ...] = (0,)
    all: bool = False


@dataclass(frozen=True)
class Increments(Action):
    """Adds entries of its second input to some of its first; other inputs are indices."""


@dataclass(frozen=True)
class Multiplies(Action):
    """Multiplies two matrices."""


@dataclass(frozen=True)
class AlongAxes(Action):
    """Combines all entries along axes of its inputs; places on other axes stay separate.

    Attributes
    ----------
    axes : tuple of int
        The axes.
    dropped : bool, default False
        Whether the output lacks these axes.
    """

    axes: tuple[int, ...]
    dropped: bool = False


@dataclass(frozen=True)
class Accumulates(AlongAxes):
    """Adds up the entries along an axis one after the other."""


@dataclass(frozen=True)
class Reduces(AlongAxes):
    """Combines all entries along axes into one, by an operation on two at a time.

    Attributes
    ----------
    by : ScalarOp
        The operation.
    """

    dropped: bool = True
    by: ps.ScalarOp = ps.add


@dataclass(frozen=True)
class Measures(Action):
    """Uses only its input's shape."""


@singledispatch
def action_of(op: Op, node: Apply) -> Action | None:
    """Return what an operation does to the entries of its inputs.

    Dispatched on the type of ``op``. To teach all samplers an operation of your own, register a
    function for it: ``@action_of.register(MyOp)``.

    Parameters
    ----------
    op : Op
        The operation.
    node : Apply
        Its application; ``node.inputs`` are the variables it acts on.

    Returns
    -------
    Action or None
        ``Maps``, ``Moves`` or another action of `pymc_dapper.reading`; None for an unknown
        operation.
    """
    return None


TABLE: dict[Action, tuple[type[Op], ...]] = {
    Keeps(): (
        *(CheckAndRaise, DeepCopyOp, SpecifyShape, ViewOp),
        *(basic.ScalarFromTensor, basic.TensorFromScalar),
    ),
    Maps(): (Elemwise,),
    Maps((1,)): (extra_ops.SearchsortedOp,),
    Measures(): (Shape, Shape_i),
    Moves(): (
        *(basic.ExtractDiag, extra_ops.Repeat),
        *(subtensor.AdvancedSubtensor, subtensor.Subtensor),
    ),
    Moves(all=True): (basic.Alloc, DimShuffle, JoinDims, Reshape, SplitDims),
    Moves((0, 1)): (extra_ops.FillDiagonal,),
    Multiplies(): (math.Dot, sparse.Dot, sparse.StructuredDot),
}
"""Actions that don't depend on an operation's properties."""

for _action, _op_types in TABLE.items():
    for _op_type in _op_types:
        action_of.register(_op_type, lambda op, node, action=_action: action)


@action_of.register(basic.Join)
@action_of.register(basic.MakeVector)
def _join(op: Op, node: Apply) -> Moves:
    return Moves(tuple(range(len(node.inputs))))


@action_of.register(subtensor.AdvancedIncSubtensor)
@action_of.register(subtensor.IncSubtensor)
def _put(op: Any, node: Apply) -> Action:
    return Moves((0, 1)) if op.set_instead_of_inc else Increments()


@action_of.register(CAReduce)
@action_of.register(math.Argmax)
def _reduce(op: Any, node: Apply) -> AlongAxes:
    axes = tuple(range(node.inputs[0].type.ndim) if op.axis is None else op.axis)
    return Reduces(axes, by=op.scalar_op) if isinstance(op, CAReduce) else AlongAxes(axes, True)


@action_of.register(extra_ops.CumOp)
@action_of.register(ArgSortOp)
@action_of.register(SortOp)
def _order(op: Any, node: Apply) -> AlongAxes:
    adds = isinstance(op, extra_ops.CumOp) and op.mode == "add"
    return (Accumulates if adds else AlongAxes)((op.axis,))


@action_of.register(Blockwise)
def _blockwise(op: Blockwise, node: Apply) -> Action | None:
    """Apply the core operation's action to a batch of arrays."""
    batch_ndim = op.batch_ndim(node)
    action = action_of(op.core_op, node)
    if batch_ndim == 0 or isinstance(action, Moves | Increments | Multiplies) or action == Maps():
        return action
    return AlongAxes(tuple(range(batch_ndim, node.inputs[0].type.ndim)))


def only_measures(node: Apply) -> bool:
    """Whether an operation uses shapes only, which don't depend on values."""
    return isinstance(action_of(node.op, node), Measures)


# -- the scalar function that an operation applies to entries --------------------------------------


def scalar_of(node: Apply) -> ps.ScalarOp | None:
    """Return the scalar function that an elementwise operation applies; None for others."""
    if isinstance(node.op, Elemwise):
        return node.op.scalar_op
    if action_of(node.op, node) != Maps() or len(node.outputs) > 1:
        return None
    return EntryOf(node.op, tuple(x.type for x in node.inputs))


def on_entries(node: Apply, entries: Sequence[Variable]) -> TensorVariable:
    """Apply an operation that acts entry by entry to single entries, of shape ()."""
    return Elemwise(scalar_of(node))(*entries)


# -- the origins of moved entries ------------------------------------------------------------------


@dataclass(frozen=True)
class Origins:
    """The origin of each entry, for an operation that moves entries."""

    inputs: tuple[int, ...]
    """The inputs that entries are taken from."""
    starts: tuple[int, ...]
    """The number of the first entry of each input."""
    numbers: np.ndarray
    """Of the output's shape: the number of the entry that moves to each place."""


def find_origins(
    node: Apply,
    shapes: Sequence[tuple[int | None, ...]],
    known: Callable[[Variable], np.ndarray | None],
) -> Origins | None:
    """Find where an operation takes entries from, by applying it to entry numbers.

    The inputs have the given shapes. ``known`` returns the value of a constant or fixed variable,
    and None for others. Returns None if the operation doesn't move entries, or if its indices
    aren't known.
    """
    action = action_of(node.op, node)
    if not isinstance(action, Moves) or len(node.outputs) > 1:
        return None
    lengths = {k: tuple(n for n in shapes[k] if n is not None) for k in action.inputs}
    if any(len(lengths[k]) < len(shapes[k]) for k in action.inputs):
        return None
    values = {k: known(x) for k, x in enumerate(node.inputs) if k not in action.inputs}
    if any(value is None for value in values.values()):
        return None
    sizes = [prod(lengths[k]) for k in action.inputs]
    starts = np.cumsum([0, *sizes])
    base = min(_largest(node.inputs[k].type.dtype) for k in action.inputs)
    numbers, unit = np.zeros((), dtype=np.int64), 1
    while unit == 1 or unit < starts[-1]:
        # Use digits if numbers exceed the type of the entries, such as truth values.
        for k, start, n_entries in zip(action.inputs, starts, sizes, strict=False):
            digits = np.arange(start, start + n_entries) // unit % base
            values[k] = digits.astype(node.inputs[k].type.dtype).reshape(lengths[k])
        try:
            moved = performed(node, [values[k] for k in range(len(node.inputs))])
        except (IndexError, ValueError):
            return None  # an index is out of range, or a shape belongs to another array
        numbers = numbers + np.asarray(moved).astype(np.int64) * unit
        unit *= base
    if np.any((numbers < 0) | (numbers >= starts[-1])):
        return None  # it does more than move entries
    return Origins(action.inputs, tuple(starts[:-1].tolist()), numbers)


def _largest(dtype: str) -> int:
    """Return the number up to which a dtype holds all whole numbers."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return 2
    return 2 ** np.finfo(kind).nmant if kind.kind == "f" else int(np.iinfo(kind).max)
