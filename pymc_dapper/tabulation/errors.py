"""Reasons why a model can't be tabulated."""

from pymc_dapper.graphs.errors import ReadingError


class TabulationError(ReadingError):
    """The records of a model can't be counted: the model distinguishes them, or they differ."""
