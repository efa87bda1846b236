"""Operations on arrays, in scalars and loops.

`written` is a table by the type of an operation: those of entries and shapes are here, others in
`reductions` and `matrices`. It raises `NotWrittenError` for operations that are better called as
PyTensor's own functions.
"""

from collections.abc import Callable, Sequence
from functools import singledispatch
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from pytensor import scalar as ps
from pytensor.compile.ops import TypeCastingOp
from pytensor.graph import Apply, Op
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import (
    Alloc,
    AllocEmpty,
    Join,
    MakeVector,
    ScalarFromTensor,
    Split,
    TensorFromScalar,
)
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
    indices_from_subtensor,
)

from pymc_dapper.one_function.code import Code, Term
from pymc_dapper.one_function.indexing import NotWrittenError, number, select, unify
from pymc_dapper.one_function.scalars import apply_scalar, cast, converted, weight
from pymc_dapper.one_function.values import (
    FREE,
    NOTHING,
    Index,
    Length,
    Value,
    empty,
    in_memory,
    loops,
    number_of,
    of_terms,
    parts,
    place,
    read,
    shifted,
    single,
    view,
)


@singledispatch
def written(op: Op, node: Apply, code: Code, inputs: list[Value]) -> Value | list[Value]:
    """Write an operation; returns its output, or all of them if there are several.

    Parameters
    ----------
    op : Op
        The operation.
    node : Apply
        Its application.
    code : Code
        Where it is written.
    inputs : list of Value
        Its inputs.
    """
    raise NotWrittenError


def dtype_of(node: Apply) -> str:
    """Return the type of an operation's only output."""
    if len(node.outputs) > 1:
        raise NotWrittenError
    return node.outputs[0].type.dtype


@written.register(Elemwise)
def _elemwise(op: Elemwise, node: Apply, code: Code, inputs: list[Value]) -> Value:
    dtype, types = dtype_of(node), [x.dtype for x in inputs]
    spread = [x.type.broadcastable for x in node.inputs]
    shape: list[Length] = []
    for axis in range(node.outputs[0].type.ndim):
        own = [x.shape[axis] for x, b in zip(inputs, spread, strict=True) if not b[axis]]
        shape.append(unify(code, own, "Elemwise: shapes don't fit together") if own else 1)
    whole = [x for x, b in zip(inputs, spread, strict=True) if not any(b)]
    if not whole:  # each entry of the inputs is read several times
        inputs = [x.ready() for x in inputs]

    def entry(index: Index) -> Term:
        terms = []
        for x, b in zip(inputs, spread, strict=True):
            terms.append(x.entry([NOTHING if one else k for k, one in zip(index, b, strict=True)]))
        return apply_scalar(code, op.scalar_op, terms, types, dtype)

    if not shape:
        return single(code, dtype, entry(()))
    fast = whole[0].fast if whole else _longest(shape)
    result = Value(code, dtype, shape, entry, weight(op.scalar_op), fast)
    in_turn = [x.weight for x in inputs if not x.small or (result.small and x.weight <= FREE)]
    result.weight += sum(in_turn)
    return result


def _longest(shape: Sequence[Length]) -> int:
    """Return the longest axis, the last of equals; unknown lengths count as longest."""
    lengths = [n if isinstance(n, int) else np.inf for n in shape]
    return max(range(len(shape)), key=lambda k: (lengths[k], k))


@written.register(ps.ScalarOp)
def _scalar(op: ps.ScalarOp, node: Apply, code: Code, inputs: list[Value]) -> Value:
    if isinstance(op, ps.Composite) or len(node.outputs) > 1:
        raise NotWrittenError
    [output], numbers = node.outputs, [x.number() for x in inputs]
    dtype = output.type.dtype
    return single(code, dtype, apply_scalar(code, op, numbers, [x.dtype for x in inputs], dtype))


@written.register(DimShuffle)
def _dim_shuffle(op: DimShuffle, node: Apply, code: Code, inputs: list[Value]) -> Value:
    [x] = inputs
    for axis in op.drop:
        if x.shape[axis] != 1:
            code.once(f"if {x.shape[axis]} != 1: raise ValueError('an axis to drop is longer')")
    order = op.new_order
    shape = [1 if k == "x" else x.shape[k] for k in order]

    def entry(index: Index) -> Term:
        own = [NOTHING] * x.ndim
        for k, at in zip(order, index, strict=True):
            if k != "x":
                own[k] = at
        return x.entry(own)

    fast = order.index(x.fast) if x.fast in order else None
    return view(x, shape, entry, fast)


@written.register(TensorFromScalar)
@written.register(ScalarFromTensor)
@written.register(TypeCastingOp)
def _same(op: Op, node: Apply, code: Code, inputs: list[Value]) -> Value:
    return inputs[0]


@written.register(CheckAndRaise)
def _check(op: CheckAndRaise, node: Apply, code: Code, inputs: list[Value]) -> Value:
    x, *conditions = inputs
    error = op.exc_type
    name = code.refer("e", error, f"{error.__module__}.{error.__qualname__}")
    for condition in conditions:
        code.add(f"if not {condition.number().text}: raise {name}({op.msg!r})")
    return x


@written.register(SpecifyShape)
def _specify_shape(op: SpecifyShape, node: Apply, code: Code, inputs: list[Value]) -> Value:
    x, *lengths = inputs
    shape = list(x.shape)
    for k, want in enumerate(lengths):
        if want is not None:
            term = number(want)
            length = term if isinstance(term, int) else term.text
            if length != shape[k]:
                wrong = f"{shape[k]} != {length}"
                code.once(f"if {wrong}: raise AssertionError('an axis of another length')")
                shape[k] = length
    if shape == list(x.shape):
        return x
    value = view(x, shape, x.entry, x.fast)
    value._stored = x.store  # type: ignore[method-assign]
    return value


@written.register(Shape_i)
def _length(op: Shape_i, node: Apply, code: Code, inputs: list[Value]) -> Value:
    return single(code, "int64", Term(str(inputs[0].shape[op.i])))


@written.register(MakeVector)
def _make_vector(op: MakeVector, node: Apply, code: Code, inputs: list[Value]) -> Value:
    if not inputs:
        raise NotWrittenError
    numbers = [converted(code, x.number(), x.dtype, op.dtype) for x in inputs]
    return of_terms(code, op.dtype, numbers)


@written.register(Join)
def _join(op: Join, node: Apply, code: Code, inputs: list[Value]) -> Value:
    axis = op.axis % node.outputs[0].type.ndim
    shape: list[Length] = []
    for k in range(node.outputs[0].type.ndim):
        lengths = [x.shape[k] for x in inputs]
        if k != axis:
            shape.append(unify(code, lengths, "Join: the other axes differ in length"))
        elif all(isinstance(n, int) for n in lengths):
            shape.append(sum(lengths))  # type: ignore[arg-type]
        else:
            shape.append(code.evaluate(" + ".join(map(str, lengths)), kind="n").text)
    return parts(code, dtype_of(node), shape, axis, inputs)


@written.register(Split)
def _split(op: Split, node: Apply, code: Code, inputs: list[Value]) -> list[Value]:
    x, sizes = inputs
    axis = op.axis % x.ndim
    if sizes.shape != (op.len_splits,):
        raise NotWrittenError
    lengths = [number(_number_at(sizes, k)) for k in range(op.len_splits)]
    known = [n for n in lengths if isinstance(n, int) and n >= 0]
    if known != lengths or sum(known) != x.shape[axis]:
        raise NotWrittenError

    def part(start: int, length: int) -> Value:
        shape = [*x.shape[:axis], length, *x.shape[axis + 1 :]]

        def entry(index: Index) -> Term:
            at = shifted(code, index[axis], Term(str(start)))
            return x.entry([*index[:axis], at, *index[axis + 1 :]])

        return view(x, shape, entry, x.fast)

    return [part(*each) for each in zip(accumulate(known, initial=0), known, strict=False)]


@written.register(Alloc)
def _alloc(op: Alloc, node: Apply, code: Code, inputs: list[Value]) -> Value:
    x, *lengths = inputs
    shape = [_nonnegative(code, n) for n in lengths]
    skipped = len(shape) - x.ndim
    spread = node.inputs[0].type.broadcastable
    for k, one in enumerate(spread):
        if not one:
            both = [shape[skipped + k], x.shape[k]]
            shape[skipped + k] = unify(code, both, "Alloc: the value has another shape")
    x.ready()

    def entry(index: Index) -> Term:
        own = index[skipped:]
        return x.entry([NOTHING if one else k for k, one in zip(own, spread, strict=True)])

    return view(x, shape, entry)


def _nonnegative(code: Code, value: Value) -> Length:
    length = number(value)
    if isinstance(length, int):
        return length
    code.once(f"if {length.text} < 0: raise ValueError('negative dimensions are not allowed')")
    return length.text


@written.register(AllocEmpty)
def _alloc_empty(op: AllocEmpty, node: Apply, code: Code, inputs: list[Value]) -> Value:
    shape = [_nonnegative(code, n) for n in inputs]
    return in_memory(code, empty(code, shape, op.dtype), op.dtype, shape)


@written.register(Reshape)
def _reshape(op: Reshape, node: Apply, code: Code, inputs: list[Value]) -> Value:
    [x, _], shape = inputs, node.outputs[0].type.shape
    if None in shape:
        raise NotWrittenError
    if (size := _product(code, list(x.shape))) != prod(shape):
        code.once(
            f"if {size} != {prod(shape)}: raise ValueError('Reshape: wrong number of entries')"
        )
    if not shape:
        return single(code, x.dtype, x.entry([NOTHING] * x.ndim))
    if x.ndim == 0:
        return view(x, shape, lambda index: x.entry(()))
    old = [k for k, n in enumerate(x.shape) if n != 1]
    if len(old) > 1:
        x, old = _flat(code, x), [0]
        if len(shape) == 1:
            return x
    first = [NOTHING] * x.ndim

    def from_flat(index: Index) -> Term:
        own = list(first)
        own[old[0] if old else 0] = number_of(code, index, shape)
        return x.entry(own)

    return view(x, shape, from_flat)


def _number_at(vector: Value, k: int) -> Value:
    return single(vector.code, vector.dtype, vector.entry([Term(str(k))]))


def _product(code: Code, lengths: list[Length]) -> Length:
    names = sorted(n for n in lengths if isinstance(n, str))
    known = prod(n for n in lengths if isinstance(n, int))
    if not names or known == 0:
        return known
    factors = [*([str(known)] if known != 1 else []), *names]
    return code.evaluate(" * ".join(factors)).text if len(factors) > 1 else factors[0]


def _flat(code: Code, x: Value) -> Value:
    """Take all entries as a vector. They are written in loops over the array's own axes."""
    size = _product(code, list(x.shape))
    flat = Value(code, x.dtype, [size], lambda index: read(code, flat.store(), index))

    def write(name: str, first: Index) -> None:
        if flat.stored is not None:
            Value.write(flat, name, first)
            return
        with loops(code, x.shape) as index:
            entry = x.entry(index)
            at = shifted(code, number_of(code, index, x.shape), first[0])
            code.add(f"{place(name, [at])} = {entry.text}")

    flat.write = write  # type: ignore[method-assign]
    return flat


# Indexing -----------------------------------------------------------------------------------------


def _entries_of(op: Any, node: Apply, inputs: list[Value], skip: int) -> list[Any]:
    of = dict(zip(node.inputs[skip:], inputs[skip:], strict=True))

    def value(x: Any) -> Any:
        return None if x is None else of[x]

    found: list[Any] = []
    for each in indices_from_subtensor(node.inputs[skip:], op.idx_list):
        if isinstance(each, slice):
            found.append(slice(value(each.start), value(each.stop), value(each.step)))
        else:
            found.append(of[each])
    return found


@written.register(Subtensor)
@written.register(AdvancedSubtensor)
def _subtensor(op: Any, node: Apply, code: Code, inputs: list[Value]) -> Value:
    x = inputs[0]
    if isinstance(op, AdvancedSubtensor):
        x.ready()
    entries = _entries_of(op, node, inputs, 1)
    shape, origin = select(code, x.shape, entries)
    return view(x, shape, lambda index: x.entry(origin(index)))


@written.register(IncSubtensor)
@written.register(AdvancedIncSubtensor)
def _inc_subtensor(op: Any, node: Apply, code: Code, inputs: list[Value]) -> Value:
    x, y = inputs[:2]
    if getattr(op, "ignore_duplicates", False) and not op.set_instead_of_inc:
        raise NotWrittenError
    shape, origin = select(code, x.shape, _entries_of(op, node, inputs, 2))
    if y.ndim > len(shape):
        raise NotWrittenError
    skipped = len(shape) - y.ndim
    own_of = [_spread(code, n, k) for n, k in zip(y.shape, shape[skipped:], strict=True)]
    if y.ndim and any(n != k for n, k in zip(y.shape, shape[-y.ndim :], strict=True)):
        y.ready()
    name = empty(code, x.shape, x.dtype)
    x.write(name, [NOTHING] * x.ndim)
    with loops(code, shape) as index:
        own = [find(k) for find, k in zip(own_of, index[skipped:], strict=True)]
        term = y.entry(own)
        new = cast(term.text, y.dtype, x.dtype)
        at = place(name, origin(index))
        if op.set_instead_of_inc:
            code.add(f"{at} = {new}")
        else:
            total = f"{at} + {new}"
            native = x.dtype in ("float64", "int64")
            code.add(f"{at} = {total if native else cast(f'({total})', '', x.dtype)}")
    result = in_memory(code, name, x.dtype, x.shape)
    return single(code, x.dtype, result.code.evaluate(f"{name}[()]")) if not x.ndim else result


def _spread(code: Code, length: Length, over: Length) -> Callable[[Term], Term]:
    """Return the entry of new values for an entry of an axis."""
    if length == over:
        return lambda k: k
    if length == 1:
        return lambda k: NOTHING
    if isinstance(length, int):
        unify(code, [length, over], "the new values have another shape")
        return lambda k: k
    wrong = f"{length} != 1 and {length} != {over}"
    code.once(f"if {wrong}: raise ValueError('the new values have another shape')")
    step = code.evaluate(f"(0 if {length} == 1 else 1)")
    return lambda k: code.evaluate(f"{k.text} * {step.text}", k)
