"""The records proposed near where they are, in the place of anew."""

from dataclasses import replace

import pytensor
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.traversal import ancestors

from pymc_dapper.graphs.noise import check_sources, with_randomness
from pymc_dapper.graphs.prior import read_proposals
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.records.reading.model import ModelReading, in_terms_of, log_priors
from pymc_dapper.records.reading.possible import read_possible


def read_local(reading: ModelReading) -> ModelReading | None:
    """Read how a model's records are proposed near where they are; None if none can be.

    The reading returned differs in its proposals, and where their draws come from. How far they
    reach, a number above 0 and up to 1, is the last of its ``data``. A proposal is as likely as the
    way back from it, times the ratio of the priors. So what decides on it is the same.
    """
    if reading.proposes_conditionally:
        return None
    model, records = reading.model, reading.records
    rvs = [model[name] for name in reading.record_names]
    known = in_terms_of(model, records, reading.dim_lengths)
    values = [model.rvs_to_values[rv] for rv in rvs]
    reach: SharedVariable = pytensor.shared(1.0, name="reach")
    priors = rebuild(log_priors(model, rvs), known)
    _, valid_parameters = read_possible(model, rvs, records, known, priors)
    to_values = dict(zip(records, values, strict=True))
    valid = {rv: rebuild([x], to_values)[0] for rv, x in valid_parameters.items()}
    proposals = rebuild(read_proposals(model, rvs, valid, reach), known)
    if reach not in ancestors(proposals):
        return None
    randomness, proposals = with_randomness(proposals)
    check_sources(proposals, reading.record_names)
    return replace(
        reading,
        randomness=randomness,
        proposals=tuple(proposals),
        data=(*reading.data, reach),
    )
