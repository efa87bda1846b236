"""What is linear in the counts, with its coefficients: one small rule per operation."""

from collections.abc import Callable, Sequence

import numpy as np
import pytensor.sparse.math as sparse_math
import pytensor.tensor as pt
from pytensor import scalar as ps
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.basic import Alloc, Join, MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Dot
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
    indices_from_subtensor,
)
from scipy import sparse

from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import with_inputs
from pymc_dapper.graphs.terms.roles import Fixed, Indices, Linear, Role, all_indices, size

Known = Callable[[Variable], np.ndarray | None]

MOVES_FIRST_INPUT = (
    Alloc,
    DimShuffle,
    JoinDims,
    Reshape,
    ScalarFromTensor,
    SpecifyShape,
    SplitDims,
    Subtensor,
    AdvancedSubtensor,
    TensorFromScalar,
)
MOVES_ALL_INPUTS = (Join, MakeVector)


def elemwise(node: Apply, roles: Sequence[Role], shape: tuple[int, ...]) -> Linear | None:
    """Apply an elementwise operation; None if what comes out isn't linear with known coefficients.

    Parameters
    ----------
    node : Apply
        The operation.
    roles : sequence of Role
        The roles of its inputs.
    shape : tuple of int
        The shape of its output.
    """
    coefficients = _coefficients(node, roles, shape)
    if coefficients is None:
        return None
    matrix = None
    for coefficient, role in zip(coefficients, roles, strict=True):
        if not isinstance(role, Linear):
            continue
        rows = role.matrix[np.broadcast_to(all_indices(role.shape), shape).ravel()]
        if np.isscalar(coefficient):
            scaled = rows if coefficient == 1 else rows * coefficient
        else:
            scaled = sparse.diags_array(np.ravel(coefficient)) @ rows
        matrix = scaled if matrix is None else matrix + scaled
    if matrix is None:
        return None
    return Linear(shape, matrix.tocsr(), pt.broadcast_to(_offset(node, roles), shape))


def _coefficients(node: Apply, roles: Sequence[Role], shape: tuple[int, ...]) -> list | None:
    """Return what each input that is linear is multiplied by."""
    if not all(isinstance(role, Fixed | Linear) for role in roles):
        return None
    [output] = node.outputs
    match node.op.scalar_op:
        case ps.Add():
            return [1.0] * len(roles)
        case ps.Sub():
            return [1.0, -1.0]
        case ps.Neg():
            return [-1.0]
        case ps.Identity():
            return [1.0]
        case ps.Cast():
            keeps = output.dtype.startswith("float") or node.inputs[0].dtype.startswith("int")
            return [1.0] if keeps and output.dtype != "bool" else None
        case ps.Second():
            return [0.0, 1.0] if isinstance(roles[1], Linear) else None
        case ps.Mul() | ps.TrueDiv():
            return _scaling(node, roles, shape)
    return None


def _scaling(node: Apply, roles: Sequence[Role], shape: tuple[int, ...]) -> list | None:
    places = [k for k, role in enumerate(roles) if isinstance(role, Linear)]
    divides = isinstance(node.op.scalar_op, ps.TrueDiv)
    if len(places) != 1 or (divides and places != [0]):
        return None
    # By constants only: what is shared data may change from chain to chain.
    factor = np.ones(shape)
    for k, x in enumerate(node.inputs):
        if k == places[0]:
            continue
        value = constant_value(x)
        if value is None:
            return None
        factor = factor / value if divides else factor * value
    if not np.all(np.isfinite(factor)):
        return None
    coefficients: list = [0.0] * len(roles)
    coefficients[places[0]] = factor
    return coefficients


def total(node: Apply, role: Linear, targets: Indices, shape: tuple[int, ...]) -> Linear:
    """Sum over axes."""
    summing = sparse.csr_array(
        (np.ones(len(targets)), (targets, np.arange(len(targets)))),
        shape=(size(shape), len(targets)),
    )
    return Linear(shape, (summing @ role.matrix).tocsr(), _offset(node, [role]))


def transform(
    node: Apply, roles: Sequence[Role], shape: tuple[int, ...], known: Known
) -> Linear | None:
    """Apply a matrix product, a cumulative sum or an addition to some entries."""
    if not all(isinstance(role, Fixed | Linear) for role in roles):
        return None
    op = node.op
    if isinstance(op, Blockwise) and op.batch_ndim(node) == 0:
        op = op.core_op
    if isinstance(op, IncSubtensor | AdvancedIncSubtensor):
        return _addition(node, roles, shape, known)
    if isinstance(op, Dot | sparse_math.StructuredDot | sparse_math.Dot):
        matrix = _matrix_product(node, roles, known)
    elif isinstance(op, CumOp):
        matrix = _cumulative_sum(node, roles)
    else:
        return None
    return None if matrix is None else Linear(shape, matrix.tocsr(), _offset(node, roles))


def _matrix_product(node: Apply, roles: Sequence[Role], known: Known) -> sparse.csr_array | None:
    left, right = roles
    if isinstance(left, Linear) and isinstance(right, Linear):
        return None
    other = node.inputs[1] if isinstance(left, Linear) else node.inputs[0]
    values = _known_matrix(other, known)
    if values is None:
        return None
    if isinstance(right, Linear):
        n_columns = right.shape[1] if len(right.shape) > 1 else 1
        return sparse.kron(values, sparse.eye_array(n_columns), format="csr") @ right.matrix
    assert isinstance(left, Linear)
    n_rows = left.shape[0] if len(left.shape) > 1 else 1
    return sparse.kron(sparse.eye_array(n_rows), values.T, format="csr") @ left.matrix


def _known_matrix(x: Variable, known: Known) -> sparse.csr_array | None:
    if isinstance(x, Constant) and sparse.issparse(x.data):
        return sparse.csr_array(x.data)
    if not isinstance(x.type, pt.TensorType):
        return None
    value = known(x)
    if value is None or not np.all(np.isfinite(value)):
        return None
    return sparse.csr_array(np.atleast_2d(value.astype(float)))


def _cumulative_sum(node: Apply, roles: Sequence[Role]) -> sparse.csr_array | None:
    [role, *_] = roles
    if node.op.mode != "add" or not isinstance(role, Linear):
        return None
    axis = known_value(node.inputs[1]) if len(node.inputs) > 1 else node.op.axis
    if axis is None and len(role.shape) != 1:
        return None
    axis = 0 if axis is None else int(axis) % len(role.shape)
    before = size(role.shape[:axis])
    after = size(role.shape[axis + 1 :])
    below = sparse.csr_array(np.tri(role.shape[axis]))
    along = sparse.kron(sparse.kron(sparse.eye_array(before), below), sparse.eye_array(after))
    return along.tocsr() @ role.matrix


def _addition(
    node: Apply, roles: Sequence[Role], shape: tuple[int, ...], known: Known
) -> Linear | None:
    """Add to some entries, or replace them."""
    indices = _indices(node, node.inputs[2:], known)
    if indices is None:
        return None
    base, added, *_ = roles
    at = all_indices(shape)[indices]
    y = node.inputs[1]
    inside = added.shape if isinstance(added, Linear) else tuple(y.type.shape)
    if None in inside:
        return None
    from_ = np.broadcast_to(all_indices(inside), at.shape).ravel()
    at = at.ravel()
    if isinstance(base, Linear):
        matrix = base.matrix
        if node.op.set_instead_of_inc:
            kept = np.ones(size(shape))
            kept[at] = 0
            matrix = sparse.diags_array(kept) @ matrix
    else:
        assert isinstance(added, Linear)
        matrix = sparse.csr_array((size(shape), added.matrix.shape[1]))
    if isinstance(added, Linear):
        if node.op.set_instead_of_inc and len(np.unique(at)) < len(at):
            return None
        to = sparse.csr_array(
            (np.ones(len(at)), (at, from_)), shape=(size(shape), added.matrix.shape[0])
        )
        matrix = matrix + to @ added.matrix
    return Linear(shape, matrix.tocsr(), _offset(node, roles))


def _indices(node: Apply, inputs: Sequence[Variable], known: Known) -> tuple | None:
    values = [known(x) for x in inputs]
    if any(value is None for value in values):
        return None
    as_indices = [v.item() if v.ndim == 0 else v for v in values if v is not None]

    return tuple(indices_from_subtensor(as_indices, node.op.idx_list))


def moved_entries(
    node: Apply, roles: Sequence[Role], known: Known
) -> tuple[list[tuple[int, int]], Indices] | None:
    """Find out where an operation that only moves entries about takes each of them from.

    Parameters
    ----------
    node : Apply
        The operation.
    roles : sequence of Role
        The roles of its inputs.
    known : callable
        Value of a variable that is constant, or held fixed.

    Returns
    -------
    sources : list of (int, int)
        The inputs whose entries are moved, each with the number that its first entry has.
    positions : ndarray of int
        The number of the entry that each (flat) entry of the output is.
    """
    if isinstance(node.op, MOVES_FIRST_INPUT):
        places = [0]
    elif isinstance(node.op, MOVES_ALL_INPUTS):
        places = [k for k, x in enumerate(node.inputs)]
    elif isinstance(node.op, IncSubtensor | AdvancedIncSubtensor) and node.op.set_instead_of_inc:
        places = [0, 1]
    else:
        return None
    inputs: list[Variable] = []
    sources: list[tuple[int, int]] = []
    start = 0
    for k, x in enumerate(node.inputs):
        if k not in places:
            value = known(x) if isinstance(x.type, pt.TensorType) else None
            inputs.append(x if value is None else pt.constant(value))
            continue
        shape: tuple = getattr(roles[k], "shape", getattr(x.type, "shape", ()))
        if None in shape:
            return None
        numbers = pt.constant(start + all_indices(shape))
        scalar = not isinstance(x.type, pt.TensorType)
        inputs.append(pt.scalar_from_tensor(numbers) if scalar else numbers)
        sources.append((k, start))
        start += size(shape)
    [output] = with_inputs(node, inputs)
    if not isinstance(output.type, pt.TensorType):
        output = pt.tensor_from_scalar(output)
    positions = known_value(output)
    return None if positions is None else (sources, positions.ravel().astype(np.int64))


def joined(
    node: Apply,
    roles: Sequence[Role],
    shape: tuple[int, ...],
    sources: Sequence[int],
    positions: Indices,
) -> Linear | None:
    """Join inputs whose entries come to stand in ``positions``; None if one isn't linear."""
    chosen = [roles[k] for k in sources]
    if not all(isinstance(role, Fixed | Linear) for role in chosen):
        return None
    n_cells = next(role.matrix.shape[1] for role in chosen if isinstance(role, Linear))
    matrices = [
        role.matrix
        if isinstance(role, Linear)
        else sparse.csr_array((size(node.inputs[k].type.shape), n_cells))
        for k, role in zip(sources, chosen, strict=True)
    ]
    return Linear(shape, sparse.vstack(matrices, format="csr")[positions], _offset(node, roles))


def constant_value(x: Variable) -> np.ndarray | None:
    """Return the value of what is computed from constants and static shapes only."""
    if isinstance(x, Constant):
        return np.asarray(x.data)
    pending, seen = [x], {x}
    while pending:
        variable = pending.pop()
        if variable.owner is None:
            if not isinstance(variable, Constant):
                return None
        elif not isinstance(variable.owner.op, Shape | Shape_i):
            new = [each for each in variable.owner.inputs if each not in seen]
            pending += new
            seen.update(new)
    return known_value(x)


def _offset(node: Apply, roles: Sequence[Role]) -> Variable:
    """Apply a linear operation to the offsets."""
    inputs = [
        role.offset if isinstance(role, Linear) else x
        for x, role in zip(node.inputs, roles, strict=True)
    ]
    return with_inputs(node, inputs)[0]
