"""Records proposed near their present values instead of anew."""

from dataclasses import replace

import pytensor
from pytensor.graph.traversal import ancestors

from pymc_dapper.graphs.noise import check_sources, with_randomness
from pymc_dapper.graphs.prior import read_proposals
from pymc_dapper.graphs.view import stand_in
from pymc_dapper.records.reading.model import ModelReading, log_priors
from pymc_dapper.records.reading.possible import read_possible


def read_local(reading: ModelReading) -> ModelReading | None:
    """Read how a model's records are proposed near where they are; None if none can be.

    The reading returned differs in its proposals, and where their draws come from. How far they
    reach, a number above 0 and up to 1, is the last of its ``data``. A proposal is as likely as the
    way back from it, times the ratio of the priors. So what decides on it is the same.
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
    return replace(
        reading,
        randomness=randomness,
        proposals=tuple(proposals),
        data={**reading.data, shared: reach},
    )
