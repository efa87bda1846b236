"""Sums over records that keep their digits, however many records there are.

A plain running sum is rounded to its own size at every term: of ten million contributions between
1e-9 and 1e8, eleven digits of sixteen are right. Here terms are added up plainly in short runs
only. What a run comes to is added to the sum with compensation: what rounding cuts off is kept, and
added with the next run (Kahan 1965). So the error stays that of a short sum, at hardly any cost.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.kernels.fast_math import is_finite

RUN = 128
"""Terms that are added up plainly."""


class Sums(NamedTuple):
    """Running sums: ``total + change``."""

    total: np.ndarray
    """Float64, shape (d,): the sums where the present run began."""
    change: np.ndarray
    """Float64, shape (d,): what has been added since."""
    lost: np.ndarray
    """Float64, shape (d,): what rounding has cut off the total, to be added with the next run."""


@njit(inline="always")
def no_sums(n_sums: int) -> Sums:
    """Return sums over nothing."""
    return Sums(np.zeros(n_sums), np.zeros(n_sums), np.zeros(n_sums))


# A function that numba inlines, or that doesn't say otherwise, has the arithmetic of its caller. If
# that is PyTensor's, it may be rearranged: total + (change + term) to (total + change) + term, and
# what is cut off, t - (s - total), to zero.
@njit(fastmath=False)
def plus(total: float, change: float) -> float:
    """Add two numbers, of which the second is known first."""
    return total + change


@njit(fastmath=False)
def add_term(total: float, lost: float, term: float) -> tuple[float, float]:
    """Add a term to a sum, with compensation.

    Parameters
    ----------
    total, lost : float
        The sum, and what rounding has cut off.
    term : float
        The term.

    Returns
    -------
    total, lost : float
        The same, with the term. Where the sum is infinite or nan, nothing is cut off.
    """
    t = lost + term
    s = total + t
    return s, (t - (s - total) if is_finite(s) else 0.0)


@njit(inline="always")
def end_run(sums: Sums) -> None:
    """Add what has changed to the total."""
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
        Overwritten.
    rows : ndarray of float64, shape (m, d)
        What is added.
    n_sums : int
        Number of columns: known beforehand, it saves branches.
    """
    change = sums.change
    for first in range(0, len(rows), RUN):
        for i in range(first, min(first + RUN, len(rows))):
            for j in range(n_sums):
                change[j] += rows[i, j]
        end_run(sums)
