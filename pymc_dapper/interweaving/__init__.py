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

What `assign_steps` adds compiles nothing before a chain needs it (``when_needed``). One rule
decides, `kernels.tuning.forgets_slowly`: after 40, 80, 160, ... iterations of tuning without moves,
whether the first two are compiled; after a quarter of the rest, whether the last two are, too. Each
chain asks for itself: chains in several processes compile each, or load what another one has left
on disk. This is counted, never timed.

A move evaluates the log-density several times from all records. Columns of a table are therefore
summed before they are joined (`graphs.joins`: 8 instead of 81 microseconds for 5,000 records of
example 3). `reading.coordinates` takes a covariance's Cholesky factor apart; all other parameters
move as their value variables. The kernel makes each coordinate symmetric before it fits a t
distribution to them.
"""
