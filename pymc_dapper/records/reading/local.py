"""Records proposed near their present values instead of independently."""

from dataclasses import replace

import pytensor
from pytensor.graph import ancestors

from pymc_dapper.graphs.noise import check_sources, with_randomness
from pymc_dapper.graphs.prior import read_proposals
from pymc_dapper.graphs.view import stand_in
from pymc_dapper.records.reading.model import ModelReading, log_priors
from pymc_dapper.records.reading.possible import read_possible


def read_local(reading: ModelReading) -> ModelReading | None:
    """Read proposals near the present values of a model's records; None if there are none.

    The returned reading has other proposals and sources of randomness. Their reach, in (0, 1], is
    the last of its ``data``. A proposal is as likely as its reverse, times the ratio of the priors.
    So the decision is the same.
    """
    if reading.proposes_conditionally:
        return None
    view, rvs = reading.view, reading.rvs
    shared = pytensor.shared(1.0, name="reach")
    reach = stand_in(shared)
    _, valid = read_possible(view, rvs, reading.records, log_priors(view, rvs))
    proposals = read_proposals(view, rvs, valid, reach)
    if reach not in ancestors(proposals):
        return None
    randomness, proposals = with_randomness(proposals)
    check_sources(proposals, reading.record_names)
    data = {**reading.data, shared: reach}
    return replace(reading, randomness=randomness, proposals=tuple(proposals), data=data)
