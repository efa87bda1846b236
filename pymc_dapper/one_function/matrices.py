"""Products of matrices and small triangular systems, in scalars and loops."""

from typing import Any

import numpy as np
from pytensor.graph import Apply
from pytensor.tensor.blockwise import Blockwise, BlockwiseWithCoreShape
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.math import Dot

from pymc_dapper.one_function.code import Code, Term
from pymc_dapper.one_function.indexing import NotWrittenError, unify
from pymc_dapper.one_function.operations import dtype_of, written
from pymc_dapper.one_function.reductions import REGISTERS
from pymc_dapper.one_function.scalars import cast
from pymc_dapper.one_function.values import (
    NOTHING,
    Index,
    Length,
    Value,
    empty,
    in_memory,
    loops,
    place,
    separate,
)

UNROLLED = 8
"""A sum of at most this number of products is an expression, not a loop."""


@written.register(Blockwise)
def _blockwise(op: Blockwise, node: Apply, code: Code, inputs: list[Value]) -> Value:
    if not isinstance(op.core_op, SolveTriangular):
        raise NotWrittenError
    return _solve_triangular(op.core_op, node, code, inputs)


@written.register(BlockwiseWithCoreShape)
def _with_core_shape(
    op: BlockwiseWithCoreShape, node: Apply, code: Code, inputs: list[Value]
) -> Value:
    blockwise = op.fgraph.outputs[0].owner.op
    return _blockwise(blockwise, node, code, inputs[: len(blockwise.inputs_sig)])


@written.register(SolveTriangular)
def _solve_triangular(op: SolveTriangular, node: Apply, code: Code, inputs: list[Value]) -> Value:
    """Solve small triangular systems, of any number of right sides, row by row."""
    a, b = inputs
    n_rows, n_columns = a.shape[-1], op.b_ndim - 1
    batch_ndim = node.outputs[0].type.ndim - op.b_ndim
    if not isinstance(n_rows, int) or not 0 < n_rows <= UNROLLED:
        raise NotWrittenError
    if {a.dtype, b.dtype, dtype_of(node)} != {"float64"} or op.unit_diagonal:
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
    with loops(code, [*batch, *columns]) as index:
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
    dtype = dtype_of(node)
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
    is_vector = m == 1 or n == 1
    if dtype != "float64" or 0 in (*x.shape, *y.shape) or not (few or is_vector):
        raise NotWrittenError
    if few:
        places = [(i, j) for i in range(m) for j in range(n)]  # type: ignore[arg-type]
        totals = [code.new_name("s") for _ in places]
        for name in totals:
            code.add(f"{name} = 0.0")
        with loops(code, [inner]) as [k]:
            for name, (i, j) in zip(totals, places, strict=True):
                code.add(f"{name} = {name} + {product(Term(str(i)), Term(str(j)), k)}")
        return separate(code, dtype, [m, n], [code.evaluate(total) for total in totals])
    return _matrix_by_vector(code, x, y, inner, product)


def _matrix_by_vector(code: Code, x: Value, y: Value, inner: Length, product: Any) -> Value:
    (m, _), (_, n) = x.shape, y.shape
    matrix, vector = (x, y) if n == 1 else (y, x)
    vector.ready()
    name = empty(code, (m, n), "float64")
    if matrix.fast == (1 if n == 1 else 0):  # the sum runs along contiguous rows
        with loops(code, (m, n)) as [i, j]:
            total = code.new_name("s")
            code.add(f"{total} = 0.0")
            with loops(code, [inner]) as [k]:
                code.add(f"{total} = {total} + {product(i, j, k)}")
            code.add(f"{place(name, [i, j])} = {total}")
    else:
        with loops(code, (m, n)) as index:
            code.add(f"{place(name, index)} = 0.0")
        with loops(code, (inner, m, n)) as [k, i, j]:
            at = place(name, [i, j])
            code.add(f"{at} = {at} + {product(i, j, k)}")
    return in_memory(code, name, "float64", (m, n))
