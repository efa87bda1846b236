"""Unknown numbers of records: n drawn given all records that there is room for.

A model has room for N records, and mechanisms depend on the first n. Its dimension is fixed: absent
records follow their prior, and nothing else depends on them.

**Reading.** `reading.flags` finds the comparisons of row numbers with n. They are evaluated at all
n, and must mark the first n rows, in whatever form. `read_factors` treats the flags as records, so
each factor becomes a function of sums over rows. A row's contribution with its flag set, less the
one without, is cumulated: this gives the sums at 0, 1, ..., N records, and the function of them is
vectorised. If the contribution of an absent row depends on a record, the model is refused.

**A draw** (`compiled.draw`, one compiled function) shuffles the first n rows, then forms the sums,
then draws n. Sums in the old order would not belong to the state; a test has that fault. Rows are
shuffled only if they are alike (`reading.exchangeable`). They are cut at random, and dealt into two
heaps: any permutation that doesn't depend on the records keeps the posterior. Without a shuffle, a
record that adds to an exactly known total could never leave. Records of three values with a known
total have as many effective draws as if all orders were equally likely, and half as many if they
are cut only. Without a known total, n has as many effective draws without a shuffle (13 models).

**The order of steps** is that of a partially collapsed Gibbs sampler (van Dyk and Park 2008, JASA
103). `assign_steps` makes it:

1. Parameters, given n and the present records alone (`graphs.present`); absent ones are
   marginalised. This keeps the posterior of (parameters, n, present records), and may leave absent
   records at odds with the parameters.
2. `DapperStep`. Absent records add nothing to a sum, so an absent record's proposal, a draw from
   its prior, is always accepted. Present records keep the posterior of step 1, and absent ones
   become independent draws given it. A walk would leave them near their old values, so these
   records never walk (`draws_anew`).
3. Steps that use absent records: `DapperStep` for other variables of a row, such as a class;
   `SizeStep`, steps of counts, `InterweaveStep`, PyMC's own and a user's.

No step between 1 and 2 may use absent records; a test has that fault. If `DapperStep` may refuse an
absent record's proposal (`ModelReading.possible`), parameters are drawn given all records, and any
order is right.

**Cost.** A sweep decides on the first n records only; the others become their proposals. A test
shows that this is the same sweep, decision by decision. Absent records are drawn in each sweep.
Otherwise a recorded draw, and any function of all rows, would hold records of old parameters.

**Number and parameters together.** Twice the records with half the mean have the same sum, so n and
the mean are strongly correlated. `InterweaveStep` holds the noise of all N records fixed and moves
log(n + u) as one more coordinate, with u uniform and drawn before each move. The density is that of
n on [n, n + 1), and the Jacobian n + u. Factors are evaluated as the model has them, with a row for
each of the N.
"""
