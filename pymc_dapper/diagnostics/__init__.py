"""Diagnostics of private inference, from a sampling result."""

from pymc_dapper.diagnostics.acceptance import Acceptance, acceptance
from pymc_dapper.diagnostics.missing_information import missing_information
from pymc_dapper.diagnostics.record_acceptance import record_acceptance

__all__ = ["Acceptance", "acceptance", "missing_information", "record_acceptance"]
