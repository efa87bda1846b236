"""The model of counts that a reading of records describes."""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.sparse
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph import Constant, Variable, ancestors, explicit_graph_inputs
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.variable import TensorVariable
from scipy import sparse

from pymc_dapper.graphs.asked_once import initial_point
from pymc_dapper.graphs.bounds import Bounds, bounds_of
from pymc_dapper.graphs.errors import FAILURES
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import dependent_variables, rebuild
from pymc_dapper.graphs.support import bounds_by_support
from pymc_dapper.records.reading.factors import RecordSum
from pymc_dapper.records.reading.finite import LARGEST_RANGE, named_probabilities
from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.fewer import register_again
from pymc_dapper.tabulation.reading import TableReading, cell_values

ENTRIES_AT_ONCE = 2_000_000
"""Entries of the cells' contributions that are evaluated at once."""
DENSE = 10_000
"""Up to this number of entries, contributions are a dense matrix; otherwise sparse."""
FINITE = np.finfo(float).min
"""Replaces log(0) where the largest of several logarithms is subtracted from each."""
ALWAYS_ROUNDED = 4
"""Of this number of cells or fewer, PyMC can round a Multinomial's mean to counts."""
LABELLED = 100_000
"""Up to this number, distinct rows have labels."""


def write_table(reading: TableReading) -> pm.Model:
    """Write the model of counts, or the model without them if they are marginalised."""
    may_be_invalid = variables_maybe_invalid(reading)
    if reading.sums and may_be_invalid:
        raise TabulationError(
            f"{', '.join(may_be_invalid)}: for some values of the records, the probabilities may "
            "be invalid. A table has all values, also those that no record has. Write the "
            "probabilities so that they always lie between 0 and 1"
        )
    counted, linked = bool(reading.sums), len(reading.tables) > 1
    written = _Writer(reading, counted=counted, even=linked).model
    if counted and not linked and max(map(len, reading.supports)) > ALWAYS_ROUNDED:
        try:
            initial_point(written)
        except FAILURES:  # PyMC's start would have a negative count
            return _Writer(reading, counted=counted, even=True).model
    return written


def variables_maybe_invalid(reading: TableReading) -> list[str]:
    """Name variables whose probabilities some values of records may make invalid.

    Such a value of a record is impossible; but in a table, all cells' probabilities must be valid.
    """
    placeholders = reading.read.placeholders.items()
    known = {x: bounds_by_support(rv) for rv, x in placeholders if rv.owner is not None}
    found = []
    for rv in reading.rvs:
        parameters = [x for x in rv.owner.op.dist_params(rv.owner) if x.dtype.startswith("float")]
        graphs = reading.read(parameters)
        dependent = dependent_variables(reading.records, graphs)
        for graph in (x for x in graphs if x in dependent):
            given = reading.seen_by(graph)
            supports = [reading.supports[j] for j in given]
            # At each value, one term of a sum such as `a * x + b * (1 - x)` is zero.
            for values in cell_values(supports):
                pairs = zip(given, values, strict=True)
                at = {reading.records[j]: Bounds(float(v), float(v)) for j, v in pairs}
                bounds = bounds_of(graph, {**known, **at})
                if bounds is None or not 0 <= bounds.low <= bounds.high <= 1:
                    found.append(f"'{rv.name}'")
                    break
    return list(dict.fromkeys(found))


class _Writer:
    """Writes a model, variable after variable; ``new`` maps placeholders to its variables."""

    def __init__(self, reading: TableReading, *, counted: bool, even: bool):
        self._reading, self._even = reading, even
        self._old = old = reading.model
        self._row_dim = "_".join(rv.name for rv in reading.rvs) + "_row"
        self._new: dict[Variable, Variable] = {}
        # Of each table: how many records are in each of its cells, the axis of rows first.
        self._cells: dict[tuple[int, ...], TensorVariable] = {}
        self.model = pm.Model(model=None, check_bounds=old.check_bounds)
        with self.model:
            if len(reading.rows) > 1:
                self.model.add_coord(self._row_dim, _labels(reading))
            for rv in old.free_RVs:
                if rv not in reading.rvs:
                    self._random(rv)
            self._write_records(counted)
            for rv in old.observed_RVs:
                if rv.name not in reading.answers:
                    self._random(rv)
            for variable in old.deterministics:
                self._derived(pm.Deterministic, variable)
            for variable in old.potentials:
                if variable.name not in reading.answers:
                    self._tag(variable, self._derived(pm.Potential, variable))

    # -- variables that stay -----------------------------------------------------------------------

    def _random(self, rv: TensorVariable) -> None:
        """Register a random variable that isn't a record."""
        initval = self._old.rvs_to_initial_values.get(rv)
        if isinstance(initval, Variable):
            initval = self._written(initval)
        options = {"dims": self._dims(rv.name), "initval": initval}
        made = register_again(rv, self._old, self._written, **options)
        if rv in self._old.observed_RVs:
            self._tag(rv, made)
        else:
            made.tag.people = getattr(rv.tag, "people", None)  # of a table that was written before
            self._new[self._reading.read.placeholders[rv]] = made

    def _derived(self, kind: Any, variable: TensorVariable) -> TensorVariable:
        """Register a Potential or Deterministic."""
        name = variable.name
        return kind(name, self._written(variable), dims=self._dims(name))

    def _tag(self, old: TensorVariable, new: TensorVariable) -> None:
        """Keep what a mechanism stores with its release."""
        mechanism = getattr(old.tag, "mechanism", None)
        if mechanism is None:
            return
        released = self._written(old.tag.released)
        if mechanism.unknown:
            try:
                unknown = self._in_model(self._reading.read(mechanism.unknown))
            except TabulationError:
                raise TabulationError(
                    f"the noise scale of '{old.name}' depends on {self._reading.names}"
                ) from None
            mechanism = mechanism._with_unknown(unknown)
        new.tag.mechanism, new.tag.released = mechanism, released
        new.tag.statistic, name = self._written(old.tag.statistic), old.name

        def check() -> None:
            if isinstance(released, SharedVariable):
                mechanism.check_released(name, released.get_value(borrow=True))

        new.tag.check_data = check

    def _written(self, variable: Variable) -> Any:
        """Return a variable of the old model in terms of the new one: its counts, for records."""
        seen = self._reading.seen.get(variable)
        if seen is None:
            return self._in_model(self._reading.read([variable]))[0]
        totals = {each.total: self._total(each) for each in seen.sums}
        return self._in_model(rebuild([seen.graph], totals))[0]

    def _dims(self, name: str) -> tuple[str | None, ...] | None:
        """Return a variable's dims, which the new model then knows."""
        dims = self._old.named_vars_to_dims.get(name)
        for dim in dims or ():
            if dim is not None and dim not in self.model.coords:
                length = int(self._old.dim_lengths[dim].eval(mode="FAST_COMPILE"))
                self.model.add_coord(dim, self._old.coords[dim], length=length)
        return dims

    def _in_model(self, graphs: Sequence[Variable]) -> list[Any]:
        """Replace placeholders by the new model's variables."""
        inputs = set(explicit_graph_inputs(list(graphs))) - set(self._new)
        for data, x in self._reading.read.placeholders.items():
            if x in inputs and isinstance(data, SharedVariable):
                value = data.get_value()
                self._new[x] = pm.Data(data.name, value, dims=self._dims(data.name))
        for public in self._reading.public:
            if public.at_rows in inputs and public.data is not None:
                dims = (self._row_dim,) if public.at_rows.type.ndim == 1 else None
                value = np.moveaxis(public.values, 0, public.axis)
                dims = dims if len(self._reading.rows) > 1 else None
                self._new[public.at_rows] = pm.Data(f"{public.data.name}_rows", value, dims=dims)
        written = rebuild(list(graphs), self._new)
        if not set(self._reading.records).isdisjoint(ancestors(written)):
            raise TabulationError(f"the model depends on single records of {self._reading.names}")
        return written

    # -- records -----------------------------------------------------------------------------------

    @property
    def _lead(self) -> tuple[int, ...]:
        """The axis of distinct rows, if there are several."""
        n_rows = len(self._reading.rows)
        return (n_rows,) if n_rows > 1 else ()

    def _sizes(self) -> TensorVariable:
        # In 64 bits: of shorter integers, PyTensor takes logarithms in single precision.
        sizes = self._reading.rows.sizes.astype(np.int64)
        return pt.constant(sizes if self._lead else sizes[0])

    def _of_values(
        self, p: TensorVariable, given: tuple[int, ...], core: tuple[int, ...]
    ) -> TensorVariable:
        """Return probabilities of a variable's values in terms of the new model.

        They have an axis of rows, and one for each variable that it is given, or neither.
        """
        if p.type.ndim <= len(core):
            return self._in_model([p])[0]
        if p.type.shape[0] == 1:
            expands = p.owner is not None and isinstance(p.owner.op, DimShuffle)
            return self._in_model([p.owner.inputs[0] if expands else p[0]])[0]
        reading = self._reading
        [at] = self._in_model([reading.at_cells(p, given)])
        shape = (*self._lead, *reading.shape_of(given)[1:], *core)
        return at if tuple(at.type.shape) == shape else at.reshape(shape)

    def _count(self, laws: Sequence[TensorVariable | None]) -> None:
        """Register a table of each variable with the earlier ones that it is counted with.

        ``laws`` are the probabilities of its values, if they aren't those of the records' prior.
        """
        reading = self._reading
        rows = [self._row_dim] if self._lead else []
        of_values, starts = list[str](), self._starts()
        for k, (rv, given) in enumerate(zip(reading.rvs, reading.given, strict=True)):
            table, chance, law = (*given, k), reading.chances[k], laws[k]
            alone = chance is not None and table in reading.tables and not given
            totals, start = self._margin(given), starts[k]
            if start is not None:
                start = start if self._lead else start[0]
                start = start[..., 1] if alone else start
            if alone:
                p = self._of_values(chance, given, ()) if law is None else law[..., 1]
                made = pm.Binomial(f"{rv.name}_count", totals, p, dims=rows or None, initval=start)
                self._cells[table] = pt.stack([totals - made, made], axis=-1)
                of_values.append("")
            else:
                of_values.append(self._value_dim(rv, reading.supports[k], [*rows, *of_values]))
                p = self._prior(k) if law is None else law
                name = "_".join(reading.rvs[j].name for j in table)
                dims = [*rows, *(of_values[j] for j in table)]
                made = pm.Multinomial(f"{name}_counts", totals, p, dims=dims, initval=start)
                self._cells[table] = made
            made.tag.in_place_of = made.tag.people = self._described()

    def _margin(self, given: tuple[int, ...]) -> TensorVariable:
        """Count records by row and by the values of variables that another is given."""
        if not given:
            return self._sizes()
        table = (*self._reading.given[given[-1]], given[-1])
        others = [len(self._lead) + axis for axis, j in enumerate(table) if j not in given]
        return self._cells[table].sum(axis=others) if others else self._cells[table]

    def _flat_cells(self, table: tuple[int, ...]) -> TensorVariable:
        cells = self._cells[table]
        return cells.flatten() if cells.type.ndim > 1 else cells

    def _described(self) -> str:
        return f"{self._reading.n:,} records of {self._reading.names}"

    def _value_dim(self, rv: TensorVariable, values: range, taken: Sequence[str]) -> str:
        """Return the dim of a variable's values: that of its probabilities, if these have one."""
        name = named_probabilities(self._old, rv)
        if name is not None:
            dim: str | None = self._old.named_vars_to_dims[name][-1]
            if dim is not None and dim not in taken:
                self._dims(name)
                return dim
        self.model.add_coord(f"{rv.name}_value", list(values))
        return f"{rv.name}_value"

    def _starts(self) -> list[np.ndarray | None]:
        """Count the records' initial values, as far as they were given; or split records evenly."""
        reading, given = self._reading, list[np.ndarray]()
        for rv, values in zip(reading.rvs, reading.supports, strict=True):
            start = self._old.rvs_to_initial_values.get(rv)
            if not isinstance(start, np.ndarray) or start.size != reading.n:
                break
            given.append(start.ravel() - values[0])

        def split(k: int, totals: np.ndarray) -> np.ndarray:
            if k < len(given):
                return reading.count((*reading.given[k], k), given)
            of_each, rest = np.divmod(totals[..., None], len(reading.supports[k]))
            return of_each + (np.arange(len(reading.supports[k])) < rest)

        starts = reading.in_turn(split)
        known = len(starts) if self._even else len(given)
        return [*starts[:known], *[None] * (len(starts) - known)]

    def _prior(self, k: int) -> TensorVariable:
        """Return the probabilities of a variable's values, given those that it is counted with."""
        reading = self._reading
        given, shape = reading.given[k], reading.shape_of([k])[1:]
        return self._of_values(reading.probabilities[k], given, shape)

    def _write_records(self, counted: bool) -> None:
        """Write the tables of counts, and the factors with a value for each record.

        If parameters determine what is observed of each record, a single table has the records'
        law given that, and the factor is its marginal likelihood. `InterweaveStep` moves parameters
        together with such counts. (Linked tables would lose conditional distributions by that.)
        """
        reading = self._reading
        if reading.by_entry is not None:
            self._of_answers(reading.answers, self._in_model([reading.by_entry])[0])
        elif counted and not reading.given_answers:
            self._count([None] * len(reading.rvs))
            self._terms_of_cells()
        else:
            laws, log = self._given_answers(counted)
            if counted:
                self._count(laws)
            self._of_answers(reading.answers, log)

    def _terms_of_cells(self) -> None:
        """Convert a factor with a value for each record to one with a value for each cell."""
        reading = self._reading
        for name, each in reading.answers.items():
            table = reading.table_with(each)
            [log] = self._in_model([reading.at_cells(each, table)])
            # Kept nonlinear in the counts even if it could be linear: as a term of each cell,
            # CountStep evaluates it only for the cells that a move changes.
            cells = self._flat_cells(table)
            terms = pt.switch(pt.gt(cells, 0), cells * log, 0.0)
            self._of_answers([name], terms.sum())

    def _of_answers(self, answers: Iterable[str], log: TensorVariable) -> None:
        pm.Potential("_".join(answers), log).tag.of_answers = self._described()

    def _given_answers(self, counted: bool) -> tuple[list[TensorVariable | None], TensorVariable]:
        """Sum over the values of each variable in turn, from the last one on.

        All are in one table. If it is counted, it checks whether the prior's probabilities are
        valid.

        Returns
        -------
        list of (TensorVariable or None)
            For each variable, the probabilities of its values, given those that it is counted with
            and all answers. None if they are the prior's.
        TensorVariable
            The log-likelihood of all answers.
        """
        reading = self._reading
        # What each variable's probabilities are multiplied by: a function of its table.
        logs = list[list[TensorVariable]]([] for _ in reading.rvs)
        for each in reading.answers.values():
            last = max(reading.seen_by(each))
            table = (*reading.given[last], last)
            [log] = self._in_model([reading.at_cells(each, table)])
            logs[last].append(log.reshape(reading.shape_of(table)))
        laws, total = [None] * len(reading.rvs), pt.constant(0.0)
        for k, given in reversed(list(enumerate(reading.given))):
            if counted and not logs[k]:
                continue
            prior = self._prior(k)
            if not counted:
                # PyMC's checks of a distribution's parameters; they may hold for other values.
                valid = pt.all(pt.ge(prior, 0.0), axis=-1, keepdims=True)
                valid &= pt.isclose(prior.sum(axis=-1, keepdims=True), 1)
                prior = pt.switch(valid, prior, 0.0)
            table = reading.shape_of((*given, k))
            prior = prior.reshape(table if prior.type.ndim > 1 else (*(1,) * len(table[1:]), -1))
            weights, largest = _weigh(prior, logs[k])
            likelihood = weights.sum(axis=-1, keepdims=True)
            possible = pt.gt(likelihood, 0.0)
            likelihood = pt.switch(possible, likelihood, 1.0)
            if logs[k]:
                law = pt.switch(possible, weights / likelihood, 1 / table[-1])
                laws[k] = law if self._lead else law[0]
            log = pt.switch(possible, pt.log(likelihood) + largest, -np.inf)[..., 0]
            if given:
                logs[given[-1]].append(log)
            else:
                total += (reading.rows.sizes * log).sum()
        return laws, total

    # -- sums over records -------------------------------------------------------------------------

    def _total(self, each: RecordSum) -> TensorVariable:
        """Write a sum over records as a sum over cells, times a record's contribution in each."""
        reading, table = self._reading, self._reading.table_with(each.contributions)
        cells, n_cells = self._flat_cells(table), prod(reading.shape_of(table))
        of_each = reading.at_cells(each.contributions, table)
        shape = of_each.type.shape[1:]
        if None in shape or not _is_known(of_each):
            of_each = of_each.reshape((n_cells, *(of_each.shape[k + 1] for k in range(len(shape)))))
            cells = cells.reshape((-1, *(1,) * len(shape)))
            return (cells * of_each).sum(axis=0).astype(each.total.dtype)
        size = prod(shape)
        at_once = max(1, ENTRIES_AT_ONCE // max(1, size))
        blocks = []
        for start in range(0, n_cells, at_once):
            block = reading.at_cells(each.contributions, table, slice(start, start + at_once))
            [values] = compile_in_python(self._old, [], [block])()
            blocks.append(sparse.csr_array(values.reshape(len(values), size)))
        total = _linear(sparse.vstack(blocks, format="csr"), cells)
        if shape != (size,):
            total = total.reshape(shape)
        return total.astype(each.total.dtype)


def _weigh(
    prior: TensorVariable, logs: Sequence[TensorVariable]
) -> tuple[TensorVariable, TensorVariable]:
    """Multiply probabilities by factors given as logarithms; return the scale's logarithm, too."""
    if not logs:
        return prior, pt.constant(0.0)
    log = pt.add(*logs)
    known = known_value(log)
    if known is not None and np.ptp(known) <= LARGEST_RANGE:
        largest = log.max(axis=-1, keepdims=True)
        return prior * pt.exp(log - largest), largest
    # The maximum over possible values only: relative to an impossible one, all could underflow.
    log = pt.switch(pt.gt(prior, 0.0), log, -np.inf)
    largest = pt.maximum(log.max(axis=-1, keepdims=True), FINITE)
    return prior * pt.exp(log - largest), largest


def _linear(coefficients: sparse.csr_array, cells: TensorVariable) -> TensorVariable:
    """Multiply cells by their contributions to some sums, shape (number of cells, sums)."""
    by_sum = coefficients.T.tocsr()
    by_sum.eliminate_zeros()
    one_each = np.all(np.diff(by_sum.indptr) == 1) and np.all(by_sum.data == 1)
    if one_each:
        if np.array_equal(by_sum.indices, np.arange(coefficients.shape[0])):
            return cells
        return cells[pt.constant(by_sum.indices.astype(np.int64))]
    if prod(by_sum.shape) <= DENSE:
        return (cells[:, None] * pt.constant(coefficients.toarray())).sum(axis=0)
    matrix = sparse.csr_matrix(by_sum.astype(np.float64))
    return pytensor.sparse.structured_dot(
        pytensor.sparse.as_sparse_variable(matrix), cells.astype("float64")[:, None]
    )[:, 0]


def _is_known(graph: TensorVariable) -> bool:
    """Whether a graph depends on constants only."""
    return all(isinstance(x, Constant) for x in ancestors([graph]) if x.owner is None)


def _labels(reading: TableReading) -> list[str]:
    """Label the distinct rows, by as few of the public arrays as distinguish them."""
    n_rows = len(reading.rows)
    labels = [""] * n_rows
    if n_rows <= LABELLED:
        for x in sorted(reading.public, key=lambda x: (x.array.name is None, x.values.size)):
            name = f"{x.array.name}=" if x.array.name else ""
            parts = [f"{name}{_shown(value)}" for value in x.values]
            labels = [", ".join(filter(None, pair)) for pair in zip(labels, parts, strict=True)]
            if len(set(labels)) == n_rows:
                return labels
    return list(map(str, range(n_rows)))


def _shown(value: np.ndarray) -> str:
    flat = np.ravel(value)
    shown = ", ".join(f"{x:.6g}" for x in flat)
    return shown if flat.size == 1 else f"({shown})"
