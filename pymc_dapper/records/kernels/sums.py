"""Sums over records that keep their digits, whatever the number of records.

A plain running sum is rounded to its own size at every term: for ten million contributions between
1e-9 and 1e8, eleven of sixteen digits are right. Here terms are added plainly only in short runs.
The total of a run is added to the sum with compensation: the rounding error is kept, and added with
the next run (Kahan 1965). So the error stays that of a short sum, at hardly any cost.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.kernels.fast_math import is_finite

RUN = 128
"""Number of terms in a plain run."""


class Sums(NamedTuple):
    """Running sums: ``total + change``."""

    total: np.ndarray
    """Float64, shape (d,): the sums at the start of the present run."""
    change: np.ndarray
    """Float64, shape (d,): the sum of terms since then."""
    lost: np.ndarray
    """Float64, shape (d,): the rounding error of the total, to be added with the next run."""


@njit(inline="always")
def no_sums(n_sums: int) -> Sums:
    """Return sums over nothing."""
    return Sums(np.zeros(n_sums), np.zeros(n_sums), np.zeros(n_sums))


# A function that numba inlines, or without its own setting, uses the caller's arithmetic.
# PyTensor's may be reordered: total + (change + term) becomes (total + change) + term, and the
# rounding error, t - (s - total), becomes zero.
@njit(fastmath=False)
def plus(total: float, change: float) -> float:
    """Add two numbers; the second is evaluated first."""
    return total + change


@njit(fastmath=False)
def add_term(total: float, lost: float, term: float) -> tuple[float, float]:
    """Add a term to a sum, with compensation.

    Parameters
    ----------
    total, lost : float
        The sum, and its rounding error.
    term : float
        The term.

    Returns
    -------
    total, lost : float
        The same after adding the term. For an infinite or nan sum, the rounding error is zero.
    """
    t = lost + term
    s = total + t
    return s, (t - (s - total) if is_finite(s) else 0.0)


@njit(inline="always")
def end_run(sums: Sums) -> None:
    """Add the present run to the total."""
    total, change, lost = sums
    for j in range(total.size):
        total[j], lost[j] = add_term(total[j], lost[j], change[j])
        change[j] = 0.0


@njit(inline="always")
def add_rows(sums: Sums, rows: np.ndarray, n_sums: int) -> None:
    """Add all rows of a matrix to sums.

    Parameters
    ----------
    sums : Sums
        Updated in place.
    rows : ndarray of float64, shape (m, d)
        The rows to add.
    n_sums : int
        Number of columns; a constant here removes branches.
    """
    change = sums.change
    for first in range(0, len(rows), RUN):
        for i in range(first, min(first + RUN, len(rows))):
            for j in range(n_sums):
                change[j] += rows[i, j]
        end_run(sums)
