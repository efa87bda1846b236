"""A walk through tables: slice sampling (Neal 2003) along directions of whole numbers."""

from math import exp, lgamma, log, log1p
from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.backend.jit import kept_on_disk
from pymc_dapper.kernels.arrays import copy_into

IMPOSSIBLE = -1e5
"""Log-weight of impossible values and of values beyond a window: finite, so a walk may begin
there."""
FAR = 100.0
"""Subtracted for each count by which a sum is beyond its window."""


class Terms(NamedTuple):
    """What is known of cells and their sums, and the directions in which a table moves.

    Directions and their effects are sparse: the k-th has entries ``starts[k]`` to ``starts[k +
    1]``.
    """

    table: np.ndarray
    """The number of each sum's table."""
    starts: np.ndarray
    """The first index of each table in ``logs``, and the end of the last."""
    lowest: np.ndarray
    """For each table, its smallest count."""
    logs: np.ndarray
    limits: np.ndarray
    """The smallest and the largest count of a cell."""
    move_starts: np.ndarray
    move_cells: np.ndarray
    move_steps: np.ndarray
    effect_starts: np.ndarray
    effect_sums: np.ndarray
    effect_steps: np.ndarray
    widths: np.ndarray
    """For each direction, the approximate length of a move."""
    smooth: int
    """0 for a flat prior, 1 for a smooth one, 2 for a smooth one with known total."""
    bounds: np.ndarray
    """Limits of the logarithms of concentration and mean, shape (2, 2)."""


@njit
def log_weight(terms: Terms, row: int, at: int) -> float:
    """Return the log-weight of a sum."""
    table = terms.table[row]
    start, place = terms.starts[table], at - terms.lowest[table]
    size = terms.starts[table + 1] - start
    if place < 0:
        return IMPOSSIBLE + FAR * place
    if place >= size:
        return IMPOSSIBLE - FAR * (place - size + 1)
    return max(terms.logs[start + place], IMPOSSIBLE)


@njit
def _along(
    terms: Terms, move: int, t: int, cells: np.ndarray, sums: np.ndarray, point: np.ndarray
) -> float:
    """Return the log-density after ``t`` steps along a direction, up to a constant."""
    total = 0.0
    for e in range(terms.effect_starts[move], terms.effect_starts[move + 1]):
        row = terms.effect_sums[e]
        total += log_weight(terms, row, sums[row] + t * terms.effect_steps[e])
    if terms.smooth:
        alpha = exp(point[0])
        log_q = -log1p(exp(point[0] - point[1]))
        for e in range(terms.move_starts[move], terms.move_starts[move + 1]):
            count = cells[terms.move_cells[e]] + t * terms.move_steps[e]
            total += lgamma(alpha + count) - lgamma(count + 1.0) + count * log_q
    return total


@njit
def _room(terms: Terms, move: int, cells: np.ndarray) -> tuple[int, int]:
    """Return how many steps a table can take along a direction, both ways."""
    back, ahead = -(2**53), 2**53
    for e in range(terms.move_starts[move], terms.move_starts[move + 1]):
        count, step = cells[terms.move_cells[e]], terms.move_steps[e]
        down, up = count - terms.limits[0], terms.limits[1] - count
        if step > 0:
            back, ahead = max(back, -(down // step)), min(ahead, up // step)
        else:
            back, ahead = max(back, -(up // -step)), min(ahead, down // -step)
    return back, ahead


@njit
def _move(
    rng: np.random.Generator,
    terms: Terms,
    move: int,
    cells: np.ndarray,
    sums: np.ndarray,
    point: np.ndarray,
) -> None:
    """Draw a table along a direction."""
    back, ahead = _room(terms, move, cells)
    level = _along(terms, move, 0, cells, sums, point) + log(1.0 - rng.random())
    width = terms.widths[move]
    # From ``low`` to below ``high``; the bracket is the same for all tables in it.
    low = -int(rng.random() * width)
    high = low + width
    while low >= back and _along(terms, move, low, cells, sums, point) >= level:
        low -= width
    while high <= ahead and _along(terms, move, high, cells, sums, point) >= level:
        high += width
    low, high = max(low, back), min(high - 1, ahead)
    while True:
        t = low + int(rng.random() * (high - low + 1))
        if t == 0 or _along(terms, move, t, cells, sums, point) >= level:
            break
        if t < 0:
            low = t + 1
        else:
            high = t - 1
    for e in range(terms.move_starts[move], terms.move_starts[move + 1]):
        cells[terms.move_cells[e]] += t * terms.move_steps[e]
    for e in range(terms.effect_starts[move], terms.effect_starts[move + 1]):
        sums[terms.effect_sums[e]] += t * terms.effect_steps[e]


@njit
def _log_prior(terms: Terms, cells: np.ndarray, point: np.ndarray) -> float:
    """Return the log-density of concentration and mean, given all cells."""
    log_alpha, log_mu = point
    alpha, n, total, found = exp(log_alpha), cells.size, 0, 0.0
    for count in cells:
        found += lgamma(alpha + count) - lgamma(alpha)
        total += count
    if terms.smooth == 2:
        found -= lgamma(n * alpha + total) - lgamma(n * alpha)
    else:
        found -= n * alpha * log1p(exp(log_mu - log_alpha))
        found -= total * log1p(exp(log_alpha - log_mu))
    return found + 0.5 * log_alpha - np.logaddexp(0.0, log_alpha)


@njit
def _move_point(
    rng: np.random.Generator, terms: Terms, cells: np.ndarray, point: np.ndarray
) -> None:
    """Draw concentration and mean, one after the other."""
    for k in range(2 if terms.smooth == 1 else 1):
        here = point[k]
        level = _log_prior(terms, cells, point) + log(1.0 - rng.random())
        low, high = terms.bounds[k]
        while True:
            point[k] = low + rng.random() * (high - low)
            if _log_prior(terms, cells, point) >= level:
                break
            if point[k] < here:
                low = point[k]
            else:
                high = point[k]


@njit
def _walk(
    rng: np.random.Generator,
    terms: Terms,
    cells: np.ndarray,
    sums: np.ndarray,
    point: np.ndarray,
    sweeps: int,
    drawn: np.ndarray,
) -> None:
    """Walk, and keep a table after each number of sweeps.

    Parameters
    ----------
    rng : Generator
        Advanced by the draws.
    terms : Terms
        What is known.
    cells, sums : ndarray of int64
        The table, and the sums of its cells; they are changed.
    point : ndarray of float64, shape (2,)
        Logarithms of concentration and mean; changed, too.
    sweeps : int
        Sweeps between two kept tables.
    drawn : ndarray of int64, shape (draws, cells)
        The kept tables are written here.
    """
    for draw in range(len(drawn)):
        for _ in range(sweeps):
            for move in range(terms.widths.size):
                _move(rng, terms, move, cells, sums, point)
            if terms.smooth:
                _move_point(rng, terms, cells, point)
        copy_into(drawn[draw], 0, cells)


walk = kept_on_disk(_walk)
