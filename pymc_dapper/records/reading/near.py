"""Whole numbers proposed among a row of values around the present one, and from their prior."""

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
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.records.reading.model import ModelReading, log_priors_of_each
from pymc_dapper.records.reading.plan import EachByItself, NothingToDecide

VALUES = 32
"""Length of a row."""

IMPOSSIBLE = np.float64(-1e300)
"""Stands for minus infinity, which fast arithmetic doesn't know."""


def read_near(reading: ModelReading) -> ModelReading:
    """Propose whole numbers with separable factors near the present ones.

    Such a record is a count with a noisy answer of its own. A proposal is made in three moves. The
    first and the last draw from the prior, and separable factors decide. That between them draws
    from the conditional distribution within a row of values at equal distances, with the present
    value at a random place. The distance has nothing to do with the present value: it is from 1 to
    an eighth of another draw from the prior, each order of magnitude as likely as another. So it
    needn't be known how wide the noise is.

    Each move is as likely as its reverse, times the ratio of the prior and the separable factors,
    and so are all three, which read the same backwards. Only other factors are left to decide.

    Other readings are returned unchanged.
    """
    record, view, rvs = reading.records[0], reading.view, reading.rvs
    is_count = record.type.ndim == 1 and np.dtype(record.dtype).kind == "i"
    others = len(rvs) > 1 or reading.possible is not None or reading.proposes_conditionally
    transformed = view.model.rvs_to_transforms[rvs[0]] is not None
    if not is_count or others or transformed or not reading.separable_factors:
        return reading
    try:
        log_priors = log_priors_of_each(view, rvs, [record])
    except ReadingError:
        return reading
    if not log_priors:
        return reading
    log_likelihood = pt.add(*(factor.log_densities for factor in reading.separable_factors))
    draws = [read_proposals(view, rvs)[0] for _ in range(3)]
    near = _near(record, draws, log_priors[0], log_likelihood)
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
    draws: list[TensorVariable],
    log_prior: TensorVariable,
    log_likelihood: TensorVariable,
) -> TensorVariable:
    """Draw records near the present ones; ``draws`` are three from the prior."""
    rng = random_generator_type("rng")
    _, u = uniform(size=(5, record.type.shape[0]), rng=rng, return_next_rng=True)

    def or_drawn(x: TensorVariable, draw: TensorVariable, u: TensorVariable) -> TensorVariable:
        """Take a draw from the prior in the place of x, or not."""
        present, drawn = (rebuild([log_likelihood], {record: at})[0] for at in (x, draw))
        gains = pt.log(u) < pt.switch(pt.isfinite(present), drawn - present, 0.0)
        return pt.switch(pt.isfinite(drawn) & gains, draw, x).astype(record.dtype)

    def in_row(x: TensorVariable) -> TensorVariable:
        """Draw from the conditional distribution within a row."""
        place = pt.floor(VALUES * u[1])
        distance = pt.floor((1 + pt.abs(draws[1]) / 8) ** u[2])
        values = (x + distance * (pt.arange(VALUES)[:, None] - place)).astype(record.dtype)
        log = vectorize_graph(log_prior, {record: values}).astype("float64")
        possible = pt.isfinite(log)
        # Other factors might not be defined at impossible values.
        values = pt.switch(possible, values, draws[1]).astype(record.dtype)
        log = log + vectorize_graph(log_likelihood, {record: values})
        log = pt.switch(possible & pt.isfinite(log), log, IMPOSSIBLE)
        largest = log.max(axis=0)
        bounds = pt.exp(log - largest).cumsum(axis=0)
        chosen = pt.ge(u[3] * bounds[-1], bounds[:-1]).sum(axis=0)
        found = pt.switch(largest > IMPOSSIBLE, x + distance * (chosen - place), draws[1])
        return found.astype(record.dtype)

    return or_drawn(in_row(or_drawn(record, draws[0], u[0])), draws[2], u[4])
