"""Releases: read from files and from what privacy libraries tell, kept, put into models.

A `Query` is what was released of one statistic, with its mechanism; a `Release` is all of them.
Every reader ends in these, so checks are made once: values that the mechanism can have released
(`Mechanism.as_released`), dims, and labels. `arrays` makes arrays of a table's rows, whichever
library the table is of (`frames`). Before a query enters a model, its labels are compared with the
model's: a release in another order would fit in shape. `margins` sums a table over what a query
doesn't tell apart. In JSON (`mechanism_json`), mechanisms and rules are the fields of their
dataclasses, so a new one needs its name there. No sampler is known here.
"""

from pymc_dapper.releases.census import read_census
from pymc_dapper.releases.diffprivlib import diffprivlib_mechanism
from pymc_dapper.releases.dp_events import budget_of_event, event_of_budget
from pymc_dapper.releases.opendp import opendp_mechanism, read_opendp
from pymc_dapper.releases.pipeline_dp import noise_of_stddev, pipeline_dp_mechanisms
from pymc_dapper.releases.private_pgm import read_measurements
from pymc_dapper.releases.smartnoise import smartnoise_mechanism
from pymc_dapper.releases.tumult import tumult_mechanisms

__all__ = [
    "budget_of_event",
    "diffprivlib_mechanism",
    "event_of_budget",
    "noise_of_stddev",
    "opendp_mechanism",
    "pipeline_dp_mechanisms",
    "read_census",
    "read_measurements",
    "read_opendp",
    "smartnoise_mechanism",
    "tumult_mechanisms",
]
