"""Which step takes which variable: the defaults a user wants.

Steps for counts are imported only if a model has counts: the import takes a twentieth of the time
before the first draw of a cached model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from pymc import NUTS
from pymc.distributions.discrete import DiscreteUniformRV
from pymc.model import Model
from pymc.step_methods import BlockedStep
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.accelerate import once_more_without
from pymc_dapper.backend.named_dims import same_named
from pymc_dapper.checks import flag
from pymc_dapper.checks import options as options_of
from pymc_dapper.conjugacy.conditional import Conditional, read_conditionals
from pymc_dapper.conjugacy.gaussian import NORMAL
from pymc_dapper.conjugacy.marginal import integrable_parameters
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.context import model_to_read, the_model
from pymc_dapper.counts.reading.model import CountReading, check_counts, read_counts
from pymc_dapper.graphs.asked_once import initial_point
from pymc_dapper.graphs.dependence import integrated_out, records_seen
from pymc_dapper.graphs.errors import NotCollapsibleError, NotConjugateError, ReadingError
from pymc_dapper.graphs.present import Present
from pymc_dapper.graphs.view import view_of
from pymc_dapper.interweaving.boundary_step import BoundaryStep
from pymc_dapper.interweaving.reading import (
    NonCentredModel,
    find_hierarchy,
    read_movable,
    read_non_centred,
)
from pymc_dapper.interweaving.reading.tables import read_tables
from pymc_dapper.interweaving.step import InterweaveStep
from pymc_dapper.records.reading.finite import possible_values
from pymc_dapper.records.reading.linked import length, with_linked
from pymc_dapper.records.reading.model import ModelReading, read_model
from pymc_dapper.records.step import DapperStep
from pymc_dapper.sizes.reading.model import (
    SizeReading,
    check_scalars,
    find_sizes,
    read_size,
)
from pymc_dapper.sizes.step import SizeStep
from pymc_dapper.steps.base import Step
from pymc_dapper.steps.building import building, telling_of_memory
from pymc_dapper.steps.lean_nuts import lean_nuts
from pymc_dapper.steps.progress import LOGGER, progress, stage
from pymc_dapper.steps.variables import count_values, record_values

type UnbuiltNuts = partial[NUTS]
"""PyMC compiles NUTS when it is built."""

JOINT_NORMAL_LIMIT = 100
"""Normal parameters are drawn jointly up to this many entries: the cost is their number's cube."""


FEW_PARAMETERS = 16
"""Up to this number of entries, slices of a fitted distribution have three to forty times as many
effective draws per second as NUTS; with twice as many, the fit takes longer than chains tune."""


class Readings:
    """Readings of a model for the choice of its steps, each made once.

    The model must not change meanwhile, except for where its chains start.
    """

    def __init__(self, model: Model):
        self.model = model
        with telling_of_memory("DapperStep", model.free_RVs):
            self.point = initial_point(model)
        self._made: dict[tuple[Any, ...], Any] = {}

    def records(self, rvs: Sequence[TensorVariable]) -> ModelReading:
        """Read how the model depends on records."""
        values = [self.model.rvs_to_values[rv] for rv in rvs]
        with telling_of_memory("DapperStep", rvs):
            return self._once(("records", *rvs), lambda: read_model(self.model, values, self.point))

    def counts(
        self, rvs: Sequence[TensorVariable], integrated: Sequence[Conditional] = ()
    ) -> CountReading:
        """Read how the model depends on counts, with some parameters integrated out."""
        values = [self.model.rvs_to_values[rv] for rv in rvs]
        with telling_of_memory("CountStep", rvs):
            return self._once(
                ("counts", *rvs, *integrated),
                lambda: read_counts(self.model, values, integrated),
            )

    def sizes(self) -> dict[TensorVariable, list[TensorVariable]]:
        """Find the numbers of records that aren't known, and the records of each."""
        with telling_of_memory("SizeStep", self.model.free_RVs):
            return self._once(("sizes",), lambda: find_sizes(self.model))

    def size(self, rv: TensorVariable) -> SizeReading:
        """Read how the model depends on a number of records."""
        value = self.model.rvs_to_values[rv]
        with telling_of_memory("SizeStep", [rv]):
            return self._once(("size", rv), lambda: read_size(self.model, value))

    def can_be_counted(self, rv: TensorVariable) -> bool:
        """Whether a variable is a count on which something else in the model depends."""
        try:
            check_counts(self.model, [rv])
            self.counts([rv])
        except ReadingError:
            return False
        return True

    def conditionals(
        self, rvs: Sequence[TensorVariable], present: Present | None = None
    ) -> list[Conditional]:
        """Read the conditionals of parameters; empty if none can be drawn from."""
        present = present or {}
        if not rvs:
            return []
        try:
            return self._once(
                ("parameters", *rvs, *present), lambda: read_conditionals(self.model, rvs, present)
            )
        except NotConjugateError:
            return []

    def _once(self, key: tuple[Any, ...], read: Callable[[], Any]) -> Any:
        if key not in self._made:
            stage("Reading the model")
            try:
                self._made[key] = read()
            except ReadingError as error:
                self._made[key] = error
        made = self._made[key]
        if isinstance(made, ReadingError):
            raise made
        return made


def assign_steps(
    records: Variable | Sequence[Variable] | None = None,
    model: Model | None = None,
    *,
    counts: Variable | Sequence[Variable] | None = None,
    conjugate: bool = True,
    interweave: bool = True,
    collapse: bool = True,
    dapper: Mapping[str, Any] | None = None,
    nuts: Mapping[str, Any] | None = None,
    compile_kwargs: Mapping[str, Any] | None = None,
    progressbar: bool = True,
) -> list[BlockedStep]:
    """Choose the steps for a model of latent confidential records, or of latent counts of them.

    - :class:`DapperStep` takes the records.
    - :class:`SizeStep` takes an unknown number of records (:func:`present`).
    - :class:`CountStep` takes the counts, and their parameters that can be integrated out.
    - :class:`ConjugateStep` takes the parameters with a known conditional distribution.
    - NUTS takes the other continuous parameters. If these have Binomial or Poisson counts with
      separate noise, :class:`CollapsedStep` takes both, and sums the counts out.
    - :class:`InterweaveStep` also moves the continuous parameters of the records, together with the
      records, so that the chain mixes at small privacy budgets. If all records are integrated out
      (:func:`tabulate`), it takes up to 16 parameters alone. A second one moves parameters of a
      hierarchy together with vectors, such as means of groups, whose scale depends on them. If
      records are people of several columns, each drawn by a Dirichlet table and counted in noisy
      tables, ``BoundaryStep`` does this for them.
    - ``pm.sample`` chooses the steps of the rest: discrete parameters.

    Parameters
    ----------
    records : variable or sequence of variables, optional
        The latent records. If neither they nor counts are given, they are found if the model leaves
        no doubt: the free variables in a mechanism's statistic that aren't counts, if all have the
        same number of entries along their first axis. Variables padded for an unknown n may differ
        in length. Other latent variables of each record that are linked to these belong to it: a
        class, an ability, a true value behind an error, a column without a mechanism. Continuous
        variables on which public data of each record depend stay parameters. PyMC's log warns of
        other variables with as many entries.
    model : Model, optional
        The model. Taken from the context if not given.
    counts : variable or sequence of variables, optional
        Latent counts, such as the cells of a table. If neither they nor records are given, they are
        found in the mechanism's statistic: Multinomial and DirichletMultinomial variables, scalar
        counts (including a DiscreteUniform of 17 values or more), and vectors of counts that enter
        the statistic otherwise than by sums over their first axis; and the latent counts that are
        totals of these.
    conjugate : bool, default True
        Whether to look for conjugate parameters. Otherwise NUTS moves all continuous parameters
        together, which is better if a conjugate one depends strongly on another one.
    interweave : bool, default True
        Whether to add an :class:`InterweaveStep` if it knows a map for the records' distribution.
        Its moves are compiled in tuning, if parameters are seen to forget slowly (which takes more
        than 40 iterations), and tuning chooses how many are worth their cost.
    collapse : bool, default True
        Whether NUTS moves parameters with counts summed out, if possible. Otherwise
        :class:`CountStep` and NUTS move them in turn.
    dapper : dict, optional
        Passed on to :class:`DapperStep`, such as ``{"track_records": True}``.
    nuts : dict, optional
        Passed on to ``pm.NUTS``, such as ``{"target_accept": 0.9}``.
    compile_kwargs : dict, optional
        Passed on to all steps.
    progressbar : bool, default True
        Whether a line shows the present stage and its time; without a terminal or notebook, PyMC's
        log.

    Returns
    -------
    list of steps
        For ``pm.sample(step=...)``.

    Raises
    ------
    ReadingError
        If records aren't given and the model leaves doubt about them, or if the model can't be read
        (see :class:`DapperStep`).

    Notes
    -----
    NUTS doesn't evaluate the privacy mechanism at each leapfrog step if it doesn't depend on the
    moved variables. Its stat ``lp`` is then the log-density without the mechanism.

    Examples
    --------
    >>> with model:
    ...     idata = pm.sample(step=pmd.assign_steps([record]))
    """
    if isinstance(records, Model) and model is None:
        records, model = None, records
    given, model = the_model(model), model_to_read(model)
    with (
        progress(show=flag(progressbar, "progressbar")),
        building(own_mode=compile_kwargs is not None or nuts is not None),
    ):
        steps = choose_steps(
            find_latent(model, records, counts),
            conjugate=conjugate,
            interweave=interweave,
            collapse=collapse,
            dapper=dapper,
            nuts=nuts,
            compile_kwargs=compile_kwargs,
        )
    for step in steps:
        step.vars = same_named(given.value_vars, step.vars)
    return steps


@dataclass(frozen=True)
class Latent:
    """Latent records and latent counts: random variables of a model that is being read."""

    readings: Readings
    records: list[TensorVariable]
    counts: list[TensorVariable]
    tabulated: int | None = None
    """Return the number of records that some of the counts represent."""

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
        """The records, by the unknown number of them: the variables of each describe its people."""
        groups: dict[tuple[TensorVariable, ...], list[TensorVariable]] = {}
        for rv in self.records:
            of = tuple(size for size, rvs in self.sizes.items() if rv in rvs)
            groups.setdefault(of, []).append(rv)
        return list(groups.values())

    @property
    def all(self) -> list[TensorVariable]:
        """Both."""
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
    _check_generated(model)
    readings = Readings(model)
    if records is None and counts is None:
        if integrated_out(model) and not records_seen(model):
            return Latent(readings, [], [])
        counts = list(dict.fromkeys([*in_place_of_records, *find_tables(readings)]))
        others = set(records_seen(model)) - set(counts) - set(readings.sizes())
        # Scalars aren't records: a mechanism may depend on parameters, too.
        no_records = all(rv.type.ndim == 0 and _is_continuous(rv) for rv in others)
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


def choose_steps(
    latent: Latent,
    *,
    conjugate: bool,
    interweave: bool,
    collapse: bool,
    dapper: Mapping[str, Any] | None,
    nuts: Mapping[str, Any] | None,
    compile_kwargs: Mapping[str, Any] | None,
) -> list[BlockedStep]:
    """Choose the steps for all variables, as :func:`assign_steps` does.

    All read the model, and may refuse it, before any is compiled.
    """
    choices = (latent, conjugate, interweave, dapper, nuts, compile_kwargs)
    try:
        steps = read_steps(*choices, collapse=flag(collapse, "collapse"))
        _warn_of_left_out(latent, steps)
        return [_compile(step) for step in steps]
    except NotCollapsibleError:  # by their noise, which is evaluated after it is compiled
        return [_compile(step) for step in read_steps(*choices, collapse=False)]


def read_steps(
    latent: Latent,
    conjugate: bool,
    interweave: bool,
    dapper: Mapping[str, Any] | None,
    nuts: Mapping[str, Any] | None,
    compile_kwargs: Mapping[str, Any] | None,
    *,
    collapse: bool,
) -> list[Step | UnbuiltNuts]:
    """Choose the steps and have them read the model, but compile nothing."""
    readings, model = latent.readings, latent.readings.model
    conjugate, interweave = flag(conjugate, "conjugate"), flag(interweave, "interweave")
    dapper, nuts = options_of(dapper, "dapper"), options_of(nuts, "nuts")
    options = {"model": model, "compile_kwargs": options_of(compile_kwargs, "compile_kwargs")}
    parameters = left = [rv for rv in model.free_RVs if rv not in (*latent.all, *latent.sizes)]
    # Variables of a row in different steps aren't drawn together.
    present = latent.present if dapper.get("blocked", True) else {}
    steps: list[Step | UnbuiltNuts] = []
    for records in latent.groups:
        of_records = readings.records(records)
        for size in {present[rv] for rv in records if rv in present}:
            of_size = readings.size(size)
            # Without sums there is no sweep to shorten: all are decided on at once.
            shortens = of_size.absent_add_nothing and of_records.sums
            number = of_size.size if shortens else None
            of_records = replace(of_records, draws_anew=True, number=number)
        steps.append(DapperStep.of_reading(of_records, records, **options, **dapper))
    if dapper and not latent.records:
        raise ValueError("dapper was given, but the model has no records: leave it out")
    if not latent.all and (alone := _alone(readings, left, interweave, nuts)):
        return [InterweaveStep.of_reading(alone, left, **options)]
    if latent.sizes:
        of_sizes = [readings.size(rv) for rv in latent.sizes]
        steps.append(SizeStep.of_reading(of_sizes, list(latent.sizes), **options))
    if latent.counts:
        known = [x for rv in left for x in readings.conditionals([rv])] if conjugate else []
        integrated = integrable_parameters(known, latent.counts)
        drawn_with_counts = [rv for conditional in integrated for rv in conditional.rvs]
        left = [rv for rv in left if rv not in drawn_with_counts]
        moved = _moved_by_nuts(readings, left, conjugate, present)
        collapsed = None
        if collapse and moved and not drawn_with_counts:
            collapsed = _collapsed_step(readings, moved, latent.counts, nuts, options)
        if collapsed is not None:
            steps.append(collapsed)
            left, nuts = [rv for rv in left if rv not in moved], {}
            latent = replace(latent, counts=[])
        else:
            from pymc_dapper.counts.step import CountStep

            of_counts = readings.counts(latent.counts, integrated)
            steps.append(
                CountStep.of_reading(
                    of_counts, latent.counts, integrate=drawn_with_counts, **options
                )
            )
    of_parameters = _parameter_steps(readings, left, conjugate, nuts, options, present)
    # Steps given present records alone come before absent ones are drawn again; all other steps use
    # all records, and come after.
    steps = [*of_parameters, *steps] if present else [*steps, *of_parameters]
    if interweave:
        steps += _interweave_steps(latent, left, options)
        steps += _hierarchy_steps(latent, parameters, options)
    return steps


def find_tables(readings: Readings) -> list[TensorVariable]:
    """Find the tables of counts in a mechanism's statistic, and their latent totals."""
    model = readings.model
    others = [rv for rv in records_seen(model) if rv not in readings.sizes()]
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


def assign_parameter_steps(
    values: Sequence[TensorVariable],
    model: Model,
    *,
    conjugate: bool = True,
    nuts: Mapping[str, Any] | None = None,
    compile_kwargs: Mapping[str, Any] | None = None,
) -> list[BlockedStep]:
    """Choose the steps for the parameters of a model, as :func:`assign_steps` does.

    Parameters
    ----------
    values : sequence of TensorVariable
        Value variables of the records, which aren't moved.
    model : Model
        The model.
    conjugate, nuts, compile_kwargs
        See :func:`assign_steps`.

    Returns
    -------
    list of steps
        Steps for all continuous parameters, and for conjugate ones.
    """
    left = [model.values_to_rvs[x] for x in model.value_vars if x not in values]
    options = {"model": model, "compile_kwargs": dict(compile_kwargs or {})}
    return [_compile(x) for x in _parameter_steps(Readings(model), left, conjugate, nuts, options)]


def _compile(step: Step | UnbuiltNuts) -> BlockedStep:
    built = once_more_without(step) if isinstance(step, partial) else step
    if isinstance(built, Step):  # several that PyMC made of one are compiled
        built.compile()
    return built


def _parameter_steps(
    readings: Readings,
    left: Sequence[TensorVariable],
    conjugate: bool,
    nuts: Mapping[str, Any] | None,
    options: Mapping[str, Any],
    present: Present | None = None,
) -> list[Step | UnbuiltNuts]:
    steps: list[Step | UnbuiltNuts] = []
    for block in _conjugate_blocks(readings, left, present) if conjugate else []:
        rvs = [rv for conditional in block for rv in conditional.rvs]
        steps.append(ConjugateStep.of_reading(block, rvs, **options))
    continuous = _moved_by_nuts(readings, left, conjugate, present)
    if continuous:
        values = [readings.model.rvs_to_values[rv] for rv in continuous]
        steps.append(partial(lean_nuts, values, present=present, **options, **(nuts or {})))
    elif nuts:
        raise ValueError(
            "nuts was given, but NUTS has no variable to move: all parameters are drawn from "
            "their conditional distributions. Leave nuts out, or pass conjugate=False"
        )
    return steps


def _collapsed_step(
    readings: Readings,
    moved: Sequence[TensorVariable],
    counts: Sequence[TensorVariable],
    nuts: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Step | None:
    """Build the step that moves parameters with counts summed out, if they can be."""
    from pymc_dapper.collapsing.reading.model import read_collapsed
    from pymc_dapper.collapsing.step import CollapsedStep

    values, summed = ([readings.model.rvs_to_values[rv] for rv in rvs] for rvs in (moved, counts))
    try:
        reading = read_collapsed(readings.model, values, summed)
        return CollapsedStep.of_reading(reading, moved, counts=counts, nuts=nuts, **options)
    except NotCollapsibleError:
        return None


def _moved_by_nuts(
    readings: Readings,
    left: Sequence[TensorVariable],
    conjugate: bool,
    present: Present | None = None,
) -> list[TensorVariable]:
    """Find the continuous parameters that aren't drawn from their conditionals."""
    blocks = _conjugate_blocks(readings, left, present) if conjugate else []
    drawn = [rv for block in blocks for conditional in block for rv in conditional.rvs]
    return [
        rv for rv in left if rv not in drawn and _is_continuous(readings.model.rvs_to_values[rv])
    ]


def _conjugate_blocks(
    readings: Readings, rvs: Sequence[TensorVariable], present: Present | None = None
) -> list[list[Conditional]]:
    """Group the parameters with known conditionals by joint draws."""
    single = {rv: found for rv in rvs if (found := readings.conditionals([rv], present))}
    normal = [rv for rv in single if isinstance(rv.owner.op, NORMAL)]
    blocks = [found for rv, found in single.items() if rv not in normal]
    # Each may be linear in a mean without being so jointly: then they are drawn apart.
    joint = readings.conditionals(normal, present) or [x for rv in normal for x in single[rv]]
    for conditional in joint:
        size = sum(prod(shape) for shape in conditional.shapes)
        together = size <= JOINT_NORMAL_LIMIT
        blocks += [[conditional]] if together else [single[rv] for rv in conditional.rvs]
    return blocks


def _interweave_steps(
    latent: Latent, left: Sequence[TensorVariable], options: Mapping[str, Any]
) -> list[Step]:
    """Move the continuous parameters that latent variables can follow, if there are any."""
    readings, model = latent.readings, latent.readings.model
    parameters = [rv for rv in left if _is_continuous(rv)]
    if parameters:
        parameters += list(latent.sizes)
    if len(latent.groups) == 1 and not latent.counts:
        tables = read_tables(readings.records(latent.records), parameters)
        if tables is not None:
            options = {**options, "records": latent.records, "when_needed": True}
            return [BoundaryStep.of_reading(tables, list(tables.rvs), **options)]
    for followers in (latent.all, latent.records):
        if not followers or not parameters:
            continue
        stage("Reading the model")
        reading = read_movable(model, parameters, followers, readings.point, readings.records)
        if reading is not None:
            names = reading.names((*reading.parameters, *reading.numbers))
            moved = [rv for rv in parameters if rv.name in names]
            options = {**options, "records": followers, "when_needed": True}
            return [InterweaveStep.of_reading(reading, moved, **options)]
    return []


def _hierarchy_steps(
    latent: Latent, parameters: Sequence[TensorVariable], options: Mapping[str, Any]
) -> list[Step]:
    """Move parameters together with the variables whose scale they are, and their records."""
    readings, model = latent.readings, latent.readings.model
    continuous = [rv for rv in parameters if _is_continuous(model.rvs_to_values[rv])]
    followers, movers = find_hierarchy(model, continuous)
    for besides in (latent.all, latent.records, ()) if movers else ():
        records = [*followers, *besides]
        reading = read_movable(model, movers, records, readings.point, readings.records)
        if reading is not None:
            names = reading.names(reading.parameters)
            moved = [rv for rv in movers if rv.name in names]
            options = {**options, "records": records, "when_needed": True}
            return [InterweaveStep.of_reading(reading, moved, **options)]
    return []


def _alone(
    readings: Readings, left: Sequence[TensorVariable], interweave: bool, nuts: Mapping[str, Any]
) -> NonCentredModel | None:
    """Read the parameters if nothing else is latent and they are few; otherwise NUTS is better."""
    values = [readings.model.rvs_to_values[rv] for rv in left]
    size = sum(np.size(readings.point[x.name]) for x in values)
    if not interweave or nuts or size > FEW_PARAMETERS or not all(map(_is_continuous, values)):
        return None
    return read_non_centred(readings.model, values, [], readings.point)


def _is_continuous(x: TensorVariable) -> bool:
    return x.dtype in ("float32", "float64")


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
        first axis of the same length; and other latent variables of each record.

    Raises
    ------
    ReadingError
        If there are none, or if they aren't equally long.
    """
    _check_generated(model)
    readings = Readings(model)
    return _records(readings, find_tables(readings))


def _records(readings: Readings, tables: Sequence[TensorVariable]) -> list[TensorVariable]:
    model = readings.model
    sizes = readings.sizes()
    seen = [rv for rv in records_seen(model) if rv not in tables and rv not in sizes]
    if not seen:
        raise ReadingError(f"no latent records were found: {_why_none(model)}")
    counted = {rv for rvs in sizes.values() for rv in rvs}  # each by its own number
    lengths = {rv.name: length(model, rv) for rv in seen if rv not in counted}
    if None in lengths.values() or len(set(lengths.values())) > 1:
        check_scalars(model, seen)
        listed = ", ".join(
            f"'{name}' ({_told_length(model[name], n)})" for name, n in lengths.items()
        )
        # Parameters that a mechanism sees are told by what is passed, other people by a step.
        what = (
            "Pass the records, as in sample(records=[x]). A record that is a scalar needs shape=1"
        )
        if None not in lengths.values():
            first, *_, last = lengths
            what += (
                f". If '{first}' and '{last}' describe different people, each needs a step: "
                f"pm.sample(step=[pmd.DapperStep([{first}]), pmd.DapperStep([{last}])])"
            )
        raise ReadingError(
            "which variables are the latent records isn't clear: the mechanisms, or other "
            f"Potentials, depend on {listed}. {what}"
        )
    if not sizes:
        seen = _with_linked(readings, seen)
    for rv in model.free_RVs:
        parents = [x.name for x in seen if x in ancestors(rv.owner.inputs)]
        if parents and rv not in seen:
            raise ReadingError(
                f"which variables are the latent records isn't clear: a mechanism, or another "
                f"Potential, depends on '{parents[0]}', and so does the distribution of "
                f"'{rv.name}', which is free, too. Pass the records, as in sample(records=[x])"
            )
    return seen


def _with_linked(readings: Readings, seen: list[TensorVariable]) -> list[TensorVariable]:
    """Add other latent variables of each record, if the model can be read with them."""
    n = length(readings.model, seen[0])
    assert n is not None
    linked = with_linked(readings.model, seen, n)
    if linked != seen:
        try:
            readings.records(linked)
        except ReadingError:
            return seen
    return linked


def _warn_of_left_out(latent: Latent, steps: Sequence[Step | UnbuiltNuts]) -> None:
    """Warn of variables with an entry for each record that PyMC's own steps would move."""
    model = latent.readings.model
    taken = {x for step in steps if isinstance(step, Step) for x in step.vars}
    taken -= {
        x for step in steps if isinstance(step, BoundaryStep | InterweaveStep) for x in step.vars
    }
    lengths = {length(model, rv) for rv in latent.records} | {latent.tabulated}
    of_counts = {length(model, rv) for rv in latent.counts}
    for rv in model.free_RVs:
        n = length(model, rv)
        if n is not None and rv not in latent.all:
            _warn_of_other_axis(latent, rv, n)
        among = lengths if _is_continuous(rv) else lengths | of_counts
        if n is None or n not in among or model.rvs_to_values[rv] in taken:
            continue
        names = ", ".join(x.name for x in model.free_RVs if x in latent.records or x is rv)
        how = "NUTS moves them" if _is_continuous(rv) else "PyMC moves them one by one"
        LOGGER.warning(
            "'%s' has as many entries as there are records, %s, and isn't one of their variables: "
            "%s, which may be slow. Where each belongs to a record, pass it with the others: "
            "records=[%s]%s",
            rv.name,
            f"{n:,}",
            how,
            names,
            ", tabulate=False" if latent.tabulated else "",
        )


def _warn_of_other_axis(latent: Latent, rv: TensorVariable, n: int) -> None:
    """Warn of a variable with an entry for each of the many along a later axis of the records."""
    for x in latent.records:
        first, *others = view_of(latent.readings.model).shape(x)
        if n in others and n > first and rv in ancestors(x.owner.inputs):
            LOGGER.warning(
                "'%s' has %s entries along its first axis, and is taken for %s records. '%s' has "
                "an entry for each of %s along a later axis. If these are the records, put their "
                "axis first, as in shape=(%s, %s)",
                x.name, first, first, rv.name, f"{n:,}", n, first,
            )  # fmt: skip
            return


def _told_length(rv: TensorVariable, length: int | None) -> str:
    if rv.type.ndim == 0:
        return "a scalar"
    return "a single vector" if length is None else f"{length} along its first axis"


def _why_none(model: Model) -> str:
    """Say why no free variable is in a release."""
    releases = [(x, [x]) for x in model.potentials]
    releases += [(rv, rv.owner.inputs) for rv in model.observed_RVs if hasattr(rv.tag, "mechanism")]
    if not releases:
        return (
            "the model has no release of a mechanism. Add it, as in "
            'mechanism.potential("privacy", statistic, released=...). If an observed variable is '
            "the release, pass the records, as in sample(records=[x])"
        )
    for release, inputs in releases:
        known = set(ancestors(inputs)).intersection(model.observed_RVs) - {release}
        if known:
            [name, *_] = sorted(str(rv.name) for rv in known)
            return (
                f"'{release.name}' depends on '{name}', which is observed. A release adds nothing "
                f"about known records. If '{name}' is confidential, remove its observed=, and it "
                "is drawn"
            )
    return (
        "no Potential, and no release added by a mechanism's observe(), depends on a free "
        "variable. Let the statistic be a function of the records"
    )


def _check_generated(model: Model) -> None:
    """Refuse releases that aren't known yet, unless the model continues with the noisy value."""
    for rv in model.free_RVs:
        mechanism = getattr(rv.tag, "mechanism", None)
        if mechanism is None:
            continue
        name = rv.name
        others = [x for x in (*model.basic_RVs, *model.potentials) if x is not rv]
        is_used = rv in ancestors([y for x in others for y in x.owner.inputs])
        if not is_used:
            raise ReadingError(
                f"'{name}' is a release that isn't known yet. Give it by "
                f"pm.observe(model, {{'{name}': released}}), which returns the model to sample. "
                "If other releases will never be known, "
                "pymc.model.transform.basic.prune_vars_detached_from_observed(model) removes "
                f"them. Draw '{name}' afterwards, by pm.sample_posterior_predictive"
            )
        rules = repr(getattr(mechanism, "publication", ""))
        if rules:
            raise ReadingError(
                f"'{name}' isn't known, and other variables depend on it as it was published, by "
                f"{rules.removeprefix('.')}. Generate the noisy value without these rules, and "
                "write in the model what becomes of it"
            )
