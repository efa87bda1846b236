"""Contributions with other records in place of the model's: one at each value, or a block."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs import ops
from pymc_dapper.graphs.errors import NotAdditiveError, UnknownOperationError
from pymc_dapper.graphs.naming import describe
from pymc_dapper.graphs.rebuild import dependent_variables
from pymc_dapper.records.reading.roles import Fixed, Role, Rows
from pymc_dapper.records.reading.rules import follow_records

InputsOf = Callable[[Apply, Rows, Sequence[Variable | None]], Sequence[Variable]]
"""``inputs_of(node, rows, new)``: an operation's inputs for other records, given those among them
that depend on records; None for others."""


def rows_of_others(
    contributions: TensorVariable,
    at: Mapping[Variable, Variable],
    covariate: Callable[[TensorVariable, int], Variable | None],
) -> TensorVariable | None:
    """Write contributions of other records in place of the model's; their number may differ.

    ``at`` replaces each record variable, with a row for each of the others. ``covariate(x, axis)``
    returns the replacement of a variable that isn't a record but has an entry for each along an
    axis, or None. Returns None if an operation isn't known to treat records separately for any
    number of records.
    """
    try:
        _, written = for_others(contributions, at, partial(_inputs, covariate=covariate))
    except (NotAdditiveError, UnknownOperationError):
        return None
    return written if isinstance(written, TensorVariable) else None


def for_others(
    graph: TensorVariable, at: Mapping[Variable, Variable], inputs_of: InputsOf
) -> tuple[Rows, Variable]:
    """Write a graph for other records; returns its role, too.

    Raises NotAdditiveError or UnknownOperationError if it isn't known to treat records separately.
    """
    dependent = dependent_variables(at, [graph])
    roles: dict[Variable, Rows] = {record: Rows(0) for record in at}
    new = dict(at)
    for node in io_toposort(list(at), [graph]):
        if dependent.isdisjoint(node.outputs):
            continue
        given = [roles.get(x, Fixed()) for x in node.inputs]
        rows = _only_rows(node, given)
        inputs = inputs_of(node, rows, [new.get(x) for x in node.inputs])
        of_others = node.clone_with_new_inputs(list(inputs), strict=False)
        # That it acts likewise on the others: they may be more or less.
        if _only_rows(of_others, given).axis != rows.axis:
            raise not_separate(node)
        roles[node.outputs[0]] = rows
        new[node.outputs[0]] = _of_known_shape(of_others)
    if graph not in new:
        raise NotAdditiveError(f"{graph} doesn't depend on records")
    return roles[graph], new[graph]


def not_separate(node: Apply) -> NotAdditiveError:
    """Make the error for an operation that may mix records."""
    return NotAdditiveError(
        f"the operation {describe(node)} isn't known to treat each record by itself"
    )


def _only_rows(node: Apply, roles: Sequence[Role]) -> Rows:
    """Return the role of the only output, whose slice i must depend on record i."""
    role, *others = follow_records(node.op, node, roles)
    if others or not isinstance(role, Rows) or role.records is not None:
        raise not_separate(node)
    return role


def _of_known_shape(node: Apply) -> TensorVariable:
    """Return the only output, with its shape if that follows from the operation."""
    [output], on_entries = node.outputs, ops.scalar_of(node)
    if None not in output.type.shape or on_entries is None:
        return output
    shape = Elemwise(on_entries)(*node.inputs).type.shape
    return output if shape == output.type.shape else pt.specify_shape(output, shape)


def _inputs(
    node: Apply,
    role: Rows,
    new: Sequence[Variable | None],
    covariate: Callable[[TensorVariable, int], Variable | None],
) -> list[Variable]:
    """Return the inputs for other records, where they are known for the operation."""

    def in_place(x: Variable, replaced: Variable | None) -> Variable | None:
        axis = role.axis + x.type.ndim - node.outputs[0].type.ndim
        if replaced is not None or axis < 0 or x.type.shape[axis] == 1:
            return x if replaced is None else replaced
        return covariate(x, axis)

    pairs = list(zip(node.inputs, new, strict=True))
    kept: list[Variable | None]
    match ops.action_of(node.op, node):
        case ops.Maps(inputs=None) | ops.Moves(inputs=[_, _, *_]):
            kept = [in_place(x, replaced) for x, replaced in pairs]
        case ops.Moves(all=True) if len(pairs) > 1:
            kept = [None]  # its target shape may contain the number of records
        case ops.Moves() | ops.Reduces():
            # Look-up tables and bounds of slices are the same for all records.
            kept = [
                x if replaced is None and (x is node.inputs[0] or _is_number(x)) else replaced
                for x, replaced in pairs
            ]
        case _:
            kept = [None]
    found = [x for x in kept if x is not None]
    if len(found) < len(node.inputs):
        raise not_separate(node)
    return found


def _is_number(x: Variable) -> bool:
    return getattr(x.type, "ndim", 0) == 0
