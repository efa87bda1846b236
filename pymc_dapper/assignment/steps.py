"""Which step takes which variable: the defaults a user wants.

Variables that PyMC's own steps would move although they belong to the records cause a warning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pymc import Model
from pymc.step_methods import BlockedStep
from pymc.vartypes import continuous_types
from pytensor.graph import Variable, ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.assignment.latent import Latent, find_latent
from pymc_dapper.assignment.parameters import (
    UnbuiltNuts,
    compile_step,
    hierarchy_steps,
    interweave_steps,
    marginalised_step,
    moved_by_nuts,
    parameter_steps,
    read_alone,
)
from pymc_dapper.backend.named_dims import same_named
from pymc_dapper.checks import flag
from pymc_dapper.checks import options as options_of
from pymc_dapper.conjugacy.marginal import parameters_to_marginalise
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.context import model_to_read, the_model
from pymc_dapper.graphs.dependence import answers_of_records
from pymc_dapper.graphs.errors import NotMarginalisableError
from pymc_dapper.graphs.view import view_of
from pymc_dapper.interweaving.boundary_step import BoundaryStep
from pymc_dapper.interweaving.step import InterweaveStep
from pymc_dapper.records.reading.linked import length
from pymc_dapper.records.step import DapperStep
from pymc_dapper.sizes.step import SizeStep
from pymc_dapper.steps.base import Step
from pymc_dapper.steps.building import building
from pymc_dapper.steps.progress import LOGGER, progress


def assign_steps(
    records: Variable | Sequence[Variable] | None = None,
    model: Model | None = None,
    *,
    counts: Variable | Sequence[Variable] | None = None,
    conjugate: bool = True,
    interweave: bool = True,
    marginalise: bool = True,
    dapper: Mapping[str, Any] | None = None,
    nuts: Mapping[str, Any] | None = None,
    compile_kwargs: Mapping[str, Any] | None = None,
    progressbar: bool = True,
) -> list[BlockedStep]:
    """Choose the steps for a model of latent confidential records, or of latent counts of them.

    - :class:`DapperStep` takes the records.
    - :class:`SizeStep` takes an unknown number of records (:func:`present`).
    - :class:`CountStep` takes the counts, and their parameters that can be marginalised.
    - :class:`ConjugateStep` takes the parameters with a known conditional distribution.
    - NUTS takes the other continuous parameters. If these have Binomial or Poisson counts with
      separate noise, :class:`MarginalisedStep` takes both, and marginalises the counts.
    - :class:`InterweaveStep` also moves the continuous parameters of the records, together with the
      records, so that the chain mixes at small privacy budgets. If all records are marginalised
      (:func:`tabulate`), it takes up to 16 parameters alone. A second one moves parameters of a
      hierarchy together with vectors, such as means of groups, whose scale depends on them.
      Others move parameters together with a vector that is added to them, such as a level with
      deviations from it. If records are people of several columns, each drawn by a Dirichlet
      table and counted in noisy tables, ``BoundaryStep`` moves these parameters.
    - ``pm.sample`` chooses the steps of the rest: discrete parameters.

    Parameters
    ----------
    records : variable or sequence of variables, optional
        The latent records. If neither they nor counts are given, they are found if the model leaves
        no doubt: the free variables in a mechanism's statistic that aren't counts. Variables of
        another length describe other people and have a step of their own, unless they are padded
        for the same unknown n. Pass the records if a mechanism sees variables of two lengths, or if
        one of these depends on another. Other latent variables of each record that are linked to
        these belong to it: a class, an ability, a true value behind an error, a column without a
        mechanism. Continuous variables on which public data of each record depend stay parameters.
        PyMC's log warns of other variables with as many entries. It doesn't warn of continuous ones
        beneath answers that are marginalised, such as abilities: NUTS moves these on purpose, all
        together.
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
        Its moves are compiled in tuning, if parameters have a long autocorrelation time (it is
        measured after 40 iterations or more). Tuning chooses how many moves are worth their cost.
    marginalise : bool, default True
        Whether NUTS moves parameters with counts marginalised, if possible. Otherwise
        :class:`CountStep` and NUTS move them in turn.
    dapper : dict, optional
        Passed on to :class:`DapperStep`, such as ``{"track_records": True}``.
    nuts : dict, optional
        Passed on to ``pm.NUTS``, such as ``{"target_accept": 0.99}``, which is 0.95 by default.
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
    If the privacy mechanism doesn't depend on the variables that NUTS moves, NUTS doesn't evaluate
    it. Its stat ``lp`` is then the log-density without the mechanism; PyMC leaves it at 0 if there
    are several steps.

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
            marginalise=marginalise,
            dapper=dapper,
            nuts=nuts,
            compile_kwargs=compile_kwargs,
        )
    for step in steps:
        step.vars = same_named(given.value_vars, step.vars)
    return steps


def choose_steps(latent: Latent, *, marginalise: bool, **choices: Any) -> list[BlockedStep]:
    """Choose the steps for all variables, as :func:`assign_steps` does.

    All read the model, and may refuse it, before any is compiled. The other arguments are those of
    :func:`read_steps`.
    """
    try:
        steps = read_steps(latent, marginalise=flag(marginalise, "marginalise"), **choices)
        warn_of_left_out(latent, steps)
        return [compile_step(step) for step in steps]
    except NotMarginalisableError:  # found once the noise is compiled
        return [compile_step(step) for step in read_steps(latent, marginalise=False, **choices)]


def read_steps(
    latent: Latent,
    *,
    conjugate: bool,
    interweave: bool,
    marginalise: bool,
    dapper: Mapping[str, Any] | None,
    nuts: Mapping[str, Any] | None,
    compile_kwargs: Mapping[str, Any] | None,
) -> list[Step | UnbuiltNuts]:
    """Choose the steps and have them read the model, but compile nothing."""
    readings, model = latent.readings, latent.readings.model
    conjugate, interweave = flag(conjugate, "conjugate"), flag(interweave, "interweave")
    dapper, nuts = options_of(dapper, "dapper"), options_of(nuts, "nuts")
    options = {"model": model, "compile_kwargs": options_of(compile_kwargs, "compile_kwargs")}
    parameters = left = [rv for rv in model.free_RVs if rv not in (*latent.all, *latent.sizes)]
    # With a step for each variable, the variables of a record aren't drawn together.
    present = latent.present if dapper.get("blocked", True) else {}
    steps: list[Step | UnbuiltNuts] = []
    # Steps of these records come first: other variables may depend on absent records, which must be
    # drawn anew before.
    for records in sorted(latent.groups, key=lambda group: group[0] not in present):
        of_records = readings.records(records)
        for size in {present[rv] for rv in records if rv in present}:
            of_size = readings.size(size)
            # Without sums all records are decided on at once, so a sweep can't be shortened.
            shortens = of_size.absent_add_nothing and of_records.sums
            number = of_size.size if shortens else None
            of_records = replace(of_records, draws_anew=True, number=number)
        steps.append(DapperStep.of_reading(of_records, records, **options, **dapper))
    if dapper and not latent.records:
        raise ValueError("dapper was given, but the model has no records: leave it out")
    if not latent.all and (alone := read_alone(readings, left, interweave, nuts)):
        return [InterweaveStep.of_reading(alone, left, **options)]
    if latent.sizes:
        of_sizes = [readings.size(rv) for rv in latent.sizes]
        steps.append(SizeStep.of_reading(of_sizes, list(latent.sizes), **options))
    if latent.counts:
        known = [x for rv in left for x in readings.conditionals([rv])] if conjugate else []
        conditionals = parameters_to_marginalise(known, latent.counts)
        drawn_with_counts = [rv for conditional in conditionals for rv in conditional.rvs]
        left = [rv for rv in left if rv not in drawn_with_counts]
        moved = moved_by_nuts(readings, left, conjugate, present)
        marginalised = None
        if marginalise and moved and not drawn_with_counts:
            marginalised = marginalised_step(readings, moved, latent.counts, nuts, options)
        if marginalised is not None:
            steps.append(marginalised)
            left, nuts = [rv for rv in left if rv not in moved], {}
            latent = replace(latent, counts=[])
        else:
            from pymc_dapper.counts.step import CountStep

            of_counts = readings.counts(latent.counts, conditionals)
            integrated = {"integrate": drawn_with_counts, **options}
            steps.append(CountStep.of_reading(of_counts, latent.counts, **integrated))
    of_parameters = parameter_steps(readings, left, conjugate, nuts, options, present)
    # Steps given present records alone come before absent ones are drawn again; all other steps use
    # all records, and come after.
    steps = [*of_parameters, *steps] if present else [*steps, *of_parameters]
    if interweave:
        # ConjugateStep mirrors weights of categories, which moves them as far.
        mirrored = [rv for x in of_parameters if isinstance(x, ConjugateStep) for rv in x.weights]
        steps += interweave_steps(latent, [rv for rv in left if rv not in mirrored], options)
        steps += hierarchy_steps(latent, parameters, options)
    return steps


def warn_of_left_out(latent: Latent, steps: Sequence[Step | UnbuiltNuts]) -> None:
    """Warn of variables with an entry for each record that PyMC's own steps would move."""
    model = latent.readings.model
    again = BoundaryStep | InterweaveStep
    ours = [step for step in steps if isinstance(step, Step) and not isinstance(step, again)]
    taken = {x for step in ours for x in step.vars}
    lengths = {length(model, rv) for rv in latent.records} | latent.tabulated
    of_counts = {length(model, rv) for rv in latent.counts}
    beneath = set(ancestors(answers_of_records(model)))  # of records that aren't there any more
    for rv in model.free_RVs:
        n = length(model, rv)
        if n is not None and rv not in latent.all:
            _warn_of_other_axis(latent, rv, n)
        among = lengths if rv.dtype in continuous_types else lengths | of_counts
        is_beneath = rv in beneath and rv.dtype in continuous_types
        if n is None or n not in among or model.rvs_to_values[rv] in taken or is_beneath:
            continue
        names = ", ".join(x.name for x in model.free_RVs if x in latent.records or x is rv)
        how = "NUTS moves them" if rv.dtype in continuous_types else "PyMC moves them one by one"
        LOGGER.warning(
            "'%s' has as many entries as there are records, %s, but isn't among the record "
            "variables: %s, which may be slow. If each entry belongs to a record, pass the "
            "variable with the records: records=[%s]%s",
            rv.name,
            f"{n:,}",
            how,
            names,
            ", tabulate=False" if latent.tabulated else "",
        )


def _warn_of_other_axis(latent: Latent, rv: TensorVariable, n: int) -> None:
    """Warn if records may lie along a later axis: another variable has as many entries."""
    for x in latent.records:
        first, *others = view_of(latent.readings.model).shape(x)
        if n in others and n > first and rv in ancestors(x.owner.inputs):
            LOGGER.warning(
                "'%s' has %s entries along its first axis, and is taken for %s records. '%s' has "
                "an entry for each of %s along a later axis. If that axis runs over the records, "
                "put it first, as in shape=(%s, %s)",
                x.name, first, first, rv.name, f"{n:,}", n, first,
            )  # fmt: skip
            return
