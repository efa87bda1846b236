"""Reading a model with tables of counts."""

from pymc_dapper.counts.reading.invariant import invariant
from pymc_dapper.counts.reading.model import CountReading, read_counts
from pymc_dapper.counts.reading.moves import Moves, find_moves

__all__ = ["CountReading", "Moves", "find_moves", "invariant", "read_counts"]
