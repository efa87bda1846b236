"""Models of records of few values as models of counts: a table in the place of the records.

`reading` walks through the graphs with `RecordWalk`, in terms of random variables, since its result
is a model. It evaluates nothing: the number of records is only a number in types. `at_cells`
rewrites what a record contributes with a row for each cell. The record's variables become
constants, and public arrays that meet them are traced to the arrays that they were computed from,
whose distinct rows (`rows`) are the rows of the table. A sum over some records is first written as
one over all (`picked`). Operations that aren't known to treat each record by itself are refused.
What looks at lengths only is a constant by then, so a mean still divides by the number of records.

`model` writes the result: Multinomials one after the other, with the numbers of data sets behind a
table as coefficients; totals as sums of cells, with a constant (sparse) matrix; and, if nothing
sums over records, a mixture for each row. Such a Potential is marked (``tag.integrated_out``), so
that nobody takes what it sees for records. If other records could make a cell's probability invalid
(`variables_maybe_invalid`, by bounds), the model is refused.

`self_check` compares both models before sampling, factor by factor, at records drawn from the
model's own density. The counts' prior less the multiplicity must be the records'. It needs an array
of all records; beyond 10^6 entries, `fewer` writes the model with a few records, and these are
compared. `choice` says whether `pmd.sample` tabulates, by the numbers of records and cells.
"""

from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.model import tabulate

__all__ = ["TabulationError", "tabulate"]
