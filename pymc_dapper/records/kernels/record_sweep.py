"""One sweep of record-wise Metropolis updates with cached sums.

The records enter the target density only through the sums of their contributions,
``exp(log_density(sum_i t_i(x_i)) + sum_i l_i(x_i))``, times their prior. A proposal drawn from the
prior therefore changes the log-density by a difference of ``log_density`` at two sums, which costs
O(dim of the sums) however many records there are (Ju, Awan, Gong and Rao 2022, algorithm 1).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.kernels.fast_math import is_finite
from pymc_dapper.records.kernels.sums import RUN, Sums, end_run, plus


class SweepState(NamedTuple):
    """What an update of one record needs to know about all the others."""

    sums: Sums
    """Shape (d,): the records' contributions, summed over the records."""
    log_density: float
    """Log-density at these sums."""


class Proposal(NamedTuple):
    """What a new value of one record would change."""

    removed: np.ndarray
    added: np.ndarray
    """Float64, shape (d,): the record's present and proposed contribution to the sums."""
    log_removed: float
    log_added: float
    """The record's present and proposed separable log-density."""


# Everything here is inlined, for two reasons. An update then costs what a hand-written loop does;
# called, it pays for counting references to the arrays in its arguments (27 against 41 ns each).
# And a function that is passed on as a value, as the log-density would be, can't be cached on disk.
@njit(inline="always")
def log_gain(present: float, proposed: float) -> float:
    """Log-density gained by a move; never nan.

    An impossible present value (-inf, nan, or +inf, which no density reaches) has nothing to lose:
    the move is taken as the prior proposes it. From a possible one, no impossible value is reached.
    """
    if not is_finite(present):
        return 0.0
    if not is_finite(proposed):
        return -np.inf
    return proposed - present


@njit(inline="always")
def update_record(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    state: SweepState,
    proposal: Proposal,
    log_uniform: float,
    proposed_sums: np.ndarray,
) -> tuple[SweepState, bool]:
    """Metropolis update of one record: a deterministic function of its arguments.

    Parameters
    ----------
    log_density : callable
        ``log_density(sums, context) -> float``, compiled by numba.
    context : tuple of ndarray
        What the log-density depends on besides the sums (parameters, released values).
    state : SweepState
        The present state. Its sums are overwritten if the proposal is accepted.
    proposal : Proposal
        The change to decide on.
    log_uniform : float
        Logarithm of a uniform variate: the proposal is accepted if it lies below the log ratio.
    proposed_sums : ndarray of float64, shape (d,)
        Working memory.

    Returns
    -------
    state : SweepState
        The new state.
    accepted : bool
        Whether the proposal was taken.
    """
    total, change, _ = state.sums
    same_sums = True
    for j in range(total.size):
        proposed_change = change[j] + (proposal.added[j] - proposal.removed[j])
        proposed_sums[j] = plus(total[j], proposed_change)
        same_sums &= proposal.removed[j] == proposal.added[j]
    # A discrete record often proposes the contribution it already makes: nothing to evaluate then.
    proposed = state.log_density if same_sums else log_density(proposed_sums, context)

    log_ratio = log_gain(state.log_density, proposed) + log_gain(
        proposal.log_removed, proposal.log_added
    )
    if log_uniform < log_ratio:
        for j in range(total.size):
            change[j] += proposal.added[j] - proposal.removed[j]
        return SweepState(state.sums, proposed), True
    return state, False


@njit(inline="always")
def decide_by_sums(
    log_density: Callable[..., float],
    context: tuple[Any, ...],
    sums: Sums,
    removed: np.ndarray,
    added: np.ndarray,
    n_sums: int,
    start: int,
    log_removed: np.ndarray,
    log_added: np.ndarray,
    log_uniforms: np.ndarray,
    accepted: np.ndarray,
) -> float:
    """Update the records of a block, each given the outcome for those before it.

    Parameters
    ----------
    log_density, context
        As in :func:`update_record`.
    sums : Sums, of shape (d,)
        Sums over all records. Overwritten with those after it.
    removed, added : ndarray of float64, shape (m, d)
        Present and proposed contributions of these records, a row for each.
    n_sums : int
        Contributions of a record. As a constant, it saves a record's update all branches.
    start : int
        Number of the first of these records.
    log_removed, log_added, log_uniforms : ndarray
        As in :func:`~pymc_dapper.records.kernels.block_sweep.sweep_by_blocks`.
    accepted : ndarray of bool, shape (n,)
        Overwritten, for these records, with whether their proposals were taken.

    Returns
    -------
    float
        Log-density of the sums after these updates.
    """
    state = SweepState(sums, log_density(sums.total, context))
    proposed_sums = np.empty(n_sums)
    separable = log_removed.size > 0
    for k in range(len(removed)):
        i = start + k
        proposal = Proposal(
            removed[k],
            added[k],
            log_removed[i] if separable else 0.0,
            log_added[i] if separable else 0.0,
        )
        state, accepted[i] = update_record(
            log_density, context, state, proposal, log_uniforms[i], proposed_sums
        )
        if k % RUN == RUN - 1:
            end_run(sums)
    end_run(sums)  # the next block begins with the totals
    return state.log_density
