"""Moves of parameters together with the records, with the records' noise held fixed.

``docs/evidence/interweaving.md`` says what the moves are and why they are exact. `reading` gives
the log-density of the parameters with the noise held fixed, a `NonCentredModel`. It has six
sources:

- `reading.model`: the records' prior, written as a function of noise.
- `reading.conditional_noise`: for records of few values with answers of their own, their
  conditional distribution.
- `reading.conditional_noise`: for real numbers of which something is observed, their law given
  this.
- `reading.sums_held_fixed`: for a vector that is added to parameters, their sum in the place of
  noise.
- `reading.affine`: an affine group move. The records' mean and covariance move as well, so the
  log-density holds the records' prior and a volume element.
- `reading.affine` again, for the mean and covariance of the noise. This needs maps with standard
  normal noise (`RecordMap.is_normal`); Bartlett's law replaces the prior.

Steps that `assign_steps` adds compile nothing before a chain needs it (``when_needed``).
`tuner.Tuner` decides by the rule of `pymc_dapper.kernels.tuning`, as walks do. Each chain decides
for itself: each process compiles, or loads the code that another one has left on disk. Costs are
counted, never timed.

A move evaluates the log-density several times from all records. `reading.non_centred` takes a
covariance's Cholesky factor apart; all other parameters move as their value variables. The kernel
makes each coordinate symmetric before it fits a t distribution to them.

**Many columns.** If people of several columns, each drawn by a Dirichlet table, were counted in
noisy tables, `BoundaryStep` takes them instead (`reading.tables`, `kernels.boundaries`). No
distribution can be fitted to a thousand parameters, and a joint move evaluates all people, but
moves no parameter far. `BoundaryStep` moves one boundary at a time, between two categories of a
row, and evaluates only the people that it passes. If other columns are conditioned on the moved
one, they don't follow: their probabilities decide on the move, too. On the Adult data (48,842
people, ten columns, 45 tables with noise of 50, 20 classes with flat priors) effective draws of
pair probabilities per 1,000 iterations, in a prototype of one chain:

========================================== ===== ===== ======
moves added to people and tables in turn   worst 5 %   median
========================================== ===== ===== ======
none                                         4.5  14.9   51.7
classes given columns                        4.3  13.8   49.2
tables drawn antithetically                  5.2  24.3   85.5
boundaries, the whole interval tried first   8.9  40.8    230
boundaries, an interval by tuning           15.8  58.8    255
========================================== ===== ===== ======

These are runs of 700 to 1,500 iterations from one state. In 3,000 of `pmd.sample`, the worst pair
had 2 per 1,000, 5 % had 24 and the median 187: classes were still on their way. In prototype
chains of 1,000 to 1,250 that began where classes had been fitted to the tables:

=================================================== ===== ===== ======
moves added                                         worst 5 %   median
=================================================== ===== ===== ======
boundaries                                            9.3    33    161
boundaries, and tables drawn antithetically           8.6    42    201
boundaries, and along 150 directions (1.2 times CPU) 13.0    41    163
=================================================== ===== ===== ======

A direction was that in which all tables move with one slow pair probability, by the information at
a draw; on average 380 people follow a step of a posterior standard deviation, chosen by a maximal
coupling. Half of the steps half as long were accepted. These 150 pairs had 2.8 times the effective
draws, all others as many as before. Moving all slow pairs would take as long as everything else.

The worst pairs mix slowly because of the classes. These have many modes of about the same marginal
likelihood (`benchmarks.class_modes`), and no move that was tried gets from one to another:

- People marginalised: chains of NUTS on the tables' likelihood differ, too (with ``--nuts``). With
  flat priors, each had more effective draws of the worst pair within itself: 333 and 30 in 1,000.
- Splitting and joining classes, people allotted in turn (Dahl 2005): given the people, the log
  acceptance of joining two classes of 100 people or more was -1,800 or less. A split takes one or
  two people off, with -6 to -20, or more with less. Classes of 10 people split and join, which
  changes nothing.
- Tuning with noise of 400 a cell, lowered to 50 in 800 iterations: two chains ended with 9 and 11
  classes, and squared residuals of 5,800 and 4,800 in units of noise, for 3,900 to 4,100 elsewhere.
  Classes that empty while hot don't come back.
- Classes fitted to the tables, as a start: each fit leads to other classes. If all chains took the
  best, they would agree, and miss the others.
"""
