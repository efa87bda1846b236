"""Records as latent variables: how a model sees them, and the step that updates one by one.

A sweep proposes all records at once, then decides on them one after the other (`compiled.sweep`).
The decision on one record, `kernels.record_sweep.update_record`, is a deterministic function of the
sums and the log-density there, of what the record adds now and would add, and of the logarithm of a
uniform variate. Randomness stays outside. So a test can enumerate proposals and build the sweep's
transition matrix through the kernel that users run (``tests/enumerate_sweep.py``), and a broken
twin is the same sweep with one line of the kernel edited (``tests/broken.py``).

**What decides** is a plan, which `reading.plan` reads off the factors and `DapperStep.describe`
prints. Compiling is one ``match`` on it.

===================== ============================================================================
plan                  what decides on a proposal
===================== ============================================================================
``ByEntries``         the terms of those entries of the sums that the record would change
``BySums``            the log-density as a function of all sums
``ByFullEvaluation``  the log-density as the model has it, from all records
``EachByItself``      separable factors only: all records are decided on at once
``NothingToDecide``   proposals come from the records' conditional distribution; none is refused
===================== ============================================================================

For ``ByEntries`` and ``BySums``, what records add to the sums is made in one of three ways:

- *By value*: records with at most 16 values, which contribute alike if they have the same value.
  Contributions are evaluated once for each value and looked up (1.7 to 1.9 times as fast). A
  covariate that enters the contributions keeps records apart.
- *By block*: 2,048 records at a time, as the rows of all would outgrow the processor's caches. If
  `graphs.scalars` can write a contribution as scalars (256 at most), a row is one pass in
  registers, 1.3 times as fast at 400 records and 1.6 times at 10,000. Else the graph of a block of
  arrays makes the rows, from 2,048 records on.
- *At once*: fewer records, or an operation that isn't known to treat each record by itself.

With ``ByEntries``, a table of any size costs two terms for each proposal; at 400 records in four
cells, decisions are six times as fast. Terms that `CountStep` reads don't serve here: they drop
what doesn't depend on the counts, which the reported log-density needs.

**Rounding.** Sums are formed afresh at the start of each sweep, in runs with compensation
(`kernels.sums`). At draws 1, 32, 1024, ... the step compares the sweep's log-density with the
model's own, summed carefully in Python; at every draw if products were expanded.

**Impossible states.** A log-density that isn't finite is impossible. From an impossible state each
proposal is taken; from a possible state no impossible one is reached. So nan is never accepted, and
minus infinity less minus infinity is never formed. The first step of a chain repeats sweeps until
the state is possible. After sweeps 1 and 30, `compiled.start` looks for possible records itself: in
which range of its sum is each term finite, and which records have sums in all ranges? Records of
few values are counts there, and the nearest table is an integer program (`graphs.nearest_counts`).
Others change one by one as long as sums come nearer.

**Walks.** If tuning accepts fewer than 3 of 10 proposals and the sums take more than 2.5 sweeps to
forget (`kernels.walk_tuning`), a second sweep is compiled in which normal, uniform and t records
are proposed near where they are (`graphs.local_draws`). The walk is reversible in their prior, so
what decides stays the same. Each fourth draw proposes anew before it walks.

**Exchanges.** If sums are known exactly, no record can change by itself. `reading.known_totals`
reads the equations, `reading.exchange_groups` finds records that contribute alike and checks that
pairs reach all that is possible, and a second compiled function exchanges pairs after each sweep.
To the sweep's kernels, a pair is what a record is elsewhere.

**Speed of a call.** Noise is drawn outside by NumPy: handing a generator to compiled code costs
more than a sweep over some hundred records. One compiled function then proposes and decides; it
returns the records and two numbers, as each returned array costs as much as a dozen records. What
the log-density depends on besides the sums is computed once per sweep (`frontier`). Kernels are
inlined: numba keeps no code on disk that is passed a function, and a call counts references to its
arrays. With PyTensor's fast arithmetic ``np.isfinite`` is always true, so kernels compare with
infinity (`pymc_dapper.kernels.fast_math`), and functions that compute rounding errors say
``fastmath=False``.
"""
