"""Answers from a release at once: true values given what was published, without a model.

`law` asks a mechanism for its log-density of each cell, evaluated in NumPy, so a new mechanism
needs nothing here. `windows` tabulates it. `cells` draws from these tables, and `trees` hands them
to `counts.trees`. `table` says which sums of cells are known, and `posterior` chooses the method by
that alone: single cells, nested sums, or a chain for all others. An `Answer` keeps what is told of
its draws through all arithmetic, and how the same is computed under the other prior.
"""

from pymc_dapper.answers.answer import Answer
from pymc_dapper.answers.summary import Summary

__all__ = ["Answer", "Summary"]
