"""What records contribute, for others in their place: one at each value, or some of them."""

from collections.abc import Callable, Mapping, Sequence

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.basic import Join
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.errors import NotAdditiveError, UnknownOperationError
from pymc_dapper.graphs.rebuild import dependent_variables
from pymc_dapper.records.reading.roles import Fixed, Role, Rows
from pymc_dapper.records.reading.rules import follow_records


def rows_of_others(
    contributions: TensorVariable,
    at: Mapping[Variable, Variable],
    covariate: Callable[[TensorVariable, int], Variable | None],
) -> TensorVariable | None:
    """Write what records contribute with others in their place, of which there may be more or less.

    Parameters
    ----------
    contributions : TensorVariable, shape (n, ...)
        What each record contributes to a sum.
    at : mapping of Variable to Variable
        What to put in the place of each record variable, with a row for each of the others.
    covariate : callable
        ``covariate(x, axis)`` returns what to put in the place of what isn't a record, but has an
        entry for each along an axis; None if there is no such thing.

    Returns
    -------
    TensorVariable, shape (number of others, ...), or None
        None if an operation isn't known to treat each record by itself, whatever their number.
    """
    dependent = dependent_variables(at, [contributions])
    roles: dict[Variable, Role] = {record: Rows(0) for record in at}
    new = dict(at)
    for node in io_toposort([], [contributions]):
        if dependent.isdisjoint(node.outputs):
            continue
        given = [roles.get(x, Fixed()) for x in node.inputs]
        try:
            role, *others = follow_records(node.op, node, given)
        except (NotAdditiveError, UnknownOperationError):
            return None
        if others or not isinstance(role, Rows) or role.records is not None:
            return None
        inputs = _inputs(node, role, [new.get(x) for x in node.inputs], covariate)
        if inputs is None:
            return None
        roles[node.outputs[0]] = role
        new[node.outputs[0]] = node.clone_with_new_inputs(inputs, strict=False).outputs[0]
    rows = new.get(contributions)
    return rows if isinstance(rows, TensorVariable) else None


def _inputs(
    node: Apply,
    role: Rows,
    new: Sequence[Variable | None],
    covariate: Callable[[TensorVariable, int], Variable | None],
) -> list[Variable] | None:
    """Return the inputs for other records; None if the operation isn't one of these."""

    def in_place(x: Variable, replaced: Variable | None) -> Variable | None:
        if replaced is not None or x.type.shape[role.axis] == 1:
            return x if replaced is None else replaced
        return covariate(x, role.axis)

    kept: list[Variable | None]
    match node.op:
        case Elemwise() | Join():
            kept = [in_place(x, replaced) for x, replaced in zip(node.inputs, new, strict=True)]
        case DimShuffle() | CAReduce():
            kept = list(new)
        case Subtensor():
            kept = [new[0], *node.inputs[1:]]
        case AdvancedSubtensor():
            # A public table that is looked up by records, and by nothing else.
            kept = [node.inputs[0] if new[0] is None else None, *new[1:]]
        case _:
            return None
    found = [x for x in kept if x is not None]
    return found if len(found) == len(node.inputs) else None
