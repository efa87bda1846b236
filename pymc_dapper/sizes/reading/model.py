"""Read a PyMC model: how it depends on an unknown number of records, and on the records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph import ancestors, vectorize_graph
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.checks import localise_checks
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import inline_symbolic_ops, rebuild
from pymc_dapper.graphs.view import ModelView, Reading, view_of
from pymc_dapper.records.reading.factors import (
    AdditiveFactor,
    FullFactor,
    SeparableFactor,
    read_factors,
)
from pymc_dapper.sizes.reading.exchangeable import what_ties
from pymc_dapper.sizes.reading.flags import (
    at_flags,
    check_lengths,
    compares_an_entry,
    find_flags,
    is_zero,
)
from pymc_dapper.sizes.reading.present import one_number_each


@dataclass(frozen=True)
class SizeReading(Reading):
    """How a model depends on a number of records.

    Attributes
    ----------
    size : TensorVariable
        The number of records: a scalar with the name of its value variable.
    records : tuple of TensorVariable
        The records that there is room for: variables with the names of their value variables, and
        with static shapes.
    room : int
        For how many there is room: the length of their first axis, N.
    log_weights : TensorVariable, shape (N + 1,)
        The log-density of all factors that the number enters, at each number from 0 to N.
    log_prior_outside : TensorVariable, shape (2,)
        The log-density of the number's prior at -1 and at N + 1.
    as_written : TensorVariable, scalar
        The log-density of these factors as the model has them, at ``size``.
    log_priors : tuple of TensorVariable, scalars
        The log-densities of the records' priors as the model has them.
    absent_add_nothing : bool
        Whether absent rows are known to add zero to all sums.
    tied : str or None
        Why rows can't be shuffled; None if they are alike.
    factors : tuple of str
        Names of the factors that the number enters, its prior not included.
    parameters : tuple of TensorVariable
        Value variables of all other free variables that the graphs depend on.
    """

    size: TensorVariable
    records: tuple[TensorVariable, ...]
    room: int
    log_weights: TensorVariable
    log_prior_outside: TensorVariable
    as_written: TensorVariable
    log_priors: tuple[TensorVariable, ...]
    absent_add_nothing: bool
    tied: str | None
    factors: tuple[str, ...]
    parameters: tuple[TensorVariable, ...]

    @property
    def name(self) -> str:
        """Name of the number of records, as the model has it."""
        return self.names([self.size])[0]


@dataclass(frozen=True)
class NumberedRecords:
    """The factors of a number of records, and the records of which they use the first n."""

    view: ModelView
    size: TensorVariable
    graphs: dict[str, TensorVariable]
    """Log-densities of all factors by name, in terms of which rows are present."""
    present: TensorVariable
    """Which rows are present: bool, shape (N,)."""
    records: list[TensorVariable]

    @property
    def room(self) -> int:
        """For how many records there is room."""
        return int(self.present.type.shape[0])

    @property
    def rvs(self) -> list[TensorVariable]:
        """The records as random variables."""
        of_value = {new: old for old, new in self.view.values.items()}
        return [self.view.model.values_to_rvs[of_value[x]] for x in self.records]


def find_sizes(model: Model) -> dict[TensorVariable, list[TensorVariable]]:
    """Find the variables that are numbers of records, and the records of each.

    These are free whole-number scalars that are compared with row numbers, so that the first n rows
    of other free variables are distinguished from the rest.

    Raises
    ------
    ReadingError
        If such a comparison marks other rows than the first.
    """
    view, found = view_of(model), dict[TensorVariable, list[TensorVariable]]()
    for rv in model.free_RVs:
        is_number = getattr(rv.type, "ndim", None) == 0 and np.dtype(rv.dtype).kind in "iu"
        seen = see(view, model.rvs_to_values[rv]) if is_number else None
        if seen is not None and seen.records:
            found[rv] = seen.rvs
    return found


def check_scalars(model: Model, rvs: Sequence[TensorVariable]) -> None:
    """Refuse vectors with an entry that is a number of records."""
    view = view_of(model)
    graphs = inline_symbolic_ops(view.log_densities([*model.basic_RVs, *model.potentials]))
    for rv in rvs:
        value = view.values[model.rvs_to_values[rv]]
        if value.type.ndim > 0 and compares_an_entry(graphs, value):
            raise ReadingError(
                f"row numbers are compared with an entry of {one_number_each(rv.name)}"
            )


def see(view: ModelView, value: TensorVariable) -> NumberedRecords | None:
    """Find how a variable distinguishes rows; None if it doesn't."""
    model, size = view.model, view.values[value]
    written = view.named_log_densities([*model.basic_RVs, *model.potentials])
    own = model.values_to_rvs[value].name
    if not any(size in ancestors([x]) for name, x in written.items() if name != own):
        return None
    graphs = inline_symbolic_ops(list(written.values()))
    check_lengths(graphs, size)
    flags = find_flags(graphs, size)
    if not flags:
        return None
    rooms = {flag.n_rows for flag in flags.values()}
    if len(rooms) > 1:
        raise ReadingError(
            f"'{value.name}' is the number of records with room for "
            f"{' and for '.join(map(str, sorted(rooms)))}: give all of them the same room, such "
            f"as {max(rooms)}"
        )
    [room] = rooms
    present = pt.vector("present", dtype="bool", shape=(room,))
    instead = {x: flag.of(present) for x, flag in flags.items()}
    by_name = dict(zip(written, rebuild(graphs, instead), strict=True))
    flagged = [x for x in by_name.values() if present in ancestors([x])]
    seen, at_none = set(ancestors(flagged)), set(ancestors(at_flags(flagged, present, False)))
    records = [
        x
        for x in view.values.values()
        if x.type.shape[:1] == (room,) and x in seen and x not in at_none
    ]
    return NumberedRecords(view, size, by_name, present, records)


def read_size(model: Model, value: TensorVariable) -> SizeReading:
    """Find out how a number of records enters a model's log-density.

    Parameters
    ----------
    model : Model
        The model.
    value : TensorVariable
        Value variable of the number of records.

    Returns
    -------
    SizeReading
        The log-density at all numbers of records at once.

    Raises
    ------
    ReadingError
        If the variable isn't a number of records, if a factor depends on absent rows, or if a
        factor depends on the rows otherwise than by sums over them.
    """
    name = model.values_to_rvs[value].name
    view = view_of(model)
    seen = see(view, value)
    if seen is None or not seen.records:
        raise ReadingError(
            f"'{name}' isn't a number of records: nothing in the model uses only the first "
            f"'{name}' rows of other free variables, as by pmd.present({name}, size)"
        )
    _check_prior(seen, name)
    records, present, size = seen.records, seen.present, seen.size
    own = {rv.name for rv in seen.rvs}
    [room] = present.type.shape
    sizes = pt.constant(np.arange(room + 1, dtype=size.dtype))

    terms, rows_at = [], []
    entered = {
        factor: graph
        for factor, graph in seen.graphs.items()
        if factor not in own and not {size, present, *records}.isdisjoint(ancestors([graph]))
    }
    for factor, graph in entered.items():
        among = set(ancestors([graph]))
        if present in among:
            term, rows = _at_all_sizes(factor, graph, seen, sizes)
            terms.append(term)
            rows_at += [(factor, x) for x in rows]
        elif not among.isdisjoint(records):
            _refuse_unmasked(factor, [x for x in records if x in among], seen)
        else:
            terms.append(_vectorised(factor, graph, {size: sizes}))
    log_weights = pt.add(*(pt.broadcast_to(x.astype("float64"), (room + 1,)) for x in terms))

    outside = pt.constant(np.array([-1, room + 1], dtype=size.dtype))
    log_prior_outside = _vectorised(name, seen.graphs[name], {size: outside})
    as_written = pt.add(*(x.sum() for x in view.log_densities([model[x] for x in entered])))
    log_priors = tuple(x.sum() for x in view.log_densities(seen.rvs))
    graphs = [log_weights, log_prior_outside, as_written, *log_priors]
    return SizeReading(
        view=view,
        data=view.data_in(graphs),
        size=size,
        records=tuple(records),
        room=room,
        log_weights=log_weights,
        log_prior_outside=pt.broadcast_to(log_prior_outside.astype("float64"), (2,)),
        as_written=as_written,
        log_priors=log_priors,
        absent_add_nothing=all(is_zero(absent) for _, (_, absent) in rows_at),
        tied=what_ties(view, seen.rvs, records, rows_at),
        factors=tuple(x for x in entered if x != name),
        parameters=view.values_in(graphs, but=(size, *records)),
    )


def _check_prior(seen: NumberedRecords, name: str) -> None:
    for rv in seen.rvs:
        if not {seen.size, seen.present}.isdisjoint(ancestors([seen.graphs[rv.name]])):
            raise ReadingError(
                f"the distribution of the records '{rv.name}' depends on their number '{name}': "
                "absent records must follow their prior for any number"
            )


def _refuse_unmasked(factor: str, records: Sequence[TensorVariable], seen: NumberedRecords) -> None:
    named = zip(seen.records, seen.rvs, strict=True)
    listed = ", ".join(f"'{rv.name}'" for x, rv in named if x in records)
    name = seen.size.name
    raise ReadingError(
        f"'{factor}' uses absent rows of {listed}, while other factors use only the first "
        f"'{name}'. Let it use only these, as in pt.switch(pmd.present({name}, size), ..., 0); or "
        "give another number its own records"
    )


def _at_all_sizes(
    factor: str, graph: TensorVariable, seen: NumberedRecords, sizes: TensorVariable
) -> tuple[TensorVariable, list[tuple[TensorVariable, TensorVariable]]]:
    """Return a factor at all numbers of records, and each row's contribution, present or absent."""
    name = seen.size.name
    roots = [*seen.records, seen.present]
    [read] = read_factors({factor: graph}, roots)
    match read:
        case FullFactor(reason=reason):
            raise ReadingError(
                f"'{factor}' isn't a function of sums over the present records: {reason}. SizeStep "
                f"cumulates sums of the first '{name}' records. To leave '{name}' to PyMC's own "
                "choice, pass the other steps, as in pm.sample(step=[pmd.DapperStep([x])])"
            )
        case SeparableFactor(log_densities=rows):
            total = pt.scalar(dtype="float64")
            log_density: TensorVariable = total
            sums = [(total, rows)]
        case AdditiveFactor():
            log_density = read.log_density
            sums = [(sum_.total, sum_.contributions) for sum_ in read.sums]
    cumulated: dict[TensorVariable, TensorVariable] = {}
    both = []
    for total, contributions in sums:
        if seen.size in ancestors([contributions]):
            raise ReadingError(
                f"'{factor}' has a sum whose terms depend on '{name}' itself, not only on whether "
                "the record is present. Write that outside of the sum, as in "
                f"pt.switch(present, x, 0).sum() / {name}"
            )
        there, absent = (at_flags([contributions], seen.present, x)[0] for x in (True, False))
        left = [x for x in seen.records if x in ancestors([absent])]
        if left:
            _refuse_unmasked(factor, left, seen)
        nothing = known_value(absent)
        if nothing is not None and np.isnan(nothing).any():
            raise ReadingError(
                f"rows that aren't there add nan to a sum in '{factor}', which is nan then: let "
                "them add 0, as in pt.switch(present, x, 0)"
            )
        both.append((there, absent))
        cumulated[total] = _cumulated(there, absent).astype(total.dtype)
    return _vectorised(factor, log_density, {**cumulated, seen.size: sizes}), both


def _cumulated(there: TensorVariable, absent: TensorVariable) -> TensorVariable:
    """Return the sums with 0, 1, ..., N present rows."""
    there, absent = there.astype("float64"), absent.astype("float64")
    at_none = absent.sum(axis=0, keepdims=True)
    added = there if is_zero(absent) else there - absent
    return pt.concatenate([at_none, at_none + pt.cumsum(added, axis=0)])


def _vectorised(
    factor: str, graph: TensorVariable, at: Mapping[TensorVariable, TensorVariable]
) -> TensorVariable:
    """Evaluate a log-density at several values of its inputs."""
    instead = {x: x.type() for x in at}
    [graph] = rebuild([graph], instead)
    [graph] = localise_checks([graph], list(instead.values()))
    graph = graph.sum() if graph.type.ndim else graph
    values = {instead[x]: value for x, value in at.items()}
    try:
        return vectorize_graph(graph, values)
    except NotImplementedError as error:
        raise ReadingError(
            f"'{factor}' can't be evaluated at all numbers of records at once: {error}"
        ) from error
