r"""Reversible jumps over an unknown number of records, one record at a time.

If privacy is for added or removed records, the number n of records is itself confidential, and the
latent data set has an unknown dimension. Data augmentation with jumps repeats cycles of

1. for each record i in turn: draw x_i' from the model given the parameters, and accept it with
   probability min(1, eta(s_dp | t', n) / eta(s_dp | t, n)), where t is the sum of the records'
   contributions and eta the mechanism's density;
2. `jumps` times: propose to add a record, drawn from the model, or to delete one that is chosen at
   random. With q(n' | n) the probability of proposing n', 1/2 inside of the range of n and 1 at its
   ends, the jump is taken with probability

       min(1, p(n') eta(s_dp | t', n') q(n | n') / (p(n) eta(s_dp | t, n) q(n' | n)));

3. parameters are drawn given the n records.

A record's density cancels from the ratio of a jump, because new records are proposed from it. The
place of a new record cancels, too, because records are exchangeable. A cycle costs n evaluations of
eta, and changes n by at most one. So the autocorrelation time of n is about the square of its
posterior standard deviation, in cycles.

References
----------
Awan, J., Barrientos, A. F. and Ju, N. (2024). Statistical inference for privatized data with
unknown sample size. arXiv:2406.06231.

Ju, N., Awan, J. A., Gong, R., and Rao, V. A. (2022). Data augmentation MCMC for Bayesian inference
from privatized data. Advances in Neural Information Processing Systems 35.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pymc_dapper.checks import flag, real_numbers, whole_number


@dataclass(frozen=True, eq=False)
class ReversibleJumpDraws:
    """Draws of one chain.

    Attributes
    ----------
    n : (draws,) array of int
        Number of records.
    parameters : (draws, k) array
        The parameters.
    record_acceptance, jump_acceptance : float
        Share of the proposals that were taken, after tuning.
    """

    n: np.ndarray
    parameters: np.ndarray
    record_acceptance: float
    jump_acceptance: float


def reversible_jump(
    draw_record: Callable[..., None],
    contribution: Callable[..., None],
    log_mechanism: Callable[..., float],
    log_size: Callable[[int], float],
    draw_parameters: Callable[..., None],
    *,
    width: int,
    sums: int,
    start: ArrayLike,
    n_start: int,
    n_range: tuple[int, int],
    draws: int = 1_000,
    tune: int = 1_000,
    jumps: int = 1,
    compiled: bool = True,
    random_seed: int | Sequence[int] | np.random.Generator | None = None,
) -> ReversibleJumpDraws:
    """Draw the number of records and the parameters, given a private release.

    Parameters
    ----------
    draw_record : callable
        ``draw_record(rng, parameters, record)`` draws a record into ``record``, of shape (width,).
    contribution : callable
        ``contribution(record, sums)`` writes a record's contribution to the statistic, of shape
        (sums,).
    log_mechanism : callable
        ``log_mechanism(sums, n)`` is the log-density of the release, given the statistic and the
        number of records.
    log_size : callable
        ``log_size(n)`` is the log-probability of n records, up to a constant.
    draw_parameters : callable
        ``draw_parameters(rng, records, parameters)`` draws the parameters, in place, given the
        records, of shape (n, width).
    width, sums : int
        Numbers in a record, and in the statistic.
    start : array_like, shape (k,)
        Start values of the parameters.
    n_start : int
        How many records there are at the start, drawn from the model.
    n_range : (int, int)
        The least and the most records that there can be.
    draws, tune : int
        Cycles that are kept, and those before them that aren't.
    jumps : int
        Jumps that are proposed in a cycle.
    compiled : bool
        Whether the functions are compiled, by numba. Otherwise all is done in Python.
    random_seed : int, Generator, ..., optional
        Seed, for `numpy.random.default_rng`.

    Returns
    -------
    ReversibleJumpDraws

    Raises
    ------
    TypeError, ValueError
        If an argument is of a wrong kind or out of range.

    Notes
    -----
    See the documentation of this module.

    Examples
    --------
    Records are 0 or 1, with probability 0.3 of 1. Released are their number and their sum, with
    Laplace noise of scale 1:

    >>> found = reversible_jump(
    ...     lambda rng, p, record: record.__setitem__(0, rng.random() < p[0]),
    ...     lambda record, sums: sums.__setitem__(0, record[0]),
    ...     lambda sums, n: -abs(5.2 - n) - abs(1.1 - sums[0]),
    ...     lambda n: 0.0,
    ...     lambda rng, records, p: None,
    ...     width=1,
    ...     sums=1,
    ...     start=[0.3],
    ...     n_start=5,
    ...     n_range=(0, 20),
    ...     draws=200,
    ...     compiled=False,
    ...     random_seed=1,
    ... )
    >>> found.n.shape, found.parameters.shape
    ((200,), (200, 1))
    """
    width = whole_number(width, "width", at_least=1)
    sums = whole_number(sums, "sums", at_least=1)
    parameters = real_numbers(start, "start", vector=True)
    low, high = n_range
    low = whole_number(low, "the least of n_range", at_least=0)
    high = whole_number(high, "the most of n_range", at_least=low + 1)
    n = whole_number(n_start, "n_start", at_least=low, at_most=high)
    draws = whole_number(draws, "draws", at_least=1)
    tune = whole_number(tune, "tune", at_least=0)
    jumps = whole_number(jumps, "jumps", at_least=0)
    functions: tuple[Callable[..., Any], ...]
    functions = (draw_record, contribution, log_mechanism, log_size, draw_parameters)
    loop: Callable[..., Any] = _cycles
    if flag(compiled, "compiled"):
        loop, functions = _compiled(_cycles), tuple(_compiled(each) for each in functions)
    rng = np.random.default_rng(random_seed)
    records, added = np.empty((high, width)), np.empty((high, sums))
    kept = np.empty(draws, dtype=np.int64), np.empty((draws, len(parameters)))
    state = (records, added, parameters, n)
    proposals, in_records, in_jumps = loop(rng, *functions, *state, low, high, tune, jumps, *kept)
    return ReversibleJumpDraws(
        *kept,
        record_acceptance=in_records / max(1, proposals),
        jump_acceptance=in_jumps / max(1, draws * jumps),
    )


@lru_cache(maxsize=64)
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    import numba

    # A compiled function is used as it is.
    is_compiled = hasattr(function, "py_func")
    return function if is_compiled else numba.njit(function)


def _cycles(
    rng: np.random.Generator,
    draw_record: Callable[..., None],
    contribution: Callable[..., None],
    log_mechanism: Callable[..., float],
    log_size: Callable[[int], float],
    draw_parameters: Callable[..., None],
    records: np.ndarray,
    added: np.ndarray,
    parameters: np.ndarray,
    n: int,
    low: int,
    high: int,
    tune: int,
    jumps: int,
    kept_n: np.ndarray,
    kept_parameters: np.ndarray,
) -> tuple[int, int, int]:
    """Run all cycles; count proposed and accepted updates of records and jumps."""
    record, adds = np.empty(records.shape[1]), np.empty(added.shape[1])
    total, proposed = np.empty(added.shape[1]), np.empty(added.shape[1])
    for i in range(n):
        draw_record(rng, parameters, records[i])
        contribution(records[i], added[i])
    proposals, in_records, in_jumps = 0, 0, 0
    for cycle in range(tune + len(kept_n)):
        counted = cycle >= tune
        # Computed anew in each cycle, so that rounding doesn't add up.
        total[:] = 0.0
        for i in range(n):
            total += added[i]
        log_density = log_mechanism(total, n)

        proposals += n * counted
        for i in range(n):
            draw_record(rng, parameters, record)
            contribution(record, adds)
            for k in range(len(total)):
                proposed[k] = total[k] + adds[k] - added[i, k]
            proposed_density = log_mechanism(proposed, n)
            if math.log(1 - rng.random()) < proposed_density - log_density:
                records[i], added[i], total[:] = record, adds, proposed
                log_density = proposed_density
                in_records += counted

        for _ in range(jumps):
            add = n == low or (n < high and rng.random() < 0.5)
            if add:
                draw_record(rng, parameters, record)
                contribution(record, adds)
                m, i = n + 1, n
                proposed[:] = total + adds
            else:
                m, i = n - 1, int(rng.random() * n)
                proposed[:] = total - added[i]
            proposed_density = log_mechanism(proposed, m)
            log_ratio = proposed_density - log_density + log_size(m) - log_size(n)
            # From an end of the range there is one way to go, inside two.
            if n in (low, high):
                log_ratio -= math.log(2.0)
            if m in (low, high):
                log_ratio += math.log(2.0)
            if math.log(1 - rng.random()) < log_ratio:
                if add:
                    records[i], added[i] = record, adds
                else:  # The last one takes its place: their order doesn't matter.
                    records[i], added[i] = records[m], added[m]
                total[:] = proposed
                n, log_density = m, proposed_density
                in_jumps += counted

        draw_parameters(rng, records[:n], parameters)
        if counted:
            kept_n[cycle - tune] = n
            kept_parameters[cycle - tune] = parameters
    return proposals, in_records, in_jumps
