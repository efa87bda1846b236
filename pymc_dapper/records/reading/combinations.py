"""Expressions that combine single records with sums over records, such as x - x.mean().

They aren't sums over records, but the sum of a polynomial of them is a polynomial of sums: see
:class:`~pymc_dapper.records.reading.roles.Combination`.
"""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph import Apply
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs import ops
from pymc_dapper.graphs.errors import NotAdditiveError
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.naming import describe
from pymc_dapper.records.reading.roles import Combination, Fixed, FunctionOfSums, Role, Rows

MAX_POWER = 4

Terms = tuple[tuple[TensorVariable, TensorVariable], ...]
Combined = tuple[Role, TensorVariable | None]
NewSum = Callable[[TensorVariable], TensorVariable]


def combine(node: Apply, roles: Sequence[Role], new_sum: NewSum) -> Combined:
    """Apply an operation to combinations of records and sums over them.

    ``new_sum`` registers a variable with one slice per record, on the first axis, and returns its
    sum over the records. Returns the role of the output, ``Combination`` or ``FunctionOfSums``, and
    for the latter the same value, computed from the sums alone. Refuses everything that isn't a
    polynomial of sums.
    """
    match ops.action_of(node.op, node):
        case ops.Maps() if isinstance(node.op, Elemwise):
            axis = _record_axis(node, roles)
            operands = [_terms(node, x, r, axis) for x, r in zip(node.inputs, roles, strict=True)]
            return Combination(axis, _polynomial(node.op.scalar_op, node, operands)), None
        case ops.Moves() if isinstance(node.op, DimShuffle):
            return _dimshuffle(node, roles), None
        case ops.Reduces(by=ps.Add()) as action:
            return _sum(node, roles, action.axes, new_sum)
        case ops.Multiplies() if node.outputs[0].type.ndim == 2:
            return _matrix_product(node, roles, new_sum)
    raise _no_polynomial(node)


def _no_polynomial(node: Apply) -> NotAdditiveError:
    return NotAdditiveError(
        f"the operation {describe(node)} combines single records with a sum over records"
    )


def _record_axis(node: Apply, roles: Sequence[Role]) -> int:
    axes = {role.axis for role in roles if isinstance(role, Rows | Combination)}
    if len(axes) != 1 or any(isinstance(r, Rows) and r.records is not None for r in roles):
        raise _no_polynomial(node)
    return axes.pop()


def _terms(node: Apply, x: TensorVariable, role: Role, axis: int) -> Terms:
    """Write an operand as a combination, in a precision in which its products don't overflow."""
    one, x = pt.ones((1,) * x.type.ndim, dtype="float64"), x.astype("float64")
    match role:
        case Combination():
            return role.terms
        case Rows():
            return ((one, x),)
        case Fixed() | FunctionOfSums() if x.type.shape[axis] == 1:
            return ((x, one),)
        case Fixed():
            return ((one, x),)  # a public column
    raise _no_polynomial(node)


def _polynomial(scalar_op: ps.ScalarOp, node: Apply, operands: list[Terms]) -> Terms:
    """Apply a polynomial operation to combinations."""
    first, *others = operands
    match scalar_op:
        case ps.Add():
            return tuple(term for operand in operands for term in operand)
        case ps.Sub():
            [second] = others
            return first + tuple((-c, x) for c, x in second)
        case ps.Neg():
            return tuple((-c, x) for c, x in first)
        case ps.Mul():
            return _product(*operands)
        case ps.Sqr():
            return _product(first, first)
        case ps.Identity():
            return first
        case ps.Cast() if node.outputs[0].dtype.startswith("float"):
            return first
        case ps.TrueDiv() if len(others[0]) == 1:
            [(c, x)] = others[0]
            return tuple((a / c, b / x) for a, b in first)
        case ps.Pow() if (power := _small_power(node.inputs[1])) is not None:
            return _product(*[first] * power)
    raise _no_polynomial(node)


def _product(*operands: Terms) -> Terms:
    terms = []
    for factors in product(*operands):
        coefficients, rows = zip(*factors, strict=True)
        terms.append((pt.mul(*coefficients), pt.mul(*rows)))
    return tuple(terms)


def _small_power(exponent: TensorVariable) -> int | None:
    known = known_value(exponent)
    values = np.zeros(0) if known is None else np.unique(known)
    return int(values[0]) if values.size == 1 and values[0] in range(1, MAX_POWER + 1) else None


def _dimshuffle(node: Apply, roles: Sequence[Role]) -> Role:
    [role] = roles
    assert isinstance(role, Combination)
    x, order = node.inputs[0], node.op.new_order
    if role.axis not in order:
        raise _no_polynomial(node)
    terms = []
    for pair in role.terms:
        # Coefficients, and rows that are all equal, may be shorter than the whole.
        dropped = [k for k in range(x.type.ndim) if k not in order]
        if any(part.type.shape[k] != 1 for part in pair for k in dropped):
            raise _no_polynomial(node)
        terms.append(tuple(part.dimshuffle(order) for part in pair))
    return Combination(order.index(role.axis), tuple(terms))


def _sum(node: Apply, roles: Sequence[Role], axes: Sequence[int], new_sum: NewSum) -> Combined:
    [role], [x] = roles, node.inputs
    assert isinstance(role, Combination)
    if role.axis not in axes:
        if any(c.type.shape[k] != 1 for c, _ in role.terms for k in axes):
            raise _no_polynomial(node)
        whole = ((c, _broadcast_like(rows, x, axes)) for c, rows in role.terms)
        terms = tuple((c.squeeze(axes), rows.sum(axes)) for c, rows in whole)
        return Combination(role.axis - sum(k < role.axis for k in axes), terms), None

    others = [k for k in axes if k != role.axis]
    parts = []
    for c, rows in role.terms:
        of_each = pt.moveaxis(_broadcast_like(rows, x, (role.axis, *others)), role.axis, 0)
        parts.append(c * pt.expand_dims(new_sum(of_each), role.axis))
    return FunctionOfSums(), pt.add(*parts).sum(axes).astype(node.outputs[0].dtype)


def _broadcast_like(rows: TensorVariable, x: TensorVariable, axes: Sequence[int]) -> TensorVariable:
    """Give ``rows`` the length of ``x`` along some axes, where it has length 1."""
    shape = [x.shape[k] if k in axes else rows.shape[k] for k in range(x.type.ndim)]
    return pt.broadcast_to(rows, shape)


def _matrix_product(node: Apply, roles: Sequence[Role], new_sum: NewSum) -> Combined:
    left, right = node.inputs
    if [getattr(role, "axis", None) for role in roles] != [1, 0]:
        raise _no_polynomial(node)
    # sum_i (c_a x_ia) (d_b y_ib) = c_a d_b sum_i x_ia y_ib.
    parts = []
    for c, x in _terms(node, left, roles[0], 1):
        for d, y in _terms(node, right, roles[1], 0):
            of_left, of_right = _broadcast_like(x, left, (1,)).T, _broadcast_like(y, right, (0,))
            parts.append((c * d) * new_sum(of_left[:, :, None] * of_right[:, None, :]))
    return FunctionOfSums(), pt.add(*parts).astype(node.outputs[0].dtype)
