"""Releases: read from files and from what privacy libraries tell, kept, put into models."""

from pymc_dapper.releases.dp_events import budget_of_event, event_of_budget
from pymc_dapper.releases.opendp import opendp_mechanism, read_opendp
from pymc_dapper.releases.query import Query
from pymc_dapper.releases.release import Release
from pymc_dapper.releases.tables import read_release

__all__ = [
    "Query",
    "Release",
    "budget_of_event",
    "event_of_budget",
    "opendp_mechanism",
    "read_opendp",
    "read_release",
]
