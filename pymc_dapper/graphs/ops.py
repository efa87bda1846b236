"""What each operation does to the entries of arrays: the one table that all readers ask.

How records, counts or a parameter enter a log-density is found by a walk through its graph. What a
walk makes of an operation is its own; what the operation does is said here, once for all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from math import prod
from typing import Any

import numpy as np
import pytensor.scalar as ps
from numpy.typing import NDArray
from pytensor.compile.ops import DeepCopyOp, ViewOp
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
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
    """What an operation does to the entries of its inputs."""


@dataclass(frozen=True)
class Maps(Action):
    """Makes each entry from those in the same place of inputs that are broadcast to each other.

    Attributes
    ----------
    inputs : tuple of int, optional
        The inputs that are looked at entry by entry, where others are looked at as a whole.
    """

    inputs: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Keeps(Action):
    """Hands on its first input; others check it."""


@dataclass(frozen=True)
class Moves(Action):
    """Moves, repeats or leaves out entries, whatever they are.

    Attributes
    ----------
    inputs : tuple of int, default (0,)
        The inputs that the entries are taken from; others say to where, or are shapes.
    all : bool, default False
        Whether none is left out.
    """

    inputs: tuple[int, ...] = (0,)
    all: bool = False


@dataclass(frozen=True)
class Increments(Action):
    """Adds entries of its second input to some of its first; others say to which."""


@dataclass(frozen=True)
class Multiplies(Action):
    """Multiplies two matrices."""


@dataclass(frozen=True)
class AlongAxes(Action):
    """Acts on all entries along axes of its inputs at once, and on each place of others by itself.

    Attributes
    ----------
    axes : tuple of int
        The axes.
    dropped : bool, default False
        Whether the output doesn't have them.
    """

    axes: tuple[int, ...]
    dropped: bool = False


@dataclass(frozen=True)
class Accumulates(AlongAxes):
    """Adds up the entries along an axis one after the other."""


@dataclass(frozen=True)
class Reduces(AlongAxes):
    """Makes one entry of all along axes, by an operation on two at a time.

    Attributes
    ----------
    by : ScalarOp
        The operation.
    """

    dropped: bool = True
    by: ps.ScalarOp = ps.add


@dataclass(frozen=True)
class Measures(Action):
    """Looks at its input's shape only."""


@singledispatch
def action_of(op: Op, node: Apply) -> Action | None:
    """Say what an operation does to the entries of its inputs.

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
        ``Maps``, ``Moves`` or another action of `pymc_dapper.reading`; None if it isn't known.
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
    """Act on each of a batch of arrays as the core operation does on one."""
    batch_ndim = op.batch_ndim(node)
    action = action_of(op.core_op, node)
    if batch_ndim == 0 or isinstance(action, Moves | Increments | Multiplies) or action == Maps():
        return action
    return AlongAxes(tuple(range(batch_ndim, node.inputs[0].type.ndim)))


def only_measures(node: Apply) -> bool:
    """Say whether an operation looks at shapes only, which don't depend on values."""
    return isinstance(action_of(node.op, node), Measures)


# -- the function that an operation applies to entries ---------------------------------------------


def scalar_of(node: Apply) -> ps.ScalarOp | None:
    """Return what an operation applies to entries in the same place, if that is what it does."""
    if isinstance(node.op, Elemwise):
        return node.op.scalar_op
    if action_of(node.op, node) != Maps() or len(node.outputs) > 1:
        return None
    return EntryOf(node.op, tuple(x.type for x in node.inputs))


def on_entries(node: Apply, entries: Sequence[Variable]) -> TensorVariable:
    """Apply an operation that acts entry by entry to single entries, of shape ()."""
    return Elemwise(scalar_of(node))(*entries)


# -- where entries are moved from ------------------------------------------------------------------


@dataclass(frozen=True)
class Origins:
    """Where an operation that moves entries takes each of them from."""

    inputs: tuple[int, ...]
    """The inputs that entries are taken from."""
    starts: tuple[int, ...]
    """The number that the first entry of each has."""
    numbers: NDArray[np.int64]
    """Of the output's shape: the number of the entry that comes to stand in each place."""


def find_origins(
    node: Apply,
    shapes: Sequence[tuple[int | None, ...]],
    known: Callable[[Variable], np.ndarray | None],
) -> Origins | None:
    """Find out where an operation takes entries from, by moving numbers in their place.

    Its inputs have these shapes. ``known`` gives the value of a variable that is constant, or held
    fixed, and None for others. None if the operation doesn't move entries, or if it isn't known to
    where.
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
        # Digit by digit, where numbers are larger than the entries can be, such as truth values.
        for k, start, n_entries in zip(action.inputs, starts, sizes, strict=False):
            digits = np.arange(start, start + n_entries) // unit % base
            values[k] = digits.astype(node.inputs[k].type.dtype).reshape(lengths[k])
        try:
            moved = performed(node, [values[k] for k in range(len(node.inputs))])
        except (IndexError, ValueError):
            return None  # an index that is out of range, or a shape that another array has
        numbers = numbers + np.asarray(moved).astype(np.int64) * unit
        unit *= base
    if np.any((numbers < 0) | (numbers >= starts[-1])):
        return None  # it does more than move entries
    return Origins(action.inputs, tuple(starts[:-1].tolist()), numbers)


def _largest(dtype: str) -> int:
    """Return a number up to which a dtype has all."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return 2
    return 2 ** np.finfo(kind).nmant if kind.kind == "f" else int(np.iinfo(kind).max)
