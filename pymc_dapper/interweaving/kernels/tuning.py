"""What is learnt in tuning: the t distribution and its skewness, and how many moves pay."""

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from pymc_dapper.interweaving.kernels.moves import Fit, skewed
from pymc_dapper.kernels.effective_draws import effective_draws, memory

FEWEST_IN_TUNING = 8
"""Moves per iteration in tuning, and at most afterwards, if moves are expensive."""

MAX_MOVES = 16
"""The same, if moves are cheap beside the rest of an iteration."""

MAX_FRAME_MOVES = 16
"""The same in tuning, of each frame,"""

MORE_FRAME_MOVES = 2
"""and afterwards at most so many times as many,"""

TOO_FEW = 0.65
"""where with these an iteration is expected to be worth fewer effective draws."""

EVALUATIONS = 5.0
"""What a move takes, more or less."""

DEFAULT_MOVES = 4
"""Moves per iteration where tuning was too short to tell."""

MIN_MEASURED = 20
"""Iterations it takes to tell."""

FIRST_FIT = 50
"""Iterations before the first fit; the following ones come after twice as many each time."""

FEWEST_FOR_FRAMES = 200
"""With fewer iterations of tuning, frames don't move."""

LONG = 3.0
"""Frames move if the slowest quantity forgets in more iterations than that."""

WITHOUT_FRAMES = 0.75
"""Effective draws of an iteration of the other steps alone, with which frames aren't needed."""

ENOUGH = 0.5
"""Effective draws that an iteration should be worth,"""

PLENTY = 0.8
"""or, where moves are made, be expected to: chains turn out to have fewer,"""

NEARLY = 1.1
"""if that takes no more than so many times as long for each of them,"""

ALIKE = 1.05
"""and brings more than so many times as many."""

LEVELS = np.arange(1, 64) / 64
"""Of the quantiles by which skewness is judged."""

SKEWNESSES = np.linspace(-1.0, 1.0, 41)
"""That may be. With more, hardly anything would be left of one tail."""

SKEWED_QUANTILES = skewed.py_func(
    np.array([NormalDist().inv_cdf(level) for level in LEVELS]), SKEWNESSES[:, None]
)
CENTRED_QUANTILES = SKEWED_QUANTILES - SKEWED_QUANTILES.mean(axis=1, keepdims=True)

# Costs are counted, not timed, so that the same seed gives the same draws: in nanoseconds of the
# machine on which `benchmarks/move_costs.py` was run last.
EVALUATION = 150.0
"""Fixed cost of an evaluation of any log-density."""

SET_UP, SET_UP_OF_ENTRY = 8_000.0, 0.7
"""To make any move at all, and for each entry of the records: variates, and arrays passed on."""

REST, REST_OF_PARAMETER, REST_OF_ENTRY = 30_000.0, 20_000.0, 20.0
"""The other steps: the sampling loop, each parameter's own step, and noise and decisions of a sweep
for each entry of the records."""

LONGER = 5.0
"""So many times as long as is counted may the other steps take: the parameters' own step may be
NUTS. They are taken to do so in tuning, and where frames move and draws are few all the same."""

PASSES = 2.0
"""How often the other steps go over what an evaluation does, at least: a sweep makes proposals, and
adds up what is present and what is proposed."""


class Costs(NamedTuple):
    """What moves cost."""

    evaluation: float
    """An evaluation of their log-density."""
    set_up: float
    """To make any at all."""
    rest: float
    """The other steps of an iteration."""


def counted(evaluation: float, set_up: float, n_entries: int, n_parameters: int) -> Costs:
    """Add to what was counted of graphs what else it takes.

    For so many entries of records, and so many variables that move with them.
    """
    rest = REST + REST_OF_PARAMETER * n_parameters + REST_OF_ENTRY * n_entries
    return Costs(
        EVALUATION + evaluation,
        SET_UP + SET_UP_OF_ENTRY * n_entries + set_up,
        rest + PASSES * evaluation,
    )


def moves_in_tuning(costs: Costs) -> int:
    """As many moves an iteration as to take no longer than the rest of it may, within bounds."""
    as_long = LONGER * costs.rest / (EVALUATIONS * costs.evaluation)
    return int(min(max(as_long, FEWEST_IN_TUNING), MAX_MOVES))


def unfitted(start: np.ndarray) -> Fit:
    """Return what to begin with, before anything is known."""
    dim = len(start)
    return Fit(start.copy(), np.ones(dim), np.zeros(dim), np.eye(dim))


def beside(fit: Fit, start: np.ndarray, n: int) -> Fit:
    """Fit to start with, of what was fitted and, besides, of the frame of n rows of noise.

    That is independent of the parameters where little is known, and tells means and factors by
    1 / sqrt(n). ``start`` is the present value of all.
    """
    known, dim = len(fit.location), len(start)
    rest = unfitted(start[known:])
    factor = np.eye(dim)
    factor[:known, :known] = fit.factor
    return Fit(
        np.concatenate([fit.location, rest.location]),
        np.concatenate([fit.scale, rest.scale / np.sqrt(n)]),
        np.concatenate([fit.skewness, rest.skewness]),
        factor,
    )


def fit_draws(draws: np.ndarray) -> Fit:
    """Fit to more than one draw of the parameters, shape (n, d).

    Each parameter by itself at first (:func:`_fit_skewness`). The scale matrix of what is symmetric
    then is its mean square, drawn towards independence where n is small.
    """
    n, dim = draws.shape
    location, scale, skewness = _fit_skewness(draws)
    symmetric = skewed.py_func((draws - location) / scale, -skewness)
    squares = symmetric.T @ symmetric / (n - 1)
    sizes = np.sqrt(np.diag(squares))
    sizes[sizes <= 0] = 1.0
    weight = n / (n + dim + 5)
    shrunk = weight * squares / np.outer(sizes, sizes) + (1 - weight) * np.eye(dim)
    shrunk[np.diag_indices(dim)] = 1.0  # of what never moved, too
    return Fit(location, scale, skewness, sizes[:, None] * np.linalg.cholesky(shrunk))


def _fit_skewness(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit location, scale and skewness of each parameter by itself, from draws of shape (n, d).

    Quantiles of what is skewed are linear in location and scale. So for each of a few values of
    the skewness these are a line through quantiles, and the value of the straightest line is taken.
    """
    found = np.quantile(draws, LEVELS, axis=0).T
    centred = found - found.mean(axis=1, keepdims=True)
    straight = centred @ CENTRED_QUANTILES.T / np.linalg.norm(CENTRED_QUANTILES, axis=1)
    best = np.argmax(straight, axis=1)
    fitted = CENTRED_QUANTILES[best]
    scale = (centred * fitted).sum(axis=1) / (fitted**2).sum(axis=1)
    still = scale <= 0
    location = found.mean(axis=1) - scale * SKEWED_QUANTILES[best].mean(axis=1)
    location, scale = np.where(still, draws.mean(axis=0), location), np.where(still, 1.0, scale)
    return location, scale, np.where(still, 0.0, SKEWNESSES[best])


def best_numbers_of_moves(
    paths: Sequence[np.ndarray],
    evaluations: Sequence[np.ndarray],
    ends: np.ndarray,
    costs: Sequence[Costs],
) -> list[int]:
    """Choose how many moves of each kind give the most effective draws for what they cost.

    Where these are few for an iteration, and others cost hardly more for each, the most of those,
    or nearly as many.

    Between the moves of one iteration and those of the next, other steps move the parameters. The
    autocorrelation of a whole iteration is about the product of what all leave: it is exactly
    that if parameters and records are normal. With autocorrelation r, n draws are worth
    n (1 - r) / (1 + r).

    Parameters
    ----------
    paths : sequence of ndarray, each of shape (m, k + 1, d)
        What a kind moves before and after each of its k moves, in m successive iterations.
    evaluations : sequence of ndarray, each of shape (m, k)
        How many evaluations each move took.
    ends : ndarray, shape (m, kinds + 1, c)
        All that is to forget, before and after the moves of each kind.
    costs : sequence of Costs
        Of each kind. The rest of an iteration is that of the first.

    Notes
    -----
    Where there are several kinds, something has a long memory. So how slowly all forgets is taken
    from effective draws, and each move is taken to leave as much as any other of its kind.
    """
    if len(ends) < MIN_MEASURED:
        return [min(DEFAULT_MOVES, made.shape[1]) for made in evaluations]
    left = _correlation(ends[:-1, -1], ends[1:, 0])
    taken = np.array(costs[0].rest)
    for kind, (path, made) in enumerate(zip(paths, evaluations, strict=True)):
        if len(paths) == 1:
            inside, times = _within(path), np.cumsum(made.mean(axis=0))
        else:
            numbers = np.arange(1 + made.shape[1] * (MORE_FRAME_MOVES if kind > 0 else 1))
            whole = _correlation(ends[:, kind], ends[:, kind + 1])
            inside = whole ** (numbers / made.shape[1])[:, None]
            times = numbers[1:] * made.mean()
        left = left[..., None, :] * inside
        moves = costs[kind].set_up + costs[kind].evaluation * times
        taken = taken[..., None] + np.concatenate([[0.0], moves])
    if len(paths) > 1:
        in_tuning = tuple(made.shape[1] for made in evaluations)
        left = left ** _slower(left[in_tuning], ends[:, -1])
    worth = _worth(left.max(axis=-1))
    as_in_tuning = tuple(slice(made.shape[1] + 1) for made in evaluations)
    if worth[as_in_tuning].max() > TOO_FEW:
        worth, taken = worth[as_in_tuning], taken[as_in_tuning]
    pays = worth / taken
    best = np.argmax(pays)
    if len(paths) > 1 and worth.flat[best] < ENOUGH:
        pays = worth / (taken + (LONGER - 1) * costs[0].rest)
    if worth.flat[best] < (ENOUGH if best == 0 else PLENTY):
        nearly = pays * NEARLY >= pays.max()
        most = worth[nearly].max()
        best = np.argmax(np.where(nearly & (worth * ALIKE >= most), pays, 0.0))
    return [int(k) for k in np.unravel_index(best, worth.shape)]


def _worth(left: np.ndarray) -> np.ndarray:
    """Effective draws that an iteration is worth which leaves an autocorrelation."""
    return (1 - left) / (1 + left)


def _slower(left: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Power of an autocorrelation, shape (c,), that brings it to what effective draws say.

    It is 1 at most. What forgets slowly for a part only has a longer memory than one iteration's
    autocorrelation tells.
    """
    memories = np.nan_to_num(len(seen) / effective_draws(seen), nan=np.inf)
    slow = np.clip(1 - 2 / (memories + 1), 0.01, 1 - 1e-6)
    return np.clip(np.log(slow) / np.log(np.clip(left, 0.01, 1 - 1e-6)), 0.0, 1.0)


def forgets_slowly(seen: np.ndarray) -> bool:
    """Say whether parameters and frame forget slowly, from the last n iterations, shape (n, c).

    Of few iterations, a long memory isn't told yet.
    """
    if not len(seen) or not np.isfinite(seen).all():
        return False
    return memory(seen) > min(LONG, max(2.0, len(seen) / 20))


def are_few(parameters: np.ndarray) -> bool:
    """Say whether n iterations, shape (n, d), were worth few effective draws of the parameters."""
    return memory(parameters) * ENOUGH > 1


def others_do(parameters: np.ndarray, enough: float = WITHOUT_FRAMES) -> bool:
    """Say whether the other steps alone give effective draws enough.

    Parameters
    ----------
    parameters : ndarray, shape (n, k, d)
        Before the first move of each of n iterations, ..., and after the last.
    enough : float, optional
        Of an iteration.
    """
    return bool(_worth(_correlation(parameters[:-1, -1], parameters[1:, 0]).max()) > enough)


def moves_waste_time(paths: np.ndarray, evaluations: np.ndarray, costs: Costs) -> bool:
    """Whether it is clear before the end of tuning that no move is worth its cost.

    That is where moves cost more than the rest of an iteration, and where the other steps alone
    give effective draws enough. Takes what :func:`best_numbers_of_moves` does of one kind, and what
    other steps leave in between from the paths.
    """
    moves = costs.set_up + costs.evaluation * evaluations.sum(axis=1).mean()
    return bool(moves > costs.rest and others_do(paths, ENOUGH))


def _within(path: np.ndarray) -> np.ndarray:
    """Autocorrelations after 0, 1, ..., k moves, shape (k + 1, d), from all pairs so far apart.

    What is smaller than its own standard error counts as that: else, of many that are next to
    nothing, the one that happens to be smallest would say how many moves to make.
    """
    m, n_points, _ = path.shape
    inside = []
    for k in range(n_points):
        n_pairs = n_points - k
        apart = _correlation(np.concatenate(path[:, :n_pairs]), np.concatenate(path[:, k:]))
        inside.append(np.maximum(apart, 1 / np.sqrt(m * n_pairs)))
    return np.array(inside)


def _correlation(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Over the first axis; 1 for what never moves, and no less than 0."""
    before, after = before - before.mean(axis=0), after - after.mean(axis=0)
    scale = np.sqrt((before**2).mean(axis=0) * (after**2).mean(axis=0))
    moves = scale > 0
    covariance = (before * after).mean(axis=0)
    return np.clip(np.where(moves, covariance / np.where(moves, scale, 1.0), 1.0), 0.0, 1.0)
