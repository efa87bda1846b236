"""Bayesian inference from privacy-protected data, in PyMC."""

from pymc_dapper.reading import (
    NotAdditiveError,
    ReadingError,
    UnknownOperationError,
)
from pymc_dapper.steps.dapper import DapperStep

__all__ = ["DapperStep", "NotAdditiveError", "ReadingError", "UnknownOperationError"]
__version__ = "0.1.0"
