"""Tabulation: models of records with few values, rewritten as models of their counts.

`reading` walks through the graphs with `RecordWalk`. It works in terms of random variables, since
its result is a model. It evaluates nothing, so the number of records costs nothing. `at_cells`
rewrites contributions of records with a row for each cell: the record's variables become constants.
Public arrays that are combined with them are traced to the arrays that they were computed from. The
distinct rows of these (`rows`) are the rows of the table. A sum over some records is first written
as one over all. Operations that aren't known to treat records separately are refused. Lengths are
made constants first, so a mean still divides by the number of records.

`model` marginalises records, given others on which they depend. `long_form` reads a matrix as
one record for each entry. `cliques` says which variables are counted together: a variable with
those that it depends on, and variables that something sees together. If some tables are impossible,
all variables are counted in one table (`are_all_possible`): `CountStep` knows no moves of linked
tables around impossible ones.
`writer` writes the result: Multinomials, each given a margin of an earlier one, with the
multiplicities of tables as coefficients; totals as sums of cells, with a constant (sparse) matrix;
and, if nothing sums over records, a mixture for each row. If what is observed of each record
depends on parameters, variables are eliminated in turn. That gives the law of each, given what is
observed, and the marginal likelihood. The Potential of records' answers is marked
(``tag.of_answers``), so that parameters in it aren't taken for records. If some values of records
could make a cell's probability invalid (`variables_maybe_invalid`, by bounds), the model is
refused.

`self_check` compares both models before sampling, factor by factor. Records are drawn from the
model's own density, one variable after the other, so that nothing has an entry for each joint
value. The counts' prior, less the logarithm of the multiplicity, must be the records' prior. The
check needs an array of all records. Beyond 10^6 entries, `fewer` writes the model with a few
records, and these are compared. `choice` decides whether `pmd.sample` tabulates, by the numbers of
records and cells.
"""
