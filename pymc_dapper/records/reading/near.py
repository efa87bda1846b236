"""Whole numbers proposed among a few values around the present one."""

from dataclasses import replace

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import vectorize_graph
from pytensor.tensor.random.basic import uniform
from pytensor.tensor.random.type import random_generator_type
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.noise import check_sources, with_randomness
from pymc_dapper.graphs.prior import read_proposals
from pymc_dapper.records.reading.model import ModelReading, log_priors_of_each
from pymc_dapper.records.reading.plan import EachByItself, NothingToDecide

CANDIDATES = 32
"""Values among which a record is drawn; an even number."""

IMPOSSIBLE = np.float64(-1e300)
"""Stands for minus infinity, which fast arithmetic doesn't know."""


def read_near(reading: ModelReading) -> ModelReading:
    """Propose whole numbers, each with a separable factor, among values around the present ones.

    Such a record is a count with a noisy answer of its own. Half of the proposals choose between
    the present value and a draw from the prior, by the separable factors. The others choose from a
    row of values at equal distances, with the present value at a random place, by the prior times
    these factors. Which half it is, the distance and the place don't depend on the present value.
    So a proposal is as likely as its reverse, times the ratio of the prior and of these factors:
    only the other factors decide. Distances are up to an eighth of a draw from the prior, each
    order of magnitude as likely as another: so it needn't be known how wide the noise is.

    Other readings are returned unchanged.
    """
    record, view, rvs = reading.records[0], reading.view, reading.rvs
    is_count = record.type.ndim == 1 and np.dtype(record.dtype).kind == "i"
    others = len(rvs) > 1 or reading.possible is not None or reading.proposes_conditionally
    if not is_count or others or not reading.separable_factors:
        return reading
    try:
        log_priors = log_priors_of_each(view, rvs, [record])
    except ReadingError:
        return reading
    if not log_priors or view.model.rvs_to_transforms[rvs[0]] is not None:
        return reading
    log_likelihood = pt.add(*(factor.log_densities for factor in reading.separable_factors))
    [draw] = read_proposals(view, rvs)
    near = _near(record, draw, log_priors[0], log_likelihood)
    randomness, proposals = with_randomness([near])
    check_sources(proposals, reading.record_names)
    graphs = [*proposals, *(factor.as_written for factor in reading.factors)]
    return replace(
        reading,
        data=view.data_in(graphs),
        randomness=randomness,
        proposals=tuple(proposals),
        near=True,
        plan=NothingToDecide() if isinstance(reading.plan, EachByItself) else reading.plan,
        parameters=view.values_in(graphs, but=reading.records),
    )


def _near(
    record: TensorVariable,
    draw: TensorVariable,
    log_prior: TensorVariable,
    log_likelihood: TensorVariable,
) -> TensorVariable:
    """Draw records near the present ones, or choose between these and a draw from the prior."""
    n, k = record.type.shape[0], pt.arange(CANDIDATES)[:, None]
    rng = random_generator_type("rng")
    _, u = uniform(size=(4, n), rng=rng, return_next_rng=True)
    in_row, place = u[0] < 0.5, pt.floor(CANDIDATES * u[1])
    distance = pt.floor((1 + pt.abs(draw) / 8) ** u[2])

    def candidate(k: TensorVariable) -> TensorVariable:
        either = pt.switch(pt.eq(k % 2, 0), draw, record)
        return pt.switch(in_row, record + distance * (k - place), either).astype(record.dtype)

    values = candidate(k)
    log_prior = vectorize_graph(log_prior, {record: values})
    possible = pt.isfinite(log_prior)
    # Other factors might not be defined at impossible values.
    values = pt.switch(possible, values, record).astype(record.dtype)
    log = vectorize_graph(log_likelihood, {record: values})
    log = log.astype("float64") + pt.switch(in_row, log_prior, 0.0)
    log = pt.switch(possible & pt.isfinite(log), log, IMPOSSIBLE)
    largest = log.max(axis=0)
    bounds = pt.exp(log - largest).cumsum(axis=0)
    chosen = pt.ge(u[3] * bounds[-1], bounds[:-1]).sum(axis=0)
    return pt.switch(largest > IMPOSSIBLE, candidate(chosen), draw).astype(record.dtype)
