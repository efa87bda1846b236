"""Which step takes which parameter, and which parameters move together with their dependants."""

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from pymc import NUTS, Model
from pymc.step_methods import BlockedStep
from pymc.vartypes import continuous_types
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.assignment.latent import Latent
from pymc_dapper.assignment.readings import Readings
from pymc_dapper.backend.accelerate.switch import once_more_without
from pymc_dapper.conjugacy.conditional import Conditional
from pymc_dapper.conjugacy.gaussian import NORMAL
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.conjugacy.weights import categories_of
from pymc_dapper.graphs.errors import NotMarginalisableError
from pymc_dapper.graphs.present import Present
from pymc_dapper.graphs.view import view_of
from pymc_dapper.interweaving.boundary_step import BoundaryStep
from pymc_dapper.interweaving.reading.hierarchy import find_hierarchy, has_map
from pymc_dapper.interweaving.reading.model import read_movable, read_non_centred
from pymc_dapper.interweaving.reading.non_centred import NonCentredModel
from pymc_dapper.interweaving.reading.sums_held_fixed import find_sums
from pymc_dapper.interweaving.reading.tables import read_tables
from pymc_dapper.interweaving.step import InterweaveStep
from pymc_dapper.steps.base import Step
from pymc_dapper.steps.conditional_nuts import conditional_nuts
from pymc_dapper.steps.progress import stage

type UnbuiltNuts = partial[NUTS]
"""PyMC compiles NUTS when it is built."""

JOINT_NORMAL_LIMIT = 100
"""Normal parameters are drawn jointly up to this many entries: the cost is their number's cube."""

FEW_PARAMETERS = 16
"""Up to this number of entries, slices of a fitted distribution have three to forty times as many
effective draws per second as NUTS; with twice as many, the fit takes longer than chains tune."""


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
    steps = parameter_steps(Readings(model), left, conjugate, nuts, options)
    return [compile_step(step) for step in steps]


def parameter_steps(
    readings: Readings,
    left: Sequence[TensorVariable],
    conjugate: bool,
    nuts: Mapping[str, Any] | None,
    options: Mapping[str, Any],
    present: Present | None = None,
) -> list[Step | UnbuiltNuts]:
    """Choose conjugate draws where a conditional is known, and NUTS for what is left."""
    steps: list[Step | UnbuiltNuts] = []
    for block in _conjugate_blocks(readings, left, present) if conjugate else []:
        rvs = [rv for conditional in block for rv in conditional.rvs]
        steps.append(ConjugateStep.of_reading(block, rvs, **options))
    continuous = moved_by_nuts(readings, left, conjugate, present)
    if continuous:
        values = [readings.model.rvs_to_values[rv] for rv in continuous]
        steps.append(partial(conditional_nuts, values, present=present, **options, **(nuts or {})))
    elif nuts:
        raise ValueError(
            "NUTS moves no variable here, so target_accept and nuts have no effect: leave them "
            "out, or let NUTS move all continuous parameters by conjugate=False"
        )
    return steps


def _conjugate_blocks(
    readings: Readings, rvs: Sequence[TensorVariable], present: Present | None
) -> list[list[Conditional]]:
    """Group the parameters with known conditionals by joint draws."""
    tied: dict[frozenset[str], list[TensorVariable]] = {}
    for rv in rvs:
        tied.setdefault(frozenset(categories_of(readings.model, rv)), []).append(rv)
    alone = tied.pop(frozenset(), [])
    # In one step: its kernel is compiled once, in one function.
    weights = [x for each in tied.values() for x in readings.conditionals(each, present)]
    single = {rv: found for rv in alone if (found := readings.conditionals([rv], present))}
    normal = [rv for rv in single if isinstance(rv.owner.op, NORMAL)]
    blocks = [weights] if weights else []
    blocks += [found for rv, found in single.items() if rv not in normal]
    # Each may be linear in a mean without being so jointly: then they are drawn apart.
    joint = readings.conditionals(normal, present) or [x for rv in normal for x in single[rv]]
    for conditional in joint:
        size = sum(prod(shape) for shape in conditional.shapes)
        together = size <= JOINT_NORMAL_LIMIT
        blocks += [[conditional]] if together else [single[rv] for rv in conditional.rvs]
    return blocks


def moved_by_nuts(
    readings: Readings, left: Sequence[TensorVariable], conjugate: bool, present: Present | None
) -> list[TensorVariable]:
    """Find the continuous parameters that aren't drawn from their conditionals."""
    blocks = _conjugate_blocks(readings, left, present) if conjugate else []
    drawn = [rv for block in blocks for conditional in block for rv in conditional.rvs]
    return [rv for rv in left if rv not in drawn and rv.dtype in continuous_types]


def marginalised_step(
    readings: Readings,
    moved: Sequence[TensorVariable],
    counts: Sequence[TensorVariable],
    nuts: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Step | None:
    """Build the step that moves parameters with counts marginalised, if they can be."""
    from pymc_dapper.marginalised.reading.model import read_marginalised
    from pymc_dapper.marginalised.step import MarginalisedStep

    values, summed = ([readings.model.rvs_to_values[rv] for rv in rvs] for rvs in (moved, counts))
    try:
        reading = read_marginalised(readings.model, values, summed)
        return MarginalisedStep.of_reading(reading, moved, counts=counts, nuts=nuts, **options)
    except NotMarginalisableError:
        return None


def interweave_steps(
    latent: Latent, left: Sequence[TensorVariable], options: Mapping[str, Any]
) -> list[Step]:
    """Move the continuous parameters that latent variables can follow, if there are any."""
    readings = latent.readings
    parameters = [rv for rv in left if rv.dtype in continuous_types]
    if parameters:
        parameters += list(latent.sizes)
    if len(latent.groups) == 1 and not latent.counts:
        tables = read_tables(readings.records(latent.records), parameters)
        if tables is not None:
            return [BoundaryStep.of_reading(tables, list(tables.rvs), **options)]
    return _move_together(readings, parameters, (latent.all, latent.records), options)


def hierarchy_steps(
    latent: Latent, parameters: Sequence[TensorVariable], options: Mapping[str, Any]
) -> list[Step]:
    """Move parameters together with vectors whose scale they are, or that are added to them."""
    continuous = [rv for rv in parameters if rv.dtype in continuous_types]
    followers, movers = find_hierarchy(latent.readings.model, continuous)
    followers = [rv for rv in followers if has_map(rv)]
    choices = [[*followers, *besides] for besides in (latent.all, latent.records, ())]
    steps = _move_together(latent.readings, movers if followers else [], choices, options)
    for follower, others in find_sums(view_of(latent.readings.model), continuous):
        steps += _move_together(latent.readings, others, [[follower]], options)
    return steps


def _move_together(
    readings: Readings,
    parameters: Sequence[TensorVariable],
    choices: Sequence[Sequence[TensorVariable]],
    options: Mapping[str, Any],
) -> list[Step]:
    """Move parameters together with followers: the first of several choices that is possible."""
    for followers in choices if parameters else ():
        if not followers:
            continue
        stage("Reading the model")
        reading = read_movable(
            readings.model, parameters, followers, readings.point, readings.records
        )
        if reading is not None:
            names = reading.names((*reading.parameters, *reading.numbers))
            moved = [rv for rv in parameters if rv.name in names]
            options = {**options, "records": followers, "when_needed": True}
            return [InterweaveStep.of_reading(reading, moved, **options)]
    return []


def read_alone(
    readings: Readings, left: Sequence[TensorVariable], interweave: bool, nuts: Mapping[str, Any]
) -> NonCentredModel | None:
    """Read few continuous parameters for InterweaveStep alone; None if NUTS is better."""
    values = [readings.model.rvs_to_values[rv] for rv in left]
    size = sum(np.size(readings.point[x.name]) for x in values)
    continuous = all(x.dtype in continuous_types for x in values)
    if not interweave or nuts or size > FEW_PARAMETERS or not continuous:
        return None
    return read_non_centred(readings.model, values, [], readings.point)


def compile_step(step: Step | UnbuiltNuts) -> BlockedStep:
    """Compile a step that has read its model; PyMC compiles NUTS as it builds it."""
    built = once_more_without(step) if isinstance(step, partial) else step
    if isinstance(built, Step):  # a list that PyMC made of one step is compiled
        built.compile()
    return built
