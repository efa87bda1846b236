"""Latent records and counts of a model: passed, or found in what mechanisms see."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pymc import Model
from pymc.distributions.discrete import DiscreteUniformRV
from pymc.vartypes import continuous_types
from pytensor.graph import Variable, ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.assignment.readings import Readings
from pymc_dapper.assignment.refusals import check_generated, why_no_records
from pymc_dapper.graphs.dependence import answers_of_records, records_seen, seen_by_each
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.records.reading.finite import possible_values
from pymc_dapper.records.reading.linked import length, with_linked
from pymc_dapper.sizes.reading.model import check_scalars
from pymc_dapper.steps.progress import stage
from pymc_dapper.steps.variables import count_values, record_values


@dataclass(frozen=True)
class Latent:
    """Latent records and latent counts: random variables of a model that is being read."""

    readings: Readings
    records: list[TensorVariable]
    counts: list[TensorVariable]
    tabulated: frozenset[int] = frozenset()
    """Numbers of records that some of the counts represent."""

    @property
    def sizes(self) -> dict[TensorVariable, list[TensorVariable]]:
        """Unknown numbers of these records, with the records of each."""
        return {
            size: [rv for rv in rvs if rv in self.records]
            for size, rvs in self.readings.sizes().items()
            if size not in self.counts and not set(rvs).isdisjoint(self.records)
        }

    @property
    def present(self) -> dict[TensorVariable, TensorVariable]:
        """Return records whose parameters are drawn given the present rows alone, and their number.

        This is right if all variables of absent rows are drawn again before another step uses them.
        :class:`DapperStep` does so if it has all their variables, unless it may refuse such draws.
        """
        return {
            rv: size
            for size, rvs in self.sizes.items()
            for rv in rvs
            if sum(rv in others for others in self.sizes.values()) == 1
            and set(self.readings.sizes()[size]) <= set(self.records)
            for [group] in [[x for x in self.groups if rv in x]]
            if self.readings.records(group).possible is None
        }

    @property
    def groups(self) -> list[list[TensorVariable]]:
        """The records of each group of people, which have their number in common."""
        groups: dict[Any, list[TensorVariable]] = {}
        for rv in self.records:
            unknown = tuple(size for size, rvs in self.sizes.items() if rv in rvs)
            number = unknown or length(self.readings.model, rv)
            groups.setdefault(number, []).append(rv)
        return list(groups.values())

    @property
    def all(self) -> list[TensorVariable]:
        """The records, then the counts."""
        return [*self.records, *self.counts]


def find_latent(
    model: Model,
    records: Variable | Sequence[Variable] | None,
    counts: Variable | Sequence[Variable] | None,
    *,
    in_place_of_records: Sequence[TensorVariable] = (),
) -> Latent:
    """Find latent records and counts if neither are given.

    Counts that replace records are known already.

    Raises
    ------
    ReadingError
        See :func:`assign_steps`.
    """
    stage("Reading the model")
    check_generated(model)
    readings = Readings(model)
    if records is None and counts is None:
        if answers_of_records(model) and not records_seen(model):
            return Latent(readings, [], [])
        found = find_tables(readings, but=in_place_of_records)
        counts = list(dict.fromkeys([*in_place_of_records, *found]))
        others = set(records_seen(model)) - set(counts) - set(readings.sizes())
        # Scalars aren't records: a mechanism may depend on parameters, too.
        no_records = all(rv.type.ndim == 0 and rv.dtype in continuous_types for rv in others)
        if no_records and others and not counts:
            return Latent(readings, [], [])
        records = [] if no_records and (counts or others) else _records(readings, counts)
    of_value = model.values_to_rvs
    latent = Latent(
        readings,
        [] if records is None else [of_value[x] for x in record_values(records, model)],
        [] if counts is None else [of_value[x] for x in count_values(counts, model)],
    )
    if not latent.all:
        raise ReadingError(
            "records and counts are empty: leave both out to have them found, or pass the latent "
            "records, as in sample(records=[x])"
        )
    return latent


def find_records(model: Model) -> list[TensorVariable]:
    """Find the latent records of a model.

    Parameters
    ----------
    model : Model
        The model.

    Returns
    -------
    list of TensorVariable
        The free variables in a mechanism's statistic that aren't tables of counts, if all have a
        first axis; and other latent variables of each record. Those of other lengths are of other
        people.

    Raises
    ------
    ReadingError
        If there are none, or if some differ in length and one mechanism or distribution depends on
        both.
    """
    check_generated(model)
    readings = Readings(model)
    return _records(readings, find_tables(readings))


def find_tables(readings: Readings, but: Sequence[TensorVariable] = ()) -> list[TensorVariable]:
    """Find the tables of counts in a mechanism's statistic, and their latent totals.

    Tables that are known, and their totals, needn't be found.
    """
    model = readings.model
    others = [rv for rv in records_seen(model) if rv not in readings.sizes() and rv not in but]
    tables = [rv for rv in others if _is_table(readings, rv)]
    while tables:
        unknown = readings.counts(tables).unknown_totals
        names = {x.name for x in unknown} - {rv.name for rv in tables}
        totals = [
            rv
            for rv in model.free_RVs
            if model.rvs_to_values[rv].name in names and readings.can_be_counted(rv)
        ]
        if not totals:
            break
        tables += totals
    return tables


def _is_table(readings: Readings, rv: TensorVariable) -> bool:
    """Whether a variable is a table of counts, and not one count for each record."""
    if not readings.can_be_counted(rv):
        return False
    if isinstance(rv.owner.op, DiscreteUniformRV) and possible_values([rv]) is not None:
        return False  # few values, such as categories: records, which are drawn exactly
    if rv.type.ndim == 0 or rv.owner.op.ndim_supp > 0:
        return True
    try:
        reading = readings.records([rv])
    except ReadingError:
        return True
    # Further latent variables of each record have no mechanism.
    latent = {x.name for x in readings.model.free_RVs}
    mechanisms = [factor for factor in reading.factors if factor.name not in latent]
    return len(reading.additive_factors) < len(mechanisms)


def _records(readings: Readings, tables: Sequence[TensorVariable]) -> list[TensorVariable]:
    model = readings.model
    sizes = readings.sizes()
    seen = [rv for rv in records_seen(model) if rv not in tables and rv not in sizes]
    if not seen:
        raise ReadingError(f"no latent records were found: {why_no_records(model)}")
    counted = {rv for rvs in sizes.values() for rv in rvs}  # each by its own number
    lengths: dict[str, Any] = {rv.name: length(model, rv) for rv in seen if rv not in counted}
    groups = {n: [rv for rv in seen if lengths.get(rv.name) == n] for n in lengths.values()}
    if None in groups or not _are_apart(model, groups.values()):
        check_scalars(model, seen)
        listed = ", ".join(
            f"'{name}' ({_length_of(model[name], n)})" for name, n in lengths.items()
        )
        vectors = [name for name, n in lengths.items() if n] or ["x"]
        raise ReadingError(
            "which variables are the latent records isn't clear: the mechanisms, or other "
            f"Potentials, depend on {listed}. Pass those that are records, as in sample(records="
            f"[{', '.join(vectors)}]). A record that is a scalar needs shape=1"
        )
    together: dict[Any, Any] = {length(model, seen[0]): seen} if sizes else groups
    linked = [rv for n, group in together.items() for rv in _with_linked(readings, group, n)]
    linked = [rv for rv in linked if rv not in tables]
    # Beside an unknown number, linked variables have their own step; NUTS moves continuous ones.
    seen = [x for x in linked if x in seen or not sizes or x.dtype not in continuous_types]
    for rv in model.free_RVs:
        parents = [x.name for x in seen if x in ancestors(rv.owner.inputs)]
        if parents and rv not in seen:
            raise ReadingError(
                f"which variables are the latent records isn't clear: a mechanism, or another "
                f"Potential, depends on '{parents[0]}', and so does the distribution of "
                f"'{rv.name}', which is free, too. Pass the records, as in sample(records=[x])"
            )
    return seen


def _are_apart(model: Model, groups: Collection[Sequence[TensorVariable]]) -> bool:
    """Whether no mechanism depends on two groups of records, and no group on another one."""
    related = [*seen_by_each(model), *({x, *ancestors(x.owner.inputs)} for x in model.basic_RVs)]
    return all(sum(not found.isdisjoint(group) for group in groups) < 2 for found in related)


def _with_linked(readings: Readings, seen: list[TensorVariable], n: int) -> list[TensorVariable]:
    """Add other latent variables of each record, if the model can be read with them."""
    linked = with_linked(readings.model, seen, n)
    if linked != seen:
        try:
            readings.records(linked)
        except ReadingError:
            return seen
    return linked


def _length_of(rv: TensorVariable, length: int | None) -> str:
    if rv.type.ndim == 0:
        return "a scalar"
    return "a single vector" if length is None else f"{length} along its first axis"
