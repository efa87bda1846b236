"""Sums, products, extremes and cumulated sums, in scalars and loops."""

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import pytensor.scalar as ps
from pytensor.graph import Apply
from pytensor.tensor.elemwise import CAReduce
from pytensor.tensor.extra_ops import CumOp

from pymc_dapper.one_function.code import Code, Term
from pymc_dapper.one_function.indexing import NotWrittenError
from pymc_dapper.one_function.operations import dtype_of, written
from pymc_dapper.one_function.scalars import apply_scalar, cast, converted, expression, literal
from pymc_dapper.one_function.values import (
    NOTHING,
    Index,
    Value,
    empty,
    in_memory,
    indices,
    loops,
    place,
    separate,
)

REGISTERS = 16
"""Up to this number of sums, each is a separate number in a loop over rows."""
_START: dict[type, Any] = {
    ps.Add: 0, ps.Mul: 1, ps.AND: True, ps.OR: False, ps.Maximum: -np.inf, ps.Minimum: np.inf
}  # fmt: skip


@written.register(CAReduce)
def _reduce(op: CAReduce, node: Apply, code: Code, inputs: list[Value]) -> Value:
    [x] = inputs
    axes = range(x.ndim) if op.axis is None else [k % x.ndim for k in op.axis]
    out, by = dtype_of(node), op.scalar_op
    acc = getattr(op, "acc_dtype", None) or out
    known = type(by) in _START and np.dtype(acc).kind in "biuf"
    if not known or isinstance(by, ps.AND | ps.OR) != (acc == "bool"):
        raise NotWrittenError

    def update(total: str, term: Term) -> str:
        changed = expression(code, by, [term, Term(total)], [x.dtype, acc], acc)
        return f"{total} = {changed}"

    kept = [k for k in range(x.ndim) if k not in axes]
    shape = [x.shape[k] for k in kept]
    if x.small and 0 not in x.shape:
        return _reduce_few(code, x, kept, by, acc, out)
    start = _start(by, acc)
    sizes = [n for n in shape if isinstance(n, int)]
    few = len(sizes) == len(shape) and 0 < prod(sizes) <= (REGISTERS if x.fast in kept else 1)
    if few:
        totals = {index: code.new_name("s") for index in np.ndindex(*sizes)}
        for name in totals.values():
            code.add(f"{name} = {start}")
        with loops(code, [1 if k in kept else n for k, n in enumerate(x.shape)]) as index:
            for at, name in totals.items():
                own = list(index)
                for k, j in zip(kept, at, strict=True):
                    own[k] = Term(str(j))
                code.add(update(name, x.entry(own)))
        terms = [code.evaluate(cast(name, acc, out)) for name in totals.values()]
        return separate(code, out, shape, terms)
    name = empty(code, shape, acc)
    if x.fast not in kept:
        with loops(code, [n if k in kept else 1 for k, n in enumerate(x.shape)]) as outer:
            total = code.new_name("s")
            code.add(f"{total} = {start}")
            with loops(code, [1 if k in kept else n for k, n in enumerate(x.shape)]) as inner:
                pairs = enumerate(zip(outer, inner, strict=True))
                own = [b if k not in kept else a for k, (a, b) in pairs]
                code.add(update(total, x.entry(own)))
            code.add(f"{place(name, [outer[k] for k in kept])} = {total}")
    else:
        with loops(code, shape) as index:
            code.add(f"{place(name, index)} = {start}")
        order = [k for k in range(x.ndim) if k != x.fast] + [x.fast]
        with loops(code, x.shape, order) as index:
            code.add(update(place(name, [index[k] for k in kept]), x.entry(index)))
    result = in_memory(code, name, acc, shape)
    if acc == out:
        return result
    return Value(code, out, shape, lambda index: converted(code, result.entry(index), acc, out), 1)


def _reduce_few(
    code: Code, x: Value, kept: Sequence[int], by: ps.ScalarOp, acc: str, out: str
) -> Value:
    """Reduce an array of few entries, without a loop of its own."""
    shape = [x.shape[axis] for axis in kept]

    def total(index: Sequence[Index]) -> Term:
        terms = (converted(code, x.entry(at), x.dtype, acc) for at in index)
        return reduce(lambda a, b: apply_scalar(code, by, [b, a], [acc, acc], acc), terms)

    if x.is_table and [*kept] == [*range(x.ndim - 1)]:
        columns = indices(x.shape[-1:])

        def of_row(row: Index) -> Term:
            return converted(code, total([[*row, *k] for k in columns]), acc, out)

        return Value(code, out, shape, of_row, len(columns) * (x.weight + 1))
    together: dict[tuple[str, ...], list[Index]] = {}
    for index in indices(x.shape):
        together.setdefault(tuple(index[axis].text for axis in kept), []).append(index)
    terms = [converted(code, total(each), acc, out) for each in together.values()]
    return separate(code, out, shape, terms)


def _start(by: ps.ScalarOp, dtype: str) -> str:
    """Return the sum, the product, ... of nothing."""
    value = _START[type(by)]
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        value = min(max(value, limits.min), limits.max)
    text = literal(np.asarray(value).astype(dtype))
    return text if dtype in ("bool", "float64") else f"np.{dtype}({text})"


@written.register(CumOp)
def _cumulated(op: CumOp, node: Apply, code: Code, inputs: list[Value]) -> Value:
    [x] = inputs
    dtype, axis = dtype_of(node), 0 if op.axis is None else op.axis % x.ndim
    if x.dtype != dtype or dtype not in ("float64", "int64") or (op.axis is None and x.ndim > 1):
        raise NotWrittenError
    by, start = ("+", 0) if op.mode == "add" else ("*", 1)
    others = [1 if k == axis else n for k, n in enumerate(x.shape)]
    totals, name = empty(code, others, dtype), empty(code, x.shape, dtype)
    with loops(code, others) as index:
        code.add(f"{place(totals, index)} = {start}")
    with loops(code, x.shape, [axis, *(k for k in range(x.ndim) if k != axis)]) as index:
        total = place(totals, [NOTHING if k == axis else at for k, at in enumerate(index)])
        code.add(f"{total} = {total} {by} {x.entry(index).text}")
        code.add(f"{place(name, index)} = {total}")
    return in_memory(code, name, dtype, x.shape)
