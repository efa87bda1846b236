"""What a sweep proposes to change of the records' contributions to the sums."""

from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.records.kernels.sums import RUN, Sums, end_run, no_sums

COUNTERS = 4
"""A power of two."""


class Changes(NamedTuple):
    """The contributions that records make, and those that they would make instead.

    Rows of tables, so that records with few values needn't have a row each: the tables then have a
    row for each value. Else they have a row for each record.

    Attributes
    ----------
    removed, added : ndarray of float64, shape (m, d)
        Tables of present and of proposed contributions to the sums.
    present, proposed : ndarray of unsigned int, shape (n,)
        Which rows of them are those of each record.
    differing : ndarray of unsigned int, shape (m * m, d + 1) or (1, d + 1)
        Where proposed row ``b`` may differ from present row ``a``: row ``a * m + b`` holds the
        number of columns and then the columns; a single row is that of all pairs.

    Notes
    -----
    Indices are unsigned, since numba lets a negative one count from the end, which takes time.
    """

    removed: np.ndarray
    added: np.ndarray
    present: np.ndarray
    proposed: np.ndarray
    differing: np.ndarray


@njit(inline="always")
def sum_of_rows(changes: Changes) -> Sums:
    """Sum what the records contribute at present.

    Afresh in every sweep: rounding can't build up, and changes of the records or of the parameters
    between sweeps can't leave a stale sum behind.
    """
    n_rows, n_sums = changes.removed.shape
    # With few rows counted in turns: a processor waits for a count before it adds to it again.
    turns = COUNTERS if n_rows < len(changes.present) else 1
    counts = np.zeros((turns, n_rows), dtype=np.int64)
    for i in range(len(changes.present)):
        counts[i & (turns - 1), changes.present[i]] += 1
    sums = no_sums(n_sums)
    for first in range(0, n_rows, RUN):
        for a in range(first, min(first + RUN, n_rows)):
            count = 0
            for turn in range(turns):
                count += counts[turn, a]
            if count > 0:  # what a value that no record has would contribute may be infinite
                for j in range(n_sums):
                    sums.change[j] += count * changes.removed[a, j]
        end_run(sums)
    return sums


@njit(inline="always")
def pair_of_rows(changes: Changes, i: int) -> np.uint64:
    """Return the row of ``differing`` for record i."""
    if len(changes.differing) == 1:
        return np.uint64(0)
    n_rows = np.uint64(len(changes.removed))
    return np.uint64(changes.present[i] * n_rows + changes.proposed[i])


@njit(inline="always")
def find_undecided(
    changes: Changes, separable: bool, start: int, stop: int, found: np.ndarray
) -> int:
    """Find the records on whose proposals there is something to decide.

    Parameters
    ----------
    changes : Changes
        The changes.
    separable : bool
        Whether something else than the sums decides, too. If not, a proposal with the same row of
        a table, and so the same contribution, can be accepted unseen.
    start, stop : int
        Where to look: at the records from ``start`` up to ``stop``.
    found : ndarray of unsigned int, shape (stop - start,) or longer
        Overwritten with these records, in their order.

    Returns
    -------
    int
        How many they are.
    """
    n_found = 0
    every = separable | (len(changes.differing) == 1)  # each record has a row of its own
    for i in range(start, stop):
        # Without a branch: which records change is as random as their proposals.
        found[n_found] = i
        n_found += every | (changes.present[i] != changes.proposed[i])
    return n_found


@njit(inline="always")
def check_rows(changes: Changes) -> None:
    """Check that the tables have the rows.

    Raises
    ------
    IndexError
        If one of them hasn't: compiled code would read what lies beside it.
    """
    n_rows = len(changes.removed)
    missing = False
    for i in range(len(changes.present)):
        missing |= (changes.present[i] >= n_rows) | (changes.proposed[i] >= n_rows)
    if missing:
        raise IndexError("a record has a value that its distribution can't take")
