"""Records as latent variables: how a model depends on them, and the step that updates them.

A sweep proposes all records at once, then decides on them one by one (`compiled.sweep`). The
decisions, such as `kernels.sums_sweep.decide_by_sums`, are a deterministic function of the
records' present and proposed contributions, and of a threshold for each record. A proposal is
accepted if it gains more log-density of the sums than its threshold: the logarithm of a uniform
variate, less what the record's separable factors gain. Randomness stays outside. So a test can
enumerate proposals and build the sweep's transition matrix from the kernel that users run
(``tests/enumerate_sweep.py``). A broken twin is the same sweep with one line of the kernel edited
(``tests/broken.py``).

**What decides** is a plan. `reading.plan` derives it from the factors, `DapperStep.describe` prints
it, and compiling is one ``match`` on it.

===================== ============================================================================
plan                  what decides on a proposal
===================== ============================================================================
``ByEntries``         the terms of those entries of the sums that the record would change
``BySums``            the log-density as a function of all sums
``ByRanks``           between which candidates of released quantiles the record lies
``ByOrder``           the log-density as a function of some order statistics, and of sums
``ByFullEvaluation``  the log-density as the model has it, from all records
``EachByItself``      separable factors only: all records are decided on at once
``NothingToDecide``   proposals keep the records' conditional distribution; none is refused
===================== ============================================================================

With ``ByEntries`` and ``BySums``, contributions to the sums are computed in one of three ways:

- *By cell*, with ``ByEntries``: for records that are each counted in one cell of each sum, or in
  none, such as one column in a histogram, or many columns in the tables of their pairs. Which cell
  is looked up by the values of those variables that the sum sees; no row is made (1.3 to 1.6 times
  as fast for a table of four cells, 20 to 50 times for 6 tables of 575).
- *By block*: for 2,048 records at a time if there are more, since the rows of all would exceed the
  processor's caches.
- *At once*: for fewer records, or if an operation isn't known to treat records separately.

With ``ByEntries``, a proposal costs two terms for a table of any size; at 400 records in four
cells, decisions are six times as fast. The terms that `CountStep` reads can't be used here. The
reported log-density also needs what doesn't depend on the counts, and they leave that out.

With ``ByRanks``, a proposal moves a record from one interval between candidates to another. Only
the candidates between these, and of them only those near the best, are evaluated
(`kernels.rank_sweep`). It is used if all releases are such choices, with Gumbel or exponential
noise. Their operation (`backend.ranks`) says so.

With ``ByOrder``, a record that changes moves an order statistic to its new value, or as far as the
neighbours among the others allow (`kernels.order_sweep`). So three successive values decide, which
a short sorted list keeps up to date. A sweep over a million records takes as long as for a
histogram.

**Rounding.** Sums are computed anew at the start of each sweep, in runs with compensation
(`kernels.sums_sweep`). At draws 1, 32, 1024, ... the step compares the sweep's log-density with
the model's own, summed carefully in Python; if products were expanded, it does so at every draw.

**Impossible states.** A state is impossible if its log-density isn't finite. From an impossible
state every proposal is accepted; from a possible state no impossible one is. So nan is never
accepted, and minus infinity is never subtracted from itself. The first step of a chain repeats
sweeps until the state is possible. After sweeps 1 and 30, `compiled.start` searches for possible
records: it finds the range of its sum in which each term is finite, then records with sums in all
ranges. Records with few values are treated as counts, and the nearest table is an integer program
(`graphs.nearest_counts`). Other records change one by one as long as sums come nearer.

**Counts with answers of their own.** Whole numbers with separable factors are proposed from their
prior, and within a row of values around the present ones (`reading.near`). Proposals are reversible
with respect to the prior times these factors, so only other factors decide.

**Walks.** A second sweep is compiled if tuning accepts fewer than 3 of 10 proposals and the
autocorrelation time of the sums exceeds two sweeps (`walks`). In it, normal, uniform
and t records are proposed near their present values (`graphs.local_draws`). The walk is reversible
with respect to their prior, so the decision stays the same. Each fourth draw starts with
independent proposals.

**Exchanges.** If sums are known exactly, no record can change alone. `reading.known_totals` reads
the equations. `reading.exchange_groups` finds records with equal contributions, and checks that
exchanges of pairs reach all possible states. A second compiled function exchanges pairs after each
sweep; its kernels treat a pair as a record.

**Speed of a call.** One compiled function draws noise from the chain's generator, proposes and
decides. It gets the generator by its address (`backend.accelerate.generators`): numba's own way to
pass one costs more than a sweep over some hundred records. It returns the records and two numbers,
because each returned array costs as much as a dozen records. Other inputs of the log-density are
computed once per sweep (`frontier`). Functions are passed to kernels by their type: numba can't
cache code that has a function's address. With PyTensor's fast arithmetic ``np.isfinite`` is always
true, so kernels compare with infinity (`pymc_dapper.kernels.fast_math`), and functions that compute
rounding errors use ``fastmath=False``.
"""
