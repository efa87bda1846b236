"""How a model depends on records with few values: through the table of their counts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model, logp
from pymc.vartypes import continuous_types
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph import Apply, Constant, Variable, ancestors
from pytensor.tensor.random import basic as laws
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.bounds import Bounds
from pymc_dapper.graphs.checks import localise_checks
from pymc_dapper.graphs.errors import NotAdditiveError, UnknownOperationError
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.loops import without_loops
from pymc_dapper.graphs.rebuild import inline_symbolic_ops, rebuild, with_static_shape
from pymc_dapper.graphs.support import bounds_by_support, largest_length
from pymc_dapper.graphs.view import view_of
from pymc_dapper.records.reading.axis import depends_on_others
from pymc_dapper.records.reading.factors import RecordSum, RecordWalk
from pymc_dapper.records.reading.finite import support_of_entries
from pymc_dapper.records.reading.roles import Combination, Fixed, FunctionOfSums, Rows
from pymc_dapper.tabulation.at_cells import AtCells, of_all_records
from pymc_dapper.tabulation.cliques import Given, all_earlier, cliques, given_of
from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.long_form import LongForm
from pymc_dapper.tabulation.rows import DistinctRows, distinct_rows

NOT_FEW_VALUES = "not of a discrete distribution with few values"
"""Why some variables can't be counted."""
MOST_VALUES = 256
"""Most values of a variable, and most joint values where records are marginalised."""
MOST_CELLS = 4096
"""Most joint values of its variables for which a table may have cells."""


@dataclass(frozen=True, eq=False)
class SumGraph:
    """A graph of the model that depends on the records through sums over them."""

    name: str
    """The factor or Deterministic that it belongs to."""
    graph: TensorVariable
    """The graph, a function of the totals of ``sums``."""
    sums: tuple[RecordSum, ...]
    """The sums over records."""


@dataclass(frozen=True, eq=False)
class PublicArray:
    """A public array with an entry for each record along an axis."""

    array: Variable
    axis: int
    at_rows: TensorVariable
    """The variable for its distinct rows: a constant, or a placeholder for data."""
    values: np.ndarray
    """The distinct rows, the record axis first."""
    data: SharedVariable | None
    """The data that it is, if it stays data."""


class ReadInTerms:
    """A model's graphs in terms of placeholders, with all known shapes static.

    ``placeholders`` maps the model's parameters and data to their placeholders. ``shape`` is the
    records'. Of a matrix, they are its entries, in ``long_form``.
    """

    def __init__(self, model: Model, rvs: Sequence[TensorVariable], *, by_entry: bool = False):
        view = view_of(model)
        known: dict[Variable, Variable] = {**view.dims, **view.data}
        self.placeholders: dict[Variable, TensorVariable] = dict(view.data)
        self._known, self._rvs = known, rvs
        for rv in model.basic_RVs:
            if rv in model.observed_RVs:
                value = model.rvs_to_values[rv]
                known[rv] = known.get(value, value)
                continue
            [sized] = rebuild([rv], known, with_static_shape)
            known[rv] = sized.type.clone()(rv.name)
            if rv not in rvs:
                self.placeholders[rv] = known[rv]
        self.records = [known[rv] for rv in rvs]
        self.shape = self.records[0].type.shape
        self.long_form = None
        if len(rvs) == 1 < len(self.shape) and None not in self.shape and not by_entry:
            self.long_form = LongForm(self.records[0], view.data.values())
            self.records = [self.long_form.entries]

    def __call__(self, graphs: Sequence[Variable]) -> list[Any]:
        """Rewrite graphs of the model's random variables."""
        return rebuild(list(graphs), self._known, self._with_known_shape)

    def _with_known_shape(self, node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        return largest_length(node, inputs, self._supports) or with_static_shape(node, inputs)

    def _supports(self) -> dict[Variable, Bounds]:
        return {self._known[rv]: bounds_by_support(rv) for rv in self._rvs}

    def check_by_record(self, graphs: Sequence[TensorVariable]) -> list[TensorVariable]:
        """Make PyMC's checks of parameters record by record, not of all records at once."""
        n = self.records[0].type.shape[0]
        leaves = [x for x in ancestors(graphs) if x.owner is None]
        public = [x for x in leaves if n in getattr(x.type, "shape", ())]
        return localise_checks(graphs, list(dict.fromkeys([*self.records, *public])))

    def parameter(self, graph: Variable, core: int = 0) -> TensorVariable:
        """Rewrite a parameter of the records' distribution, with ``core`` axes of its own."""
        [written] = self.check_by_record(inline_symbolic_ops(self([graph])))
        return written if self.long_form is None else self.long_form.of(written, core)


@dataclass(frozen=True, eq=False)
class TableReading:
    """How a model depends on its records: everything that a table of counts must replace.

    All graphs are in terms of placeholders.
    """

    model: Model
    rvs: tuple[TensorVariable, ...]
    """The record variables, those that others depend on first."""
    records: tuple[TensorVariable, ...]
    """Their placeholders, shape (n,) each."""
    supports: tuple[range, ...]
    """The values of each."""
    chances: tuple[TensorVariable | None, ...]
    """For each variable with the values 0 and 1, the probability of 1; None for others."""
    probabilities: tuple[TensorVariable, ...]
    """For each variable, the probabilities of its values: shape (number of values,) or (n, ...)."""
    read: ReadInTerms
    """Rewrites graphs of the model in terms of placeholders."""
    seen: dict[Variable, SumGraph]
    """Functions of sums, by the model's variable: Potentials, Deterministics, parameters of
    observed variables, and statistics of mechanisms."""
    answers: dict[str, TensorVariable]
    """Factors with a value for each record, by name."""
    given: Given
    """For each variable, the numbers of the earlier ones that it is counted together with."""
    rows: DistinctRows
    """The distinct rows of public data."""
    public: tuple[PublicArray, ...] = ()
    """The public data."""
    by_entry: TensorVariable | None = None
    """The log-likelihood of each record, summed over its values, if that is written by entry."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the record variables in the model."""
        return self.read.shape

    @property
    def n(self) -> int:
        """Number of records: of a matrix, of its entries."""
        return prod(self.shape)

    @property
    def tables(self) -> list[tuple[int, ...]]:
        """The variables of each table that isn't a margin of a later one."""
        return cliques(self.given)

    @property
    def n_cells(self) -> int:
        """Number of cells: of rows, times values."""
        return sum(prod(self.shape_of(table)) for table in self.tables)

    @property
    def sums(self) -> list[RecordSum]:
        """The sums over records that anything depends on."""
        return [each for part in self.seen.values() for each in part.sums]

    @property
    def knows_answers(self) -> bool:
        """Whether no parameters determine what is observed of each record."""
        free = {self.read.placeholders.get(rv) for rv in self.model.free_RVs}
        return free.isdisjoint(ancestors(list(self.answers.values())))

    @property
    def given_answers(self) -> bool:
        """Whether the records are in one table, whose probabilities are those given the answers.

        Something else than Deterministics must depend on such a table, as it is for CountStep.
        """
        released = not self.seen.keys() <= set(self.model.deterministics)
        return len(self.tables) == 1 and released and not self.knows_answers

    @property
    def names(self) -> str:
        """The records, for messages."""
        return ", ".join(f"'{rv.name}'" for rv in self.rvs)

    def shape_of(self, table: Sequence[int]) -> tuple[int, ...]:
        """Return the number of rows, and of the values of some variables."""
        return (len(self.rows), *(len(self.supports[k]) for k in table))

    def seen_by(self, graph: TensorVariable) -> list[int]:
        """Return which variables a graph depends on."""
        beneath = set(ancestors([graph]))
        return [k for k, x in enumerate(self.records) if x in beneath]

    def table_with(self, graph: TensorVariable) -> tuple[int, ...]:
        """Return the smallest table of all variables that a graph depends on."""
        seen = set(self.seen_by(graph))
        return min((x for x in self.tables if seen <= set(x)), key=lambda x: prod(self.shape_of(x)))

    def count(self, table: Sequence[int], indices: Sequence[np.ndarray]) -> np.ndarray:
        """Count records by row, and by the values of a table's variables.

        ``indices`` has which of its values each record has, for each variable of a reading. Shape
        (number of rows, numbers of values).
        """
        shape = self.shape_of(table)
        own = np.zeros(self.n, dtype=np.int64) if self.rows.own is None else self.rows.own
        cells = np.ravel_multi_index((own, *(indices[k] for k in table)), shape)
        return np.bincount(cells, minlength=prod(shape)).reshape(shape)

    def in_turn(self, split: Callable[[int, np.ndarray], np.ndarray]) -> list[np.ndarray]:
        """Make a table of each variable from the margin of an earlier one.

        ``split`` is given the variable's number, and how many records there are by row and by the
        values of what it is given.
        """
        tables: list[np.ndarray] = []
        for k, given in enumerate(self.given):
            totals = self.rows.sizes
            if given:
                earlier = (*self.given[given[-1]], given[-1])
                others = tuple(1 + axis for axis, j in enumerate(earlier) if j not in given)
                totals = tables[given[-1]].sum(axis=others)
            tables.append(split(k, totals))
        return tables

    def at_cells(
        self, graph: TensorVariable, table: Sequence[int], cells: slice = slice(None)
    ) -> TensorVariable:
        """Rewrite a graph with an entry for each record along its first axis.

        It is given one for each cell, or some of them: of distinct rows, by values of a table's
        variables.
        """
        public = {(x.array, x.axis): x.at_rows for x in self.public}
        values = cell_values([self.supports[k] for k in table])
        which, value = np.divmod(np.arange(len(self.rows) * len(values))[cells], len(values))
        as_they_are = np.array_equal(which, np.arange(len(self.rows)))

        def leaf(x: TensorVariable, axis: int) -> TensorVariable:
            found = public[x, axis]
            if as_they_are:
                return found
            if isinstance(found, Constant):
                return pt.constant(found.data.take(which, axis=axis))
            return found.take(pt.constant(which), axis=axis)

        at: dict[Variable, TensorVariable] = {
            self.records[k]: pt.constant(column.astype(self.records[k].dtype))
            for k, column in zip(table, values[value].T, strict=True)
        }
        written = AtCells(self.n, len(which), at, leaf).rewrite(graph)
        known = {x.array for x in self.public if x.array not in ancestors([x.at_rows])}
        left = known & set(ancestors([written]))
        if left:
            names = ", ".join(str(x) for x in left)
            raise TabulationError(f"{names} is used both record by record and as a whole")
        return written


def cell_values(supports: Sequence[range]) -> np.ndarray:
    """All joint values, shape (number of them, number of variables), the last running fastest."""
    shape = (prod(map(len, supports)), len(supports))
    return np.array(list(product(*supports)), dtype=np.int64).reshape(shape)


def read_table(model: Model, rvs: Sequence[TensorVariable]) -> TableReading:
    """Read how a model depends on records that can be counted; the cost doesn't grow with n.

    Raises
    ------
    TabulationError
        If they can't be counted, with the reason.
    """
    rvs = [rv for rv in model.free_RVs if rv in rvs]
    _check_children(model, rvs)
    read = ReadInTerms(model, rvs)
    supports = _check_values(rvs, read.records)
    n = read.records[0].type.shape[0]
    chances = [_chance(rv, read) for rv in rvs]
    laws_of_each = zip(rvs, supports, chances, strict=True)
    probabilities = [_probabilities(*each, read) for each in laws_of_each]
    for rv, p in zip(rvs, probabilities, strict=True):
        if (why := depends_on_others(p, 0, read.records)) is not None:
            raise TabulationError(f"the prior of '{rv.name}' ties records together: {why}")
    seen: dict[Variable, SumGraph] = {}
    answers: dict[str, TensorVariable] = {}

    def follow(name: str, variable: TensorVariable) -> SumGraph | TensorVariable:
        part = _follow(name, read([variable])[0], read)
        if isinstance(part, SumGraph) and part.sums:
            seen[variable] = part
        return part

    for variable in (*model.potentials, *model.deterministics):
        part = follow(variable.name, variable)
        if isinstance(part, SumGraph):
            continue
        if variable in model.deterministics:
            raise TabulationError(f"'{variable.name}' has a value for each record")
        answers[variable.name] = part
    for rv in model.observed_RVs:
        parameters = [x for x in rv.owner.inputs if not set(rvs).isdisjoint(ancestors([x]))]
        if not parameters:
            continue
        [density] = read([logp(rv, model.rvs_to_values[rv])])
        part = _follow(rv.name, density, read)
        if not isinstance(part, SumGraph):
            answers[rv.name] = part
        elif not all(isinstance(follow(rv.name, x), SumGraph) for x in parameters):
            raise TabulationError(f"'{rv.name}' depends on single records")
    for variable in (*model.potentials, *model.observed_RVs):
        statistic = getattr(variable.tag, "statistic", None)
        if statistic is not None and variable.name not in answers and statistic not in seen:
            follow(variable.name, statistic)
    if not seen and not answers:
        listed = ", ".join(f"'{rv.name}'" for rv in rvs)
        raise TabulationError(f"nothing in the model depends on the records {listed}")
    reading = TableReading(
        model=model,
        rvs=tuple(rvs),
        records=tuple(read.records),
        supports=tuple(supports),
        chances=tuple(chances),
        probabilities=tuple(probabilities),
        read=read,
        seen=seen,
        answers=answers,
        given=all_earlier(len(rvs)),
        rows=DistinctRows(np.zeros(1, dtype=np.int64), np.array([n]), None),
    )
    if reading.sums:
        reading = replace(reading, given=_given(reading))
    check_sizes(reading)
    return _with_rows(reading)


def _given(reading: TableReading) -> Given:
    """Say which variables are counted together: as few as what sees them allows."""
    graphs = [*(x.contributions for x in reading.sums), *reading.answers.values()]
    together = [[*reading.seen_by(p), k] for k, p in enumerate(reading.probabilities)]
    return given_of(len(reading.rvs), [*together, *filter(None, map(reading.seen_by, graphs))])


def check_sizes(reading: TableReading) -> None:
    """Refuse tables of too many cells, and too many joint values of what is marginalised."""
    most = MOST_CELLS if reading.sums else MOST_VALUES
    for table in reading.tables:
        n_values = prod(len(reading.supports[k]) for k in table)
        if n_values > most:
            listed = ", ".join(f"'{reading.rvs[k].name}'" for k in table)
            raise TabulationError(f"{listed} can have {n_values} values, more than {most}")


def few_values(rv: TensorVariable) -> range | None:
    """Values of a vector or matrix of a discrete distribution with known bounds; else None."""
    return support_of_entries(rv) if rv.type.ndim else None


def _check_children(model: Model, rvs: Sequence[TensorVariable]) -> None:
    for rv in model.free_RVs:
        parents = [x.name for x in rvs if x in ancestors(rv.owner.inputs)]
        if parents and rv not in rvs:
            raise TabulationError(
                f"the distribution of '{rv.name}', which is free, depends on '{parents[0]}': pass "
                "both as records"
            )
        children = [x.name for x in rvs if rv in ancestors(x.owner.inputs)]
        one_each = rv.type.shape[:1] == rvs[0].type.shape[:1] and rv.dtype not in continuous_types
        if children and one_each and rv not in rvs:
            raise TabulationError(
                f"'{children[0]}' depends on '{rv.name}', which is free and has an entry for each "
                "record: pass both as records"
            )


def _check_values(rvs: Sequence[TensorVariable], records: Sequence[TensorVariable]) -> list[range]:
    supports = []
    for rv, x in zip(rvs, records, strict=True):
        values = few_values(rv)
        if values is None:
            raise TabulationError(f"'{rv.name}': {NOT_FEW_VALUES}")
        if None in x.type.shape or x.type.shape != records[0].type.shape or x.type.ndim > 1:
            raise TabulationError("the records aren't equally many, one of each variable")
        if x.type.shape[0] == 1:
            raise TabulationError(f"'{rv.name}' has a single record")
        if len(values) > MOST_VALUES:
            raise TabulationError(
                f"'{rv.name}' can have {len(values)} values, more than {MOST_VALUES}"
            )
        supports.append(values)
    return supports


def _chance(rv: TensorVariable, read: ReadInTerms) -> TensorVariable | None:
    """Return the probability of 1, of a variable with the values 0 and 1."""
    if not isinstance(rv.owner.op, laws.BernoulliRV):
        return None
    return read.parameter(rv.owner.op.dist_params(rv.owner)[0])


def _probabilities(
    rv: TensorVariable,
    values: range,
    chance: TensorVariable | None,
    read: ReadInTerms,
) -> TensorVariable:
    """Return the probabilities of a record's values, on the last axis."""
    if chance is not None:
        return pt.stack([1 - chance, chance], axis=-1)
    if isinstance(rv.owner.op, laws.CategoricalRV):
        return read.parameter(rv.owner.op.dist_params(rv.owner)[0], core=1)
    # PyMC's own density, one value after the other.
    densities = [
        pt.exp(read.parameter(logp(rv, pt.full(read.shape, value, dtype=rv.dtype))))
        for value in values
    ]
    return pt.stack(densities, axis=-1)


def _follow(name: str, graph: TensorVariable, read: ReadInTerms) -> SumGraph | TensorVariable:
    """Walk through a graph from the records on: to a function of sums, or a value for each."""
    records, graphs = read.records, without_loops(inline_symbolic_ops([graph]))
    if read.long_form is not None:
        graphs = [read.long_form(each) for each in graphs]
    [graph] = read.check_by_record(graphs)
    walk = RecordWalk(records)
    try:
        role, followed = walk.follow(graph)
    except UnknownOperationError as error:
        raise TabulationError(f"it isn't known how '{name}' depends on records: {error}") from None
    except NotAdditiveError as error:
        raise TabulationError(
            f"'{name}' depends on the records in another way than through sums: {error}"
        ) from None
    match role:
        case Fixed():
            return SumGraph(name, graph, ())
        case FunctionOfSums():
            return SumGraph(name, followed, tuple(_over_all(each, records) for each in walk.sums))
        case Rows(records=None):
            return walk.per_record(followed, role)
        case Combination():
            raise TabulationError(f"'{name}' combines single records with sums over all")
    raise TabulationError(f"'{name}' depends on single records")


def _over_all(each: RecordSum, records: Sequence[TensorVariable]) -> RecordSum:
    """Write contributions of picked records as zero for others.

    Inputs of the contributions that only give their shape are left out.
    """
    [contributions] = rebuild([each.contributions], None, with_static_shape)
    return RecordSum(each.total, of_all_records(contributions, records))


def _with_rows(reading: TableReading) -> TableReading:
    """Find the public data of records, and its distinct rows."""
    found: dict[tuple[Variable, int], TensorVariable] = {}

    def leaf(x: TensorVariable, axis: int) -> TensorVariable:
        return found.setdefault((x, axis), x)

    def collect(name: str, graphs: Sequence[TensorVariable]) -> None:
        # With as many cells as records, arrays are used directly.
        rewriter = AtCells(reading.n, reading.n, {x: x for x in reading.records}, leaf)
        for graph in graphs:
            try:
                rewriter.rewrite(graph)
            except (NotAdditiveError, UnknownOperationError, TabulationError) as error:
                raise TabulationError(f"'{name}' depends on single records: {error}") from None

    for rv, p in zip(reading.rvs, reading.probabilities, strict=True):
        if p.type.ndim > 1 and p.type.shape[0] != 1:  # not the same for all records
            collect(rv.name, [p])
    for name, each in reading.answers.items():
        collect(name, [each])
    for part in reading.seen.values():
        collect(part.name, [each.contributions for each in part.sums])
    free = set() if reading.sums else _free_by_record(reading)
    arrays = {}
    for (array, axis), x in found.items():
        value = np.arange(reading.n) if x in free else np.moveaxis(_value_of(reading, x), axis, 0)
        arrays[array, axis] = value
    rows = distinct_rows(list(arrays.values()), reading.n)
    if len(rows) == reading.n > 1 and reading.sums:
        named = [x.name for x, _ in found if x.name] or ["what is public of the records"]
        listed = " and ".join(f"'{name}'" for name in named)
        raise TabulationError(f"{listed} has as many distinct rows as there are records")
    public = []
    for (array, axis), values in arrays.items():
        of_rows = at_first(values, rows.first)
        if array in free:
            at_rows = array.take(of_rows, axis=axis)
            public.append(PublicArray(array, axis, at_rows, of_rows, None))
            continue
        at_rows = np.moveaxis(of_rows, 0, axis)
        data = _data_of(reading, array)
        # Real-valued data may change; integer data determine the rows.
        changes = data is not None and values.dtype.kind == "f"
        of_type = array.type.clone(shape=at_rows.shape)
        placeholder = of_type(array.name) if changes else pt.constant(at_rows)
        public.append(PublicArray(array, axis, placeholder, of_rows, data if changes else None))
    return replace(reading, rows=rows, public=tuple(public))


def _free_by_record(reading: TableReading) -> set[Variable]:
    """Find the placeholders of continuous free variables: each record has an entry of its own."""
    placeholders, free = reading.read.placeholders, reading.model.free_RVs
    return {placeholders[rv] for rv in free if rv in placeholders and rv.dtype in continuous_types}


def _value_of(reading: TableReading, x: Variable) -> np.ndarray:
    known = known_value(x)
    if known is not None:
        return known
    data = _data_of(reading, x)
    if data is not None:
        values = data.get_value(borrow=True)
        return values if x.type.ndim == values.ndim else values.ravel()  # in long form
    if x in reading.read.placeholders.values():
        raise TabulationError(
            f"the records depend on '{x.name}', which is free and has an entry for each of them"
        )
    raise TabulationError(f"it isn't known beforehand in what {x} differs between records")


def at_first(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return an array at the first record of each row."""
    return np.asarray(values[first])


def _data_of(reading: TableReading, x: Variable) -> SharedVariable | None:
    """Return the data of a placeholder."""
    long_form = reading.read.long_form
    for data, placeholder in reading.read.placeholders.items():
        flat = placeholder if long_form is None else long_form.flat.get(placeholder, placeholder)
        if x in (placeholder, flat) and isinstance(data, SharedVariable):
            return data
    return None
