"""Bayesian inference from privacy-protected data, in PyMC."""

from pymc_dapper import diagnostics
from pymc_dapper.reading import (
    NotAdditiveError,
    ReadingError,
    UnknownOperationError,
    follow_records,
)
from pymc_dapper.steps.dapper import DapperStep

__all__ = [
    "DapperStep",
    "NotAdditiveError",
    "ReadingError",
    "UnknownOperationError",
    "diagnostics",
    "follow_records",
]
__version__ = "0.1.0"
