"""Operations on arrays, in scalars and loops.

`written` is a table by the type of an operation. It raises `NotWrittenError` for operations that
are better called as PyTensor's own functions.
"""

from collections.abc import Callable, Sequence
from functools import singledispatch
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
import pytensor.scalar as ps
from pytensor.compile.ops import TypeCastingOp
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
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
from pytensor.tensor.blockwise import Blockwise, BlockwiseWithCoreShape
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Reshape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
    indices_from_subtensor,
)

from pymc_dapper.one_function.code import Code, Term
from pymc_dapper.one_function.indexing import (
    UnknownIndexError,
    number,
    select,
    unify,
)
from pymc_dapper.one_function.scalars import (
    apply_scalar,
    cast,
    converted,
    literal,
    weight,
)
from pymc_dapper.one_function.values import (
    FREE,
    Index,
    Length,
    Loops,
    Value,
    empty,
    in_memory,
    indices,
    parts,
    place,
    shifted,
    single,
)

UNROLLED = 8
"""A sum of at most this number of products is an expression, not a loop."""
REGISTERS = 16
"""Up to this number of sums, each is a separate number in a loop over rows."""
NOTHING = Term("0")


class NotWrittenError(Exception):
    """An operation that isn't written as scalars and loops."""


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


def _dtype(node: Apply) -> str:
    if len(node.outputs) > 1:
        raise NotWrittenError
    return node.outputs[0].type.dtype


@written.register(Elemwise)
def _elemwise(op: Elemwise, node: Apply, code: Code, inputs: list[Value]) -> Value:
    dtype, types = _dtype(node), [x.dtype for x in inputs]
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
    return _view(x, shape, entry, fast)


def _view(x: Value, shape: Any, entry: Any, fast: int | None = None, dtype: str = "") -> Value:
    """Take entries of an array; a separate number among them has a name."""
    if not len(shape):
        with x.code.outside():
            return single(x.code, dtype or x.dtype, entry(()))
    return Value(x.code, dtype or x.dtype, shape, entry, x.weight, fast)


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
    for have, want in zip(x.shape, lengths, strict=True):
        if want is not None:
            term = number(want)
            text = str(term) if isinstance(term, int) else term.text
            if str(have) != text:
                code.once(f"if {have} != {text}: raise AssertionError('an axis of another length')")
    return x


@written.register(Shape_i)
def _length(op: Shape_i, node: Apply, code: Code, inputs: list[Value]) -> Value:
    return single(code, "int64", Term(str(inputs[0].shape[op.i])))


@written.register(MakeVector)
def _make_vector(op: MakeVector, node: Apply, code: Code, inputs: list[Value]) -> Value:
    if not inputs:
        raise NotWrittenError
    numbers = [converted(code, x.number(), x.dtype, op.dtype) for x in inputs]
    return _of_terms(code, op.dtype, numbers)


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
    return parts(code, _dtype(node), shape, axis, inputs)


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

        return _view(x, shape, entry, x.fast)

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

    return _view(x, shape, entry)


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
    old, new = ([k for k, n in enumerate(s) if n != 1] for s in (x.shape, shape))
    if [x.shape[k] for k in old] == [shape[k] for k in new]:

        def entry(index: Index) -> Term:
            own = [NOTHING] * x.ndim
            for k, j in zip(old, new, strict=True):
                own[k] = index[j]
            return x.entry(own)

        return _view(x, shape, entry)
    if len(old) > 1 or x.ndim == 0:
        x = _flat(code, x)
        old = [0]
    first = [NOTHING] * x.ndim

    def from_flat(index: Index) -> Term:
        own = list(first)
        own[old[0] if old else 0] = _number_of(code, index, shape)
        return x.entry(own)

    return _view(x, shape, from_flat)


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
    """Write all entries into a vector."""
    size = _product(code, list(x.shape))
    name = empty(code, [size], x.dtype)
    with Loops(code, x.shape) as index:
        entry = x.entry(index)
        code.add(f"{place(name, [_number_of(code, index, x.shape)])} = {entry.text}")
    return in_memory(code, name, x.dtype, [size])


def _number_of(code: Code, index: Index, shape: Any) -> Term:
    """Count the entries ahead of an index."""
    at = index[0]
    for k, length in zip(index[1:], shape[1:], strict=True):
        if length == 1:
            continue
        if at.text == "0":
            at = k
        elif k.text == "0":
            at = code.evaluate(f"{at.text} * {length}", at)
        else:
            at = code.evaluate(f"{at.text} * {length} + {k.text}", at, k)
    return at


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
    try:
        shape, origin = select(code, x.shape, _entries_of(op, node, inputs, 1))
    except UnknownIndexError as error:
        raise NotWrittenError from error
    return _view(x, shape, lambda index: x.entry(origin(index)))


@written.register(IncSubtensor)
@written.register(AdvancedIncSubtensor)
def _inc_subtensor(op: Any, node: Apply, code: Code, inputs: list[Value]) -> Value:
    x, y = inputs[:2]
    if getattr(op, "ignore_duplicates", False) and not op.set_instead_of_inc:
        raise NotWrittenError
    try:
        shape, origin = select(code, x.shape, _entries_of(op, node, inputs, 2))
    except UnknownIndexError as error:
        raise NotWrittenError from error
    if y.ndim > len(shape):
        raise NotWrittenError
    skipped = len(shape) - y.ndim
    own_of = [_spread(code, n, k) for n, k in zip(y.shape, shape[skipped:], strict=True)]
    if y.ndim and any(n != k for n, k in zip(y.shape, shape[-y.ndim :], strict=True)):
        y.ready()
    name = empty(code, x.shape, x.dtype)
    x.write(name, [NOTHING] * x.ndim)
    with Loops(code, shape) as index:
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


# Sums ---------------------------------------------------------------------------------------------

_START: dict[type, Any] = {ps.Add: 0, ps.Mul: 1, ps.AND: True, ps.OR: False}


@written.register(CAReduce)
def _reduce(op: CAReduce, node: Apply, code: Code, inputs: list[Value]) -> Value:
    [x] = inputs
    axes = range(x.ndim) if op.axis is None else [k % x.ndim for k in op.axis]
    out, by = _dtype(node), op.scalar_op
    acc = getattr(op, "acc_dtype", None) or out
    if np.dtype(acc).kind not in "biuf" or type(by) not in (*_START, ps.Maximum, ps.Minimum):
        raise NotWrittenError
    if isinstance(by, ps.AND | ps.OR) and acc != "bool":
        raise NotWrittenError

    def update(total: str, term: str) -> str:
        return f"{total} = {_combined(by, acc, total, cast(term, x.dtype, acc))}"

    kept = [k for k in range(x.ndim) if k not in axes]
    shape = [x.shape[k] for k in kept]
    if x.small and 0 not in x.shape:
        return _reduce_few(code, x, axes, by, acc, out)
    start = _start(by, acc)
    sizes = [n for n in shape if isinstance(n, int)]
    few = len(sizes) == len(shape) and 0 < prod(sizes) <= REGISTERS
    if few:
        totals = {index: code.new_name("s") for index in np.ndindex(*sizes)}
        for name in totals.values():
            code.add(f"{name} = {start}")
        with Loops(code, [1 if k in kept else n for k, n in enumerate(x.shape)]) as index:
            for at, name in totals.items():
                own = list(index)
                for k, j in zip(kept, at, strict=True):
                    own[k] = Term(str(j))
                code.add(update(name, x.entry(own).text))
        terms = [code.evaluate(cast(name, acc, out)) for name in totals.values()]
        return _numbers(code, out, shape, terms)
    name = empty(code, shape, acc)
    if x.fast not in kept:
        with Loops(code, [n if k in kept else 1 for k, n in enumerate(x.shape)]) as outer:
            total = code.new_name("s")
            code.add(f"{total} = {start}")
            with Loops(code, [1 if k in kept else n for k, n in enumerate(x.shape)]) as inner:
                own = [
                    b if k not in kept else a
                    for k, (a, b) in enumerate(zip(outer, inner, strict=True))
                ]
                code.add(update(total, x.entry(own).text))
            code.add(f"{place(name, [outer[k] for k in kept])} = {total}")
    else:
        with Loops(code, shape) as index:
            code.add(f"{place(name, index)} = {start}")
        order = [k for k in range(x.ndim) if k != x.fast] + [x.fast]
        with Loops(code, x.shape, order) as index:
            code.add(update(place(name, [index[k] for k in kept]), x.entry(index).text))
    result = in_memory(code, name, acc, shape)
    if acc == out:
        return result
    return Value(code, out, shape, lambda index: converted(code, result.entry(index), acc, out), 1)


def _combined(by: ps.ScalarOp, dtype: str, a: str, b: str) -> str:
    """Add, multiply, ... two numbers."""
    match by:
        case ps.Add() | ps.Mul():
            result = f"{a} {'+' if isinstance(by, ps.Add) else '*'} {b}"
            return result if dtype in ("float64", "int64") else cast(f"({result})", "", dtype)
        case ps.AND() | ps.OR():
            return f"{a} {'&' if isinstance(by, ps.AND) else '|'} {b}"
        case _:
            sign = "<" if isinstance(by, ps.Maximum) else ">"
            return f"({b} if ({b} != {b}) | ({a} {sign} {b}) else {a})"


def _reduce_few(
    code: Code, x: Value, axes: Sequence[int], by: ps.ScalarOp, acc: str, out: str
) -> Value:
    """Reduce an array of few entries, without a loop."""
    totals: dict[tuple[str, ...], Term] = {}
    for index in indices(x.shape):
        kept = tuple(k.text for axis, k in enumerate(index) if axis not in axes)
        term = converted(code, x.entry(index), x.dtype, acc)
        if kept in totals:
            total = totals[kept]
            term = code.evaluate(_combined(by, acc, total.text, term.text), total, term)
        totals[kept] = term
    shape = [n for axis, n in enumerate(x.shape) if axis not in axes]
    terms = [converted(code, term, acc, out) for term in totals.values()]
    return _numbers(code, out, shape, terms)


def _numbers(code: Code, dtype: str, shape: list[Length], terms: list[Term]) -> Value:
    """Index an array whose entries are separate, named numbers."""
    if not shape:
        return single(code, dtype, terms[0])
    vector = _of_terms(code, dtype, terms)
    return _view(vector, shape, lambda index: vector.entry([_number_of(code, index, shape)]))


def _of_terms(code: Code, dtype: str, terms: list[Term]) -> Value:
    ones = [_one(code, dtype, term) for term in terms]
    return parts(code, dtype, (len(ones),), 0, ones)


def _one(code: Code, dtype: str, term: Term) -> Value:
    return Value(code, dtype, (1,), lambda index: term)


def _start(by: ps.ScalarOp, dtype: str) -> str:
    """Return the sum, the product, ... of nothing."""
    if type(by) in _START:
        value = _START[type(by)]
    elif np.dtype(dtype).kind == "f":
        value = -np.inf if isinstance(by, ps.Maximum) else np.inf
    elif dtype == "bool":
        value = not isinstance(by, ps.Maximum)
    else:
        limits = np.iinfo(dtype)
        value = limits.min if isinstance(by, ps.Maximum) else limits.max
    text = literal(np.asarray(value).astype(dtype))
    return text if dtype in ("bool", "float64") else f"np.{dtype}({text})"


@written.register(CumOp)
def _cumulated(op: CumOp, node: Apply, code: Code, inputs: list[Value]) -> Value:
    [x] = inputs
    dtype = _dtype(node)
    if x.ndim != 1 or not x.small or x.shape == (0,):
        raise NotWrittenError
    if x.dtype != dtype or dtype not in ("float64", "int64"):
        raise NotWrittenError
    totals: list[Term] = []
    for [k] in indices(x.shape):
        term = x.entry([k])
        if totals:
            by = "+" if op.mode == "add" else "*"
            term = code.evaluate(f"{totals[-1].text} {by} {term.text}", totals[-1], term)
        totals.append(term)
    return _numbers(code, dtype, list(x.shape), totals)


# Matrices -----------------------------------------------------------------------------------------


@written.register(SolveTriangular)
def _solve_triangular(op: SolveTriangular, node: Apply, code: Code, inputs: list[Value]) -> Value:
    return _substituted(op, node, code, inputs)


@written.register(Blockwise)
def _blockwise(op: Blockwise, node: Apply, code: Code, inputs: list[Value]) -> Value:
    if not isinstance(op.core_op, SolveTriangular):
        raise NotWrittenError
    return _substituted(op.core_op, node, code, inputs)


@written.register(BlockwiseWithCoreShape)
def _with_core_shape(
    op: BlockwiseWithCoreShape, node: Apply, code: Code, inputs: list[Value]
) -> Value:
    blockwise = op.fgraph.outputs[0].owner.op
    return _blockwise(blockwise, node, code, inputs[: len(blockwise.inputs_sig)])


def _substituted(op: SolveTriangular, node: Apply, code: Code, inputs: list[Value]) -> Value:
    """Solve small triangular systems, of any number of right sides, row by row."""
    a, b = inputs
    n_rows, n_columns = a.shape[-1], op.b_ndim - 1
    batch_ndim = node.outputs[0].type.ndim - op.b_ndim
    if not isinstance(n_rows, int) or not 0 < n_rows <= UNROLLED:
        raise NotWrittenError
    if {a.dtype, b.dtype, _dtype(node)} != {"float64"} or op.unit_diagonal:
        raise NotWrittenError
    for length in (a.shape[batch_ndim], b.shape[batch_ndim]):
        unify(code, [n_rows, length], "SolveTriangular: shapes don't fit together")
    spread = [x.type.broadcastable[:batch_ndim] for x in node.inputs[:2]]
    batch: list[Length] = []
    for axis in range(batch_ndim):
        own = [x.shape[axis] for x, one in zip(inputs, spread, strict=True) if not one[axis]]
        batch.append(unify(code, own, "Blockwise: shapes don't fit together") if own else 1)
    columns = b.shape[batch_ndim + 1 :]
    name = empty(code, [*batch, n_rows, *columns], "float64")
    with Loops(code, [*batch, *columns]) as index:
        at, column = index[:batch_ndim], index[len(index) - n_columns :]
        of_a, of_b = (
            [NOTHING if one else k for k, one in zip(at, each, strict=True)] for each in spread
        )
        numbers = [Term(str(k)) for k in range(n_rows)]
        diagonal = [a.entry([*of_a, k, k]) for k in numbers]
        regular = " and ".join(f"{d.text} != 0" for d in diagonal)
        can_be_solved = code.evaluate(regular, *diagonal)
        solved: dict[int, Term] = {}
        for k in range(n_rows) if op.lower else reversed(range(n_rows)):
            right = b.entry([*of_b, numbers[k], *column])
            rest, operands = right.text, [right]
            for j, x in solved.items():
                factor = a.entry([*of_a, numbers[k], numbers[j]])
                rest, operands = f"{rest} - {factor.text} * {x.text}", [*operands, factor, x]
            # Of a matrix that has no inverse, PyTensor makes nan of all of the solution.
            by = f"({diagonal[k].text} if {can_be_solved.text} else np.nan)"
            divisor = code.evaluate(by, diagonal[k], can_be_solved)
            solved[k] = code.evaluate(f"({rest}) / {divisor.text}", *operands, divisor)
            code.add(f"{place(name, [*at, numbers[k], *column])} = {solved[k].text}")
    return in_memory(code, name, "float64", [*batch, n_rows, *columns])


@written.register(Dot)
def _dot(op: Dot, node: Apply, code: Code, inputs: list[Value]) -> Value:
    x, y = inputs
    dtype = _dtype(node)
    if (x.ndim, y.ndim) != (2, 2) or np.dtype(dtype).kind not in "iuf" or dtype == "float16":
        raise NotWrittenError
    (m, inner), (other, n) = x.shape, y.shape
    inner = unify(code, [inner, other], "Dot: shapes don't fit together")
    few = isinstance(m, int) and isinstance(n, int) and m * n <= REGISTERS

    def product(i: Term, j: Term, k: Term) -> str:
        a, b = x.entry([i, k]), y.entry([k, j])
        return f"{cast(a.text, x.dtype, dtype)} * {cast(b.text, y.dtype, dtype)}"

    if isinstance(inner, int) and 0 < inner <= UNROLLED:
        if n != 1:
            x.ready()
        if m != 1:
            y.ready()

        def entry(index: Index) -> Term:
            i, j = index
            products = [product(i, j, Term(str(k))) for k in range(inner)]
            total = " + ".join(products)
            narrow = total if dtype in ("float64", "int64") else cast(f"({total})", "", dtype)
            return code.evaluate(narrow, i, j)

        return Value(code, dtype, (m, n), entry, 2 * inner + x.weight + y.weight)
    if dtype != "float64" or (0 in x.shape or 0 in y.shape):
        raise NotWrittenError
    if few:
        places = [(i, j) for i in range(m) for j in range(n)]  # type: ignore[arg-type]
        totals = [code.new_name("s") for _ in places]
        for name in totals:
            code.add(f"{name} = 0.0")
        with Loops(code, [inner]) as [k]:
            for name, (i, j) in zip(totals, places, strict=True):
                code.add(f"{name} = {name} + {product(Term(str(i)), Term(str(j)), k)}")
        return _numbers(code, dtype, [m, n], [code.evaluate(total) for total in totals])
    if m == 1 or n == 1:
        return _matrix_by_vector(code, x, y, inner, product)
    a, b = (_for_blas(code, each) for each in (x, y))
    name = code.new_name("a")
    code.add(f"{name} = np.dot({a}, {b})")
    return in_memory(code, name, dtype, (m, n))


def _matrix_by_vector(code: Code, x: Value, y: Value, inner: Length, product: Any) -> Value:
    (m, _), (_, n) = x.shape, y.shape
    matrix, vector = (x, y) if n == 1 else (y, x)
    vector.ready()
    name = empty(code, (m, n), "float64")
    if matrix.fast == (1 if n == 1 else 0):  # the sum runs along contiguous rows
        with Loops(code, (m, n)) as [i, j]:
            total = code.new_name("s")
            code.add(f"{total} = 0.0")
            with Loops(code, [inner]) as [k]:
                code.add(f"{total} = {total} + {product(i, j, k)}")
            code.add(f"{place(name, [i, j])} = {total}")
    else:
        with Loops(code, (m, n)) as index:
            code.add(f"{place(name, index)} = 0.0")
        with Loops(code, (inner, m, n)) as [k, i, j]:
            at = place(name, [i, j])
            code.add(f"{at} = {at} + {product(i, j, k)}")
    return in_memory(code, name, "float64", (m, n))


def _for_blas(code: Code, x: Value) -> str:
    """Have a matrix in memory as doubles."""
    if x.dtype != "float64":
        old = x
        x = _view(
            old,
            old.shape,
            lambda index: converted(code, old.entry(index), old.dtype, "float64"),
            dtype="float64",
        )
    return x.store()
