"""What a model can't be tabulated for."""

from pymc_dapper.graphs.errors import ReadingError


class TabulationError(ReadingError):
    """The records of a model can't be counted: the model tells them apart, or they differ."""
