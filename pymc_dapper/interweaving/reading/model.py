"""Read a model in terms of the records' noise instead of the records."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.asked_once import initial_point
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.view import ModelView, view_of
from pymc_dapper.interweaving.reading.conditional_noise import (
    Laws,
    RecordsReader,
    laws_given_measurements,
    log_law_of,
    prior_is_valid,
    read_conditional_noise,
)
from pymc_dapper.interweaving.reading.families import NORMAL
from pymc_dapper.interweaving.reading.maps import RecordMap, parameters_of, record_map
from pymc_dapper.interweaving.reading.non_centred import NonCentredModel
from pymc_dapper.interweaving.reading.sums_held_fixed import rest_of_sum
from pymc_dapper.sizes.reading.model import NumberedRecords, see


def read_non_centred(
    model: Model,
    parameters: Sequence[TensorVariable],
    records: Sequence[TensorVariable],
    point: Mapping[str, np.ndarray],
    read_records: RecordsReader | None = None,
) -> NonCentredModel:
    """Write records as a function of parameters, both given as value variables, and noise.

    The noise is that of the records' prior. If records have few values and factors of their own, it
    is that of their conditional distribution (:func:`read_conditional_noise`); if real numbers are
    measured, of their law given this (:func:`laws_given_measurements`). ``point`` gives shapes.
    ``read_records`` reads the model's records, if that was not done before. Without records, the
    parameters are read alone.

    Raises
    ------
    ReadingError
        If no parameter moves any record, or a parameter is discrete.
    NoRecordMapError
        If the records of a distribution can't be written as a function of parameters and noise.
    """
    everything = parameters
    view = view_of(model)
    parameters, numbers = _tell_apart(view, parameters, records)
    if numbers and not (parameters and records):
        raise _a_number_alone(model, numbers, records)
    if not records:
        return _read_moved(view, parameters, [], {}, {}, {})
    rvs = [model.values_to_rvs[value] for value in records]
    conditional = read_conditional_noise(model, parameters, records, point, read_records)
    if conditional is not None:
        return conditional
    laws = laws_given_measurements(view, rvs, numbers)
    sums = _sums_held_fixed(view, parameters, [rv for rv in rvs if rv not in laws])
    moving, moved = _who_moves_whom(view, parameters, rvs, {**laws, **sums})
    if not moved:
        names = ", ".join(f"'{model.values_to_rvs[value].name}'" for value in everything)
        raise ReadingError(
            f"InterweaveStep has nothing to do: {names} doesn't enter the prior of the records "
            f"{', '.join(f"'{rv.name}'" for rv in rvs)}. In a non-centred model, where the records "
            "are the noise, any other step for the parameters makes this move already"
        )
    numbers = {x: seen for x, seen in numbers.items() if not set(seen.rvs).isdisjoint(moved)}
    return _read_moved(view, moving, moved, numbers, laws, sums)


def _sums_held_fixed(
    view: ModelView, parameters: Sequence[TensorVariable], rvs: Sequence[TensorVariable]
) -> Laws:
    """Find the records that are added to parameters, with laws whose noise is their sum."""
    moving = [view.model.values_to_rvs[value] for value in parameters]
    rests = {rv: rest_of_sum(view, rv, moving) for rv in rvs}
    return {rv: (-x, pt.ones((), dtype=x.dtype)) for rv, x in rests.items() if x is not None}


def _read_moved(
    view: ModelView,
    moving: Sequence[TensorVariable],
    moved: Sequence[TensorVariable],
    numbers: Mapping[TensorVariable, NumberedRecords],
    laws: Laws,
    sums: Laws,
) -> NonCentredModel:
    """Read the records that parameters move, and the numbers of these records."""
    own, own_numbers = (tuple(view.values[x] for x in each) for each in (moving, numbers))
    proposed, proposed_numbers = (
        [x.type(name=f"{x.name}_proposed") for x in each] for each in (own, own_numbers)
    )
    new: dict[Variable, Variable] = dict(zip(own, proposed, strict=True))
    # More than there is room for are refused, but evaluated: as many as a table that they are
    # looked up in may have.
    new_numbers: dict[Variable, Variable] = {
        view.values[value]: pt.minimum(new_value, seen.room).astype(value.dtype)
        for (value, seen), new_value in zip(numbers.items(), proposed_numbers, strict=True)
    }
    there = {rv: new_numbers[view.values[x]] for x, seen in numbers.items() for rv in seen.rvs}
    written = _write_records(view, moved, new, there, {**laws, **sums})
    by_prior = [rv for rv in moved if rv not in laws and rv not in sums]
    log_density, factors = _without_priors(view, by_prior, new | new_numbers)
    log_law = log_law_of(view, laws, moved)
    if log_law is not None:
        log_density = log_density - rebuild([log_law], new)[0]
    room = [n <= seen.room for seen, n in zip(numbers.values(), proposed_numbers, strict=True)]
    # A statistic that clips its records would take an infinite one for a large one.
    possible = reduce(pt.and_, [*written.finite, *room], prior_is_valid(view, moved, new))
    log_density = pt.switch(possible, log_density, -np.inf)
    moved_values = [view.values[view.model.rvs_to_values[rv]] for rv in moved]
    graphs = [*written.noise, *written.records, log_density]
    return NonCentredModel(
        view=view,
        data=view.data_in(graphs),
        parameters=own,
        records=tuple(moved_values),
        uniforms=tuple(written.uniforms),
        noise=tuple(written.noise),
        proposed=tuple(proposed),
        moved_records=tuple(written.records),
        log_density=log_density,
        log_law=log_law,
        factors=tuple(factors),
        given=view.values_in(graphs, but=(*own, *own_numbers, *moved_values)),
        numbers=own_numbers,
        proposed_numbers=tuple(proposed_numbers),
        is_normal=written.is_normal,
        sums=tuple(rv.name for rv in moved if rv in sums),
    )


class _Written(NamedTuple):
    """Records as functions of parameters and noise."""

    uniforms: list[TensorVariable]
    noise: list[TensorVariable]
    records: list[TensorVariable]
    finite: list[TensorVariable]
    is_normal: bool


def _write_records(
    view: ModelView,
    moved: Sequence[TensorVariable],
    new: dict[Variable, Variable],
    there: Mapping[TensorVariable, TensorVariable],
    laws: Laws,
) -> _Written:
    """Write each variable of the records with the proposed parameters, and add it to ``new``.

    ``there`` says how many rows of a variable are present, if that isn't all of them.
    """
    model = view.model
    uniforms, noise, records, finite, normal = [], [], [], [], []
    for rv in moved:
        value, node = view.values[model.rvs_to_values[rv]], rv.owner
        present = laws.get(rv) or view.at_values(parameters_of(node))
        shifted = rebuild(present, new)
        which = [a is not b for a, b in zip(present, shifted, strict=True)]
        rule = NORMAL if rv in laws else _map_of(rv, which)
        normal.append(rule.is_normal)
        uniform = None
        if rule.has_jumps or not rv.dtype.startswith("float"):
            uniform = pt.tensor(f"{rv.name}_uniforms", shape=value.type.shape, dtype="float64")
            uniforms.append(uniform)
        [natural] = view.at_values([rv])
        noise += view([rule.noise(natural, present, uniform)])
        # PyMC's quantiles take the shape of a variable from the lengths of its dims.
        [record] = view([rule.records(noise[-1], shifted)])
        transform = model.rvs_to_transforms[rv]
        if transform is not None:
            record = transform.forward(record, *rebuild(view.at_values(node.inputs), new))
        seen_rows = record[: there[rv]] if rv in there else record
        finite.append(pt.isfinite(seen_rows).all())
        records.append(pt.specify_shape(record, value.type.shape).astype(value.dtype))
        new[value] = records[-1]
    return _Written(uniforms, noise, records, finite, all(normal))


def read_movable(
    model: Model,
    parameters: Sequence[TensorVariable],
    records: Sequence[TensorVariable],
    point: Mapping[str, np.ndarray],
    read_records: RecordsReader | None = None,
) -> NonCentredModel | None:
    """Write records as a function of noise and of as many parameters as possible.

    Both are given as random variables. Returns what ``InterweaveStep(..., records=records)`` reads
    for these parameters; None if there are none.
    """
    record_values = [model.rvs_to_values[rv] for rv in records]

    def moving(rvs: Sequence[TensorVariable]) -> NonCentredModel | None:
        values = [model.rvs_to_values[rv] for rv in rvs]
        try:
            return read_non_centred(model, values, record_values, point, read_records)
        except ReadingError:
            return None

    # If all together fail, it may be because of one of them only.
    return moving(parameters) or moving([rv for rv in parameters if moving([rv])])


def can_interweave(
    model: Model, parameters: Sequence[TensorVariable], records: Sequence[TensorVariable]
) -> list[TensorVariable]:
    """Return the parameters that can be moved together with the records.

    Those are the ones for which ``InterweaveStep(..., records=records)`` can be built; all are free
    random variables of the model.
    """
    reading = read_movable(model, parameters, records, initial_point(model))
    names = [] if reading is None else reading.names(reading.parameters)
    return [rv for rv in parameters if rv.name in names]


def _who_moves_whom(
    view: ModelView,
    parameters: Sequence[TensorVariable],
    rvs: Sequence[TensorVariable],
    laws: Laws,
) -> tuple[list[TensorVariable], list[TensorVariable]]:
    """Value variables of the parameters that move records, and the records that they move."""
    moving: set[TensorVariable] = set()
    moved: list[TensorVariable] = []
    behind: dict[TensorVariable, set[TensorVariable]] = {}
    # In the model's order a variable comes after those it depends on.
    model = view.model
    for rv in (rv for rv in model.free_RVs if rv in rvs):
        inputs = view.values_in(laws.get(rv) or view.at_values(parameters_of(rv.owner)))
        movers = {x for x in parameters if view.values[x] in inputs}
        for earlier in moved:
            if view.values[model.rvs_to_values[earlier]] in inputs:
                movers |= behind[earlier]
        if movers:
            behind[rv] = movers
            moved.append(rv)
            moving |= movers
    return [value for value in parameters if value in moving], moved


def _map_of(rv: TensorVariable, which: Sequence[bool]) -> RecordMap:
    try:
        return record_map(rv.owner.op, rv.owner, which)
    except ReadingError as error:
        raise type(error)(
            f"InterweaveStep can't move the records '{rv.name}' with their parameters: {error}"
        ) from error


def _without_priors(
    view: ModelView,
    moved: Sequence[TensorVariable],
    new: Mapping[Variable, Variable],
) -> tuple[TensorVariable, list[str]]:
    """Return all factors that the move changes, except the priors of the moved records."""
    factors = view.dependent_factors([x for x, own in view.values.items() if own in new])
    for rv in moved:
        del factors[rv.name]
    [total] = rebuild([pt.add(*(factor.sum() for factor in factors.values()))], new)
    return total.astype("float64"), list(factors)


def _tell_apart(
    view: ModelView,
    values: Sequence[TensorVariable],
    records: Sequence[TensorVariable],
) -> tuple[list[TensorVariable], dict[TensorVariable, NumberedRecords]]:
    """Separate continuous parameters from numbers of records, with the readings of these."""
    parameters, numbers = [], {}
    for value in values:
        name = view.model.values_to_rvs[value].name
        if value in records:
            raise ReadingError(
                f"'{name}' was passed both as a parameter and among the records: a variable is one "
                "or the other"
            )
        if value.dtype.startswith("float"):
            parameters.append(value)
            continue
        seen = see(view, value) if value.type.ndim == 0 else None
        if seen is None or not seen.records:
            raise ReadingError(
                f"'{name}' is discrete, and InterweaveStep moves continuous parameters only, and "
                "numbers of records (pmd.present): leave it to another step"
            )
        numbers[value] = seen
    return parameters, numbers


def _a_number_alone(
    model: Model, numbers: Mapping[TensorVariable, NumberedRecords], records: Sequence[Variable]
) -> ReadingError:
    names = ", ".join(f"'{model.values_to_rvs[value].name}'" for value in numbers)
    counted = ", ".join(dict.fromkeys(rv.name for seen in numbers.values() for rv in seen.rvs))
    lacking = (
        "parameters that these follow" if records else f"the records, as in records=[{counted}]"
    )
    return ReadingError(
        f"InterweaveStep moves {names}, a number of records, together with parameters and records: "
        f"pass {lacking}, too. By itself, SizeStep draws it"
    )
