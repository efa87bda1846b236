"""The factors of a model's log-density through which the records act on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytensor.graph.basic import Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.reading.errors import NotAdditiveError, UnknownOperationError
from pymc_dapper.reading.graphs import inline_symbolic_ops
from pymc_dapper.reading.operations import describe, follow_records
from pymc_dapper.reading.roles import Fixed, FunctionOfSums, Role, Rows, SumOverRecords


@dataclass(frozen=True)
class RecordSum:
    """A sum over records, the boundary between what a record adds and what is done with the total.

    Attributes
    ----------
    total : TensorVariable
        The sum, as it stands in the model's graph.
    contributions : TensorVariable, shape (n, *shape of the total)
        What each record adds to it.
    """

    total: TensorVariable
    contributions: TensorVariable


@dataclass(frozen=True)
class AdditiveFactor:
    """A factor that sees the records through sums over them: g(sum_i t_i(x_i)).

    Attributes
    ----------
    name : str
        Name of the Potential or random variable.
    log_density : TensorVariable, scalar
        The factor's log-density, a function of the totals of ``sums``.
    sums : tuple of RecordSum
        The sums over records it depends on.
    """

    name: str
    log_density: TensorVariable
    sums: tuple[RecordSum, ...]


@dataclass(frozen=True)
class SeparableFactor:
    """A factor with one value per record, in which records don't interact: sum_i l_i(x_i).

    Attributes
    ----------
    name : str
        Name of the Potential or random variable.
    log_densities : TensorVariable, shape (n,)
        The value for each record.
    """

    name: str
    log_densities: TensorVariable


Factor = AdditiveFactor | SeparableFactor


def read_factors(
    log_densities: Mapping[str, TensorVariable], records: Sequence[TensorVariable]
) -> list[Factor]:
    """Find out how the records enter each factor.

    Parameters
    ----------
    log_densities : mapping of str to TensorVariable
        Named factors of the log-density, in terms of value variables.
    records : sequence of TensorVariable
        Value variables of the records, with the record axis first.

    Returns
    -------
    list of Factor
        Those factors that depend on the records.

    Raises
    ------
    NotAdditiveError
        If a factor mixes records in another way than by sums.
    UnknownOperationError
        If a factor has an operation on the record axis for which there is no rule.
    """
    names = list(log_densities)
    graphs = inline_symbolic_ops(list(log_densities.values()))
    factors: list[Factor] = []
    for name, graph in zip(names, graphs, strict=True):
        roles: dict[Variable, Role] = {record: Rows(0) for record in records}
        try:
            sums = _follow(graph, records, roles)
        except (NotAdditiveError, UnknownOperationError) as error:
            raise type(error)(_explain(name, records, error)) from None
        match roles.get(graph, Fixed()):
            case Rows(axis):
                others = [k for k in range(graph.type.ndim) if k != axis]
                factors.append(SeparableFactor(name, graph.sum(axis=others) if others else graph))
            case FunctionOfSums() | SumOverRecords():
                factors.append(AdditiveFactor(name, graph.sum(), tuple(sums)))
    return factors


def _follow(
    graph: TensorVariable, records: Sequence[TensorVariable], roles: dict[Variable, Role]
) -> list[RecordSum]:
    """Walk from the records to ``graph``, note every variable's role and return the sums met."""
    sums = []
    for node in io_toposort([], [graph]):
        inputs = [roles.get(variable, Fixed()) for variable in node.inputs]
        if all(isinstance(role, Fixed) for role in inputs):
            continue
        per_record = any(isinstance(role, Rows) for role in inputs)
        of_sums = any(isinstance(role, FunctionOfSums | SumOverRecords) for role in inputs)
        outputs: Sequence[Role]
        if not per_record:
            outputs = [FunctionOfSums()] * len(node.outputs)
        elif of_sums:
            raise NotAdditiveError(
                f"the operation {describe(node)} combines single records with a sum over records"
            )
        else:
            outputs = follow_records(node.op, node, inputs)
        for variable, role in zip(node.outputs, outputs, strict=True):
            roles[variable] = role
            if isinstance(role, SumOverRecords):
                sums.append(RecordSum(variable, role.contributions))
    return sums


def _explain(name: str, records: Sequence[TensorVariable], error: Exception) -> str:
    record_names = ", ".join(f"'{record.name}'" for record in records)
    return (
        f"DapperStep can't read how the records {record_names} enter '{name}': {error}. A record's "
        "update needs factors that see the records through sums over them (such as counts, totals "
        "or means), or that have one value per record."
    )
