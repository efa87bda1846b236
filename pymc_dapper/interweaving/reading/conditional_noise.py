"""Records as functions of parameters, noise, and what is known of each: answers, measurements.

If records have few values, the conditional distribution of each, given its own released answer
alone, is known in closed form. With the noise of that distribution held fixed, the records are in
effect marginalised: the parameters move against p(theta) prod_i sum_k p(k | theta) l_i(k), which
doesn't depend on the present records.

Real-valued records may have public measurements with an error. A record x ~ Normal(mu, tau) with a
measurement w ~ Normal(a + b x, s) is normal given w. With the noise of this law held fixed, the
records are in effect marginalised: parameters move against the law of w, whose error may be a
parameter, too. If the noise of the records' prior were held fixed instead, all w together would
make moves improbable.

Laws of another shape, such as Student's t, are replaced by normal ones with their location and
scale. Moves are exact with any law, since its log-density is subtracted from the sum of all
factors.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph import Variable, ancestors
from pytensor.tensor.random.basic import CauchyRV, LaplaceRV, LogisticRV, NormalRV, StudentTRV
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.conjugacy.children import Child
from pymc_dapper.conjugacy.gaussian import Residual, entrywise_normal, read_residual
from pymc_dapper.graphs.checks import valid_parameters
from pymc_dapper.graphs.errors import NotConjugateError, ReadingError
from pymc_dapper.graphs.rebuild import inline_symbolic_ops, rebuild
from pymc_dapper.graphs.view import ModelView
from pymc_dapper.interweaving.reading.maps import at_index
from pymc_dapper.interweaving.reading.non_centred import NonCentredModel
from pymc_dapper.records.reading.finite import support_of_entries
from pymc_dapper.records.reading.model import ModelReading, read_model
from pymc_dapper.records.reading.rows_by_cell import value_index

ENDS_WITH_LOCATION_AND_SCALE = NormalRV, StudentTRV, LaplaceRV, LogisticRV, CauchyRV
"""Laws whose last two parameters are location and scale."""

type Laws = Mapping[TensorVariable, Sequence[TensorVariable]]
"""Mean and standard deviation of each entry, by the random variables of the records."""


def laws_given_measurements(
    view: ModelView, records: Sequence[TensorVariable], numbers: Iterable[TensorVariable] = ()
) -> Laws:
    """Find the records that are measured, and their laws in terms of value variables.

    Takes random variables, and value variables of numbers of records. A law depends on no number,
    and only on records that come before it in the model.
    """
    model, laws = view.model, {}
    later = [rv for rv in model.free_RVs if rv in records]
    while later:
        rv, *later = later
        value = view.values[model.rvs_to_values[rv]]
        if value.type.ndim == 0 or model.rvs_to_transforms[rv] is not None:
            continue
        after = {view.values[x] for x in (*(model.rvs_to_values[rv] for rv in later), *numbers)}
        measurements = [
            found
            for observed in model.observed_RVs
            for found in _read(view, observed, value)
            if found.entries is not None and after.isdisjoint(ancestors([found.mean, found.spread]))
        ]
        if measurements and (prior := _read(view, rv, value)):
            laws[rv] = entrywise_normal([*prior, *measurements], value)
    return laws


def _read(view: ModelView, rv: TensorVariable, value: TensorVariable) -> list[Residual]:
    """Read a variable as normal, with a mean that is linear in a record; empty if it isn't."""
    op = rv.owner.op
    if not isinstance(op, ENDS_WITH_LOCATION_AND_SCALE):
        return []
    of_rv, *law = inline_symbolic_ops(view.at_values([rv, *op.dist_params(rv.owner)[-2:]]))
    try:
        return [read_residual(Child(rv.name, pm.Normal.rv_op, of_rv, tuple(law)), [value])]
    except NotConjugateError:
        return []


def log_law_of(
    view: ModelView, laws: Laws, records: Sequence[TensorVariable]
) -> TensorVariable | None:
    """Log-density of those records that have a law, up to a constant; None if none has."""
    terms = []
    for rv in (rv for rv in records if rv in laws):
        x, (mean, sd) = view.values[view.model.rvs_to_values[rv]], laws[rv]
        terms.append((-0.5 * ((x - mean) / sd) ** 2 - pt.log(sd)).sum())
    return pt.add(*terms) if terms else None


type RecordsReader = Callable[[Sequence[TensorVariable]], ModelReading]


def read_conditional_noise(
    model: Model,
    parameters: Sequence[TensorVariable],
    records: Sequence[TensorVariable],
    point: Mapping[str, np.ndarray],
    read_records: RecordsReader | None = None,
) -> NonCentredModel | None:
    """Write the records as a function of parameters and of their conditional law's noise.

    Arguments are those of :func:`read_non_centred`. Returns None if the records have too many
    values, if single records have no factors of their own, or if the parameters don't enter the
    prior.
    """
    rvs = [model.values_to_rvs[value] for value in records]
    if any(support_of_entries(rv) is None for rv in rvs):
        return None
    try:
        reading = read_records(rvs) if read_records else read_model(model, records, point)
    except ReadingError:
        return None  # DapperStep gives the reason
    law = reading.conditional
    if law is None:
        return None
    view, weights, log_scale = reading.view, law.weights, law.log_scale
    seen = view.values_in([*weights, log_scale])
    moving = [value for value in parameters if view.values[value] in seen]
    if not moving:
        return None
    own = [view.values[value] for value in moving]
    proposed = {x: x.type(name=f"{x.name}_proposed") for x in own}
    shape = reading.records[0].type.shape
    log_total = law.log_total(shape)
    new_log_total, *new_weights = rebuild([log_total, *weights], proposed)
    uniforms = pt.tensor("uniforms", shape=shape, dtype="float64")
    index = value_index(reading.records, law.values)
    noise = _noise(index, uniforms, weights)
    new: dict[Variable, Variable] = {
        **proposed,
        **dict(zip(reading.records, law.choose(noise, new_weights, reading.records), strict=True)),
    }

    factors = view.dependent_factors([*moving, *records])
    marginalised = {rv.name for rv in rvs} | {x.name for x in reading.separable_factors}
    others = [factor.sum() for name, factor in factors.items() if name not in marginalised]
    [rest] = rebuild([pt.add(0.0, *others)], new)
    log_density = rest.astype("float64") + new_log_total
    log_density = pt.switch(prior_is_valid(view, rvs, new), log_density, -np.inf)
    log_law = (log_scale + pt.log(at_index(index, weights))).sum() - log_total

    moved_records = [new[x] for x in reading.records]
    graphs = [noise, *moved_records, log_density, log_law]
    return NonCentredModel(
        view=view,
        data=view.data_in(graphs),
        parameters=tuple(own),
        records=reading.records,
        uniforms=(uniforms,),
        noise=(noise,) * len(records),
        proposed=tuple(proposed.values()),
        moved_records=tuple(moved_records),
        log_density=log_density,
        log_law=log_law,
        factors=tuple(factors),
        given=view.values_in(graphs, but=(*own, *reading.records)),
    )


def prior_is_valid(
    view: ModelView, rvs: Sequence[TensorVariable], new: Mapping[Variable, Variable]
) -> TensorVariable:
    """Whether the records' prior has valid parameters, as PyMC checks them, at a proposal.

    The prior itself is left out of the log-density, and with it its checks.
    """
    if not view.model.check_bounds:
        return pt.constant(True, dtype="bool")
    return rebuild([valid_parameters(view.log_densities(rvs))], new)[0]


def _noise(
    index: TensorVariable, uniforms: TensorVariable, weights: Sequence[TensorVariable]
) -> TensorVariable:
    """Spread each record's noise over its value's step of the conditional distribution function.

    A record that has an impossible value has no noise: nan, and nothing is moved.
    """
    cumulated = list(accumulate(weights))
    step = at_index(index, weights)
    noise = (at_index(index, cumulated) - (1 - uniforms) * step) / cumulated[-1]
    return pt.switch(step > 0, noise, np.nan)
