"""Tabulation: models of records with few values, rewritten as models of their counts.

`reading` walks through the graphs with `RecordWalk`, in terms of random variables, since its result
is a model. It evaluates nothing: the number of records is only a number in types. `at_cells`
rewrites contributions of records with a row for each cell. The record's variables become constants.
Public arrays that are combined with them are traced to the arrays they were computed from; the
distinct rows of these (`rows`) are the rows of the table. A sum over some records is first written
as one over all (`picked`). Operations that aren't known to treat records separately are refused.
Operations on lengths are constants by then, so a mean still divides by the number of records.

`by_entry` integrates records out given others on which they depend. `long_form` reads a matrix as
one record for each entry. `cliques` says which variables are counted together: those that one
depends on, and those that something sees together. If some tables are impossible, all variables are
counted in one, since moves around these aren't known of linked tables (`are_all_possible`).
`writer` writes the result: Multinomials, each given a margin of an earlier one, with the
multiplicities of tables as coefficients; totals as sums of cells, with a constant (sparse) matrix;
and, if nothing sums over records, a mixture for each row. The Potential of records' answers is
marked (``tag.of_answers``), so that parameters in it aren't taken for records. If some values of
records could make a cell's probability invalid (`variables_maybe_invalid`, by bounds), the model is
refused.

`self_check` compares both models before sampling, factor by factor, at records drawn from the
model's own density, variable by variable: nothing has an entry for each joint value. The counts'
prior less the multiplicity must be the records'. It needs an array of all records; beyond 10^6
entries, `fewer` writes the model with a few records, and these are compared. `choice` decides
whether `pmd.sample` tabulates, by the numbers of records and cells.
"""

from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.model import tabulate

__all__ = ["TabulationError", "tabulate"]
