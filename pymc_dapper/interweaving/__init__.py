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

The last two are read and compiled in tuning, and only if effective draws of the parameters are few
and the parameters, or the moved quantities, have a long memory. This is counted, never timed.

A move evaluates the log-density several times from all records. Columns of a table are therefore
summed before they are joined (`graphs.joins`: 8 instead of 81 microseconds for 5,000 records of
example 3). `reading.coordinates` takes a covariance's Cholesky factor apart; all other parameters
move as their value variables. The kernel makes each coordinate symmetric before it fits a t
distribution to them.
"""
