"""Moves of parameters together with the records, with the records' noise held fixed.

``docs/evidence/interweaving.md`` says what the moves are and why they are exact. `reading` gives
the log-density of the parameters with the noise held fixed, a `NonCentredModel`. It has four
sources:

- `reading.model`: the records' prior, written as a function of noise.
- `reading.conditional_noise`: for records of few values with answers of their own, their
  conditional distribution.
- `reading.frame`: an affine group move. The records' mean and covariance move as well, so the
  log-density holds the records' prior and a volume element.
- `reading.frame` again, for the mean and covariance of the noise. This needs maps with standard
  normal noise (`RecordMap.is_normal`); Bartlett's law replaces the prior.

What `assign_steps` adds compiles nothing before a chain needs it (``when_needed``). `tuner.Tuner`
has the rule by which moves begin and their numbers are chosen. Each chain asks for itself: chains
in several processes compile each, or load what another one has left on disk. Costs are counted,
never timed.

A move evaluates the log-density several times from all records. Columns of a table are therefore
summed before they are joined (`graphs.joins`: 8 instead of 81 microseconds for 5,000 records of
example 3). `reading.coordinates` takes a covariance's Cholesky factor apart; all other parameters
move as their value variables. The kernel makes each coordinate symmetric before it fits a t
distribution to them.

**Many columns.** People of several columns, each drawn by a Dirichlet table, that were counted in
noisy tables have `BoundaryStep` instead (`reading.tables`, `kernels.boundaries`): a thousand
parameters have no fitted distribution, and one evaluation of all people moves none of them far. It
moves one boundary at a time, between two categories of a row, and evaluates only the people that it
passes. Those of columns that others are given are weighed by these others' probabilities: they
don't follow. On the Adult data (48,842 people, ten columns, 45 tables with noise of 50, 20 classes)
effective draws of pair probabilities per 1,000 iterations, in a prototype of one chain:

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
had 2 per 1,000, 5 % had 24 and the median 187: short runs don't see how slowly classes change.
Antithetic draws and boundaries together gained no more than boundaries. Moves along slow directions
weren't built. Along 1,127 of the 1,419 directions of the parameters, the released tables tell less
than a tenth of what the people tell (the information at a draw), so there are many. And a move that
300 people follow in one column would be refused more often than not, by calculation: who they are
changes the log-density by a standard deviation of 1.5.
"""
