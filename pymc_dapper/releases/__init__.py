"""Releases: read from files and from what privacy libraries tell, kept, put into models."""

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
