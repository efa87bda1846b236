"""Releases: read from files and from what privacy libraries tell, kept, put into models."""

from pymc_dapper.releases.dp_events import budget_of_event, event_of_budget
from pymc_dapper.releases.opendp import opendp_mechanism, read_opendp

__all__ = [
    "budget_of_event",
    "event_of_budget",
    "opendp_mechanism",
    "read_opendp",
]
