"""Models of records of few values as models of counts: a table in the place of the records."""

from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.model import tabulate

__all__ = ["TabulationError", "tabulate"]
