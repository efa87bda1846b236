"""Answers: posteriors of the true values behind a release, without a model.

`law` evaluates a mechanism's log-density of each cell in NumPy, so a new mechanism needs nothing
here. `windows` tabulates it. `cells` draws from the tables, and `trees` hands them to
`counts.trees`. `table` finds which sums of cells are known. `posterior` chooses the method by these
sums alone: single cells, nested sums, or a chain for everything else. Arithmetic on an `Answer`
keeps its method and prior, and how to compute it under the other prior.
"""

from pymc_dapper.answers.answer import Answer
from pymc_dapper.answers.summary import Summary

__all__ = ["Answer", "Summary"]
