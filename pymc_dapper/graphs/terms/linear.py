"""Linear functions of the counts and their coefficients: a small rule for each operation."""

from collections.abc import Callable, Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor import scalar as ps
from pytensor.graph import Apply, Constant, Variable
from pytensor.tensor.subtensor import indices_from_subtensor
from pytensor.tensor.variable import TensorVariable
from scipy import sparse

from pymc_dapper.graphs import ops
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import with_inputs
from pymc_dapper.graphs.terms.roles import Fixed, Linear, Role, all_indices, shaped, size

Known = Callable[[Variable], np.ndarray | None]


def elemwise(node: Apply, roles: Sequence[Role], shape: tuple[int, ...]) -> Linear | None:
    """Apply an elementwise operation; None if the result isn't linear with known coefficients."""
    coefficients = _coefficients(node, roles, shape)
    if coefficients is None:
        return None
    matrix = None
    for coefficient, role in zip(coefficients, roles, strict=True):
        if not isinstance(role, Linear):
            continue
        rows = role.matrix[np.broadcast_to(all_indices(role.shape), shape).ravel()]
        scaled = sparse.diags_array(np.broadcast_to(coefficient, shape).ravel()) @ rows
        matrix = scaled if matrix is None else matrix + scaled
    if matrix is None:
        return None
    return Linear(shape, matrix.tocsr(), shaped(_offset(node, roles), shape))


def _coefficients(node: Apply, roles: Sequence[Role], shape: tuple[int, ...]) -> list | None:
    """Return the factor of each linear input."""
    if not all(isinstance(role, Fixed | Linear) for role in roles):
        return None
    [output] = node.outputs
    match ops.scalar_of(node):
        case ps.Add() | ps.Identity():
            return [1.0] * len(roles)
        case ps.Sub():
            return [1.0, -1.0]
        case ps.Neg():
            return [-1.0]
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
    divides = isinstance(ops.scalar_of(node), ps.TrueDiv)
    if len(places) != 1 or (divides and places != [0]):
        return None
    # By constants only: shared data may change between chains.
    factor = np.ones(shape)
    for k, x in enumerate(node.inputs):
        if k == places[0]:
            continue
        value = known_value(x)
        if value is None:
            return None
        factor = factor / value if divides else factor * value
    if not np.all(np.isfinite(factor)):
        return None
    coefficients: list = [0.0] * len(roles)
    coefficients[places[0]] = factor
    return coefficients


def total(node: Apply, role: Linear, targets: np.ndarray, shape: tuple[int, ...]) -> Linear:
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
    match ops.action_of(node.op, node):
        case ops.Increments():
            return _addition(node, roles, shape, known)
        case ops.Multiplies():
            matrix = _matrix_product(node, roles, known)
        case ops.Accumulates(axes=[axis]):
            matrix = _cumulative_sum(roles[0], axis)
        case _:
            return None
    return None if matrix is None else Linear(shape, matrix.tocsr(), _offset(node, roles))


def _matrix_product(node: Apply, roles: Sequence[Role], known: Known) -> sparse.csr_array | None:
    left, right = roles
    if (isinstance(left, Linear) and isinstance(right, Linear)) or node.outputs[0].type.ndim > 2:
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


def _cumulative_sum(role: Role, axis: int) -> sparse.csr_array:
    assert isinstance(role, Linear)
    before = size(role.shape[:axis])
    after = size(role.shape[axis + 1 :])
    below = sparse.csr_array(np.tri(role.shape[axis]))
    along = sparse.kron(sparse.kron(sparse.eye_array(before), below), sparse.eye_array(after))
    return along.tocsr() @ role.matrix


def _addition(
    node: Apply, roles: Sequence[Role], shape: tuple[int, ...], known: Known
) -> Linear | None:
    """Add to some entries."""
    indices = _indices(node, node.inputs[2:], known)
    if indices is None:
        return None
    base, added, *_ = roles
    at = all_indices(shape)[indices]
    inside = added.shape if isinstance(added, Linear) else tuple(node.inputs[1].type.shape)
    if None in inside:
        return None
    if isinstance(base, Linear):
        matrix = base.matrix
    else:
        assert isinstance(added, Linear)
        matrix = sparse.csr_array((size(shape), added.matrix.shape[1]))
    if isinstance(added, Linear):
        from_ = np.broadcast_to(all_indices(inside), at.shape).ravel()
        sizes = size(shape), added.matrix.shape[0]
        to = sparse.csr_array((np.ones(at.size), (at.ravel(), from_)), shape=sizes)
        matrix = matrix + to @ added.matrix
    return Linear(shape, matrix.tocsr(), _offset(node, roles))


def _indices(node: Apply, inputs: Sequence[Variable], known: Known) -> tuple | None:
    values = [known(x) for x in inputs]
    if any(value is None for value in values) or not hasattr(node.op, "idx_list"):
        return None
    as_indices = [v.item() if v.ndim == 0 else v for v in values if v is not None]
    return tuple(indices_from_subtensor(as_indices, node.op.idx_list))


def shapes_of_inputs(node: Apply, roles: Sequence[Role]) -> list[tuple]:
    """Return the shapes of a node's inputs, from their roles if their types lack them."""
    pairs = zip(node.inputs, roles, strict=True)
    return [getattr(role, "shape", getattr(x.type, "shape", ())) for x, role in pairs]


def joined(
    node: Apply, roles: Sequence[Role], shape: tuple[int, ...], moved: ops.Origins
) -> Linear | None:
    """Join inputs whose entries are moved; None if an input isn't linear."""
    chosen = [roles[k] for k in moved.inputs]
    if not all(isinstance(role, Fixed | Linear) for role in chosen):
        return None
    n_cells = next(role.matrix.shape[1] for role in chosen if isinstance(role, Linear))
    matrices = [
        role.matrix
        if isinstance(role, Linear)
        else sparse.csr_array((size(node.inputs[k].type.shape), n_cells))
        for k, role in zip(moved.inputs, chosen, strict=True)
    ]
    rows = sparse.vstack(matrices, format="csr")[moved.numbers.ravel()]
    return Linear(shape, rows, _offset(node, roles))


def _offset(node: Apply, roles: Sequence[Role]) -> Variable:
    """Apply a linear operation to the offsets."""
    pairs = zip(node.inputs, roles, strict=True)
    inputs = [role.offset if isinstance(role, Linear) else x for x, role in pairs]
    return with_inputs(node, inputs)[0]


def single_value(x: Variable) -> TensorVariable | None:
    """Return a constant with the same value everywhere as a scalar."""
    value = known_value(x)
    if value is None or value.size == 0 or not np.all(value == value.flat[0]):
        return None
    return pt.constant(np.asarray(value.flat[0]))
