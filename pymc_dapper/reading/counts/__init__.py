"""How a PyMC model with tables of counts is read."""

from pymc_dapper.reading.counts.invariant import invariant
from pymc_dapper.reading.counts.model import CountReading, read_counts
from pymc_dapper.reading.counts.moves import Moves, find_moves

__all__ = ["CountReading", "Moves", "find_moves", "invariant", "read_counts"]
