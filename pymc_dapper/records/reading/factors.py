"""Factors of a model's log-density that depend on the records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytensor.tensor as pt
from pytensor.graph import Apply, Variable
from pytensor.graph.basic import equal_computations
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs import ops
from pymc_dapper.graphs.checks import localise_checks
from pymc_dapper.graphs.errors import NotAdditiveError, UnknownOperationError
from pymc_dapper.graphs.loops import without_loops
from pymc_dapper.graphs.rebuild import inline_symbolic_ops, with_inputs
from pymc_dapper.records.reading import indexing  # noqa: F401  (registers its rules)
from pymc_dapper.records.reading.combinations import combine
from pymc_dapper.records.reading.roles import (
    Combination,
    Fixed,
    FunctionOfSums,
    Role,
    Rows,
    SumOverRecords,
)
from pymc_dapper.records.reading.rules import follow_records


@dataclass(frozen=True)
class RecordSum:
    """A sum over records: the boundary between contributions of records and the mechanism.

    Attributes
    ----------
    total : TensorVariable
        The sum, as in the model's graph.
    contributions : TensorVariable, shape (n, *shape of the total)
        What each record adds to it.
    """

    total: TensorVariable
    contributions: TensorVariable


@dataclass(frozen=True)
class _Factor:
    """A factor of the model's log-density."""

    name: str
    """Name of the Potential or random variable."""
    as_written: TensorVariable
    """Scalar: the factor's log-density as the model computes it."""


@dataclass(frozen=True)
class AdditiveFactor(_Factor):
    """A factor that depends on the records through sums over them: g(sum_i t_i(x_i)).

    Attributes
    ----------
    log_density : TensorVariable, scalar
        The factor's log-density, a function of the totals of ``sums``.
    sums : tuple of RecordSum
        The sums over records it depends on.
    expanded : bool
        Whether products of single records with sums over them were expanded. Digits may then be
        lost if the records lie far from zero.
    wrapped : TensorVariable
        The log-density as written, with the operations that wrap a graph.
    """

    log_density: TensorVariable
    sums: tuple[RecordSum, ...]
    expanded: bool
    wrapped: TensorVariable


@dataclass(frozen=True)
class SeparableFactor(_Factor):
    """A factor with one value per record, without interaction of records: sum_i l_i(x_i).

    Attributes
    ----------
    log_densities : TensorVariable, shape (n,)
        The value for each record.
    """

    log_densities: TensorVariable


@dataclass(frozen=True)
class FullFactor(_Factor):
    """A factor that can only be evaluated as a whole: h(x_1, ..., x_n).

    Attributes
    ----------
    reason : str
        Why it isn't a function of sums, with the operation that causes it.
    """

    reason: str


Factor = AdditiveFactor | SeparableFactor | FullFactor


def sums_of(factors: Sequence[AdditiveFactor]) -> list[RecordSum]:
    """Return the sums over records in any of the factors, each once."""
    return list({sum_.total: sum_ for factor in factors for sum_ in factor.sums}.values())


def read_factors(
    log_densities: Mapping[str, TensorVariable], records: Sequence[TensorVariable]
) -> list[Factor]:
    """Find how each factor depends on the records; factors that don't are left out.

    The log-densities, by name, are in terms of value variables; the records' have the record axis
    first. An operation on that axis without a rule is refused.
    """
    graphs = inline_symbolic_ops(list(log_densities.values()))
    factors: list[Factor] = []
    sums: list[RecordSum] = []
    localised = localise_checks(without_loops(graphs), records)
    each = zip(log_densities.items(), graphs, localised, strict=True)
    for (name, wrapped), written, graph in each:
        as_written = _total(written)
        walk = RecordWalk(records, known_sums=sums)
        try:
            role, followed = walk.follow(graph)
            if isinstance(role, Combination):
                raise NotAdditiveError(
                    "its value for a single record depends on a sum over all records"
                )
        except NotAdditiveError as error:
            factors.append(FullFactor(name, as_written, str(error)))
            continue
        except UnknownOperationError as error:
            record_names = ", ".join(f"'{record.name}'" for record in records)
            raise UnknownOperationError(
                f"DapperStep can't read how the records {record_names} enter '{name}': {error}"
            ) from None
        match role:
            case Rows():
                factors.append(SeparableFactor(name, as_written, walk.per_record(followed, role)))
            case FunctionOfSums() if followed.type.ndim == 0 and walk.sums[-1].total is followed:
                each = walk.sums[-1].contributions.astype(followed.dtype)
                factors.append(SeparableFactor(name, as_written, each))
            case FunctionOfSums():
                sums.extend(walk.sums)
                total = _total(followed)
                own = tuple(walk.sums)
                factor = AdditiveFactor(name, as_written, total, own, walk.expanded, wrapped)
                factors.append(factor)
    return factors


def _total(graph: TensorVariable) -> TensorVariable:
    return graph.sum() if graph.type.ndim else graph


class RecordWalk:
    """A walk through a graph from the records, which records how each variable depends on them.

    Records have the record axis first. Sums found on earlier walks are shared if they are found
    again.
    """

    def __init__(self, records: Sequence[TensorVariable], known_sums: Sequence[RecordSum] = ()):
        self._known_sums = known_sums
        self._n_records = records[0].shape[0]
        self._roles: dict[Variable, Role] = {record: Rows(0) for record in records}
        # Variables that the walk computes in another way than the model.
        self._rewritten: dict[Variable, Variable] = {}
        self.sums: list[RecordSum] = []  # sums found on the way
        # Whether products of single records with sums over them were expanded.
        self.expanded = False

    def follow(self, graph: TensorVariable) -> tuple[Role, TensorVariable]:
        """Walk to a graph: its role, and the graph with its sums replaced by those in ``sums``."""
        for node in io_toposort([], [graph]):
            inputs = [self._rewritten.get(variable, variable) for variable in node.inputs]
            roles = [self._roles.get(variable, Fixed()) for variable in inputs]
            if all(isinstance(role, Fixed) for role in roles):
                continue
            outputs = with_inputs(node, inputs)
            self._rewritten.update(zip(node.outputs, outputs, strict=True))
            self._visit(node, outputs[0].owner, roles)
        followed = self._rewritten.get(graph, graph)
        return self._roles.get(followed, Fixed()), followed

    def _visit(self, original: Apply, node: Apply, roles: Sequence[Role]) -> None:
        if ops.only_measures(node):
            return  # the number of records is public
        per_record = any(isinstance(role, Rows | Combination) for role in roles)
        mixed = any(isinstance(role, FunctionOfSums | Combination) for role in roles)
        if not per_record:
            self._roles.update(dict.fromkeys(node.outputs, FunctionOfSums()))
        elif mixed:
            role, replacement = combine(node, roles, self._sum)
            self.expanded = True
            output = node.outputs[0] if replacement is None else replacement
            self._rewritten[original.outputs[0]] = output
            self._roles[output] = role
        else:
            new_roles = follow_records(node.op, node, roles)
            for old, variable, role in zip(original.outputs, node.outputs, new_roles, strict=True):
                if isinstance(role, SumOverRecords):
                    self._rewritten[old] = self._boundary(variable, role)
                else:
                    self._roles[variable] = role

    def _boundary(self, variable: TensorVariable, role: SumOverRecords) -> TensorVariable:
        """Register a sum, and return what replaces the variable from here on."""
        contributions = role.contributions
        if role.records is not None:
            contributions = self._scatter(contributions, role.records)
        if role.offset is None:
            total = self._note(variable, contributions)
        else:
            total = role.offset + self._note(contributions.sum(axis=0), contributions)
            total = total.astype(variable.dtype)
        self._roles[total] = FunctionOfSums()
        return total

    def _sum(self, rows: TensorVariable) -> TensorVariable:
        rows = rows.astype("float64")
        total = self._note(rows.sum(axis=0), rows)
        self._roles[total] = FunctionOfSums()
        return total

    def _note(self, total: TensorVariable, contributions: TensorVariable) -> TensorVariable:
        for found in (*self.sums, *self._known_sums):
            same_type = found.total.type == total.type
            if same_type and equal_computations([found.contributions], [contributions]):
                break
        else:
            found = RecordSum(total, contributions)
        if found not in self.sums:
            self.sums.append(found)
        return found.total

    def _scatter(self, terms: TensorVariable, order: TensorVariable) -> TensorVariable:
        """Add up the terms of the same record."""
        shape = [self._n_records, *(terms.shape[k] for k in range(1, terms.type.ndim))]
        return pt.zeros(shape, dtype=terms.dtype)[order].inc(terms)

    def per_record(self, graph: TensorVariable, rows: Rows) -> TensorVariable:
        """Sum a graph with one slice per record over its other axes, shape (n,)."""
        others = [k for k in range(graph.type.ndim) if k != rows.axis]
        values = graph.sum(axis=others) if others else graph
        return values if rows.records is None else self._scatter(values, rows.records)
