"""A sweep over records of which quantiles were released, each chosen among candidates.

A proposal moves a record from one interval to another. That changes the distances of the candidates
between them. Only the best candidates matter: others are chosen with a probability of about 0. So a
run of records is compared with the few candidates that may matter during the run.
"""

from math import exp, log
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.records.kernels.sums_sweep import log_gain

RUN = 64
"""Number of records in a run, for which the same few candidates are used."""

FAR = 40.0
"""A candidate that is worse by this many scales has a probability below rounding error."""


class Releases(NamedTuple):
    """Released quantiles, and where each interval of records lies among their candidates."""

    passed: np.ndarray
    reached: np.ndarray
    """Ints, shape (q, k): how many candidates are below the records of an interval, and how many
    are below or at them."""
    n_candidates: np.ndarray
    chosen: np.ndarray
    """Ints, shape (q,): the number of the released candidate; -1 for none."""
    alpha: np.ndarray
    scale: np.ndarray
    flips: np.ndarray
    """Shape (q,); whether the noise is exponential, or else Gumbel."""
    nodes: np.ndarray
    weights: np.ndarray
    """Gauss-Legendre rules on (0, 1) with 1, 2, 4, ... nodes, one after the other."""


@njit
def sweep_by_rank(
    log_density: None,
    context: tuple[Any, ...],
    arrays: tuple[np.ndarray, np.ndarray],
    thresholds: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Update the records one by one, against the probability of the released quantiles.

    Parameters
    ----------
    log_density : None
        It is known here.
    context : Releases
        The quantiles.
    arrays : tuple of two ndarrays of unsigned int, shape (n,)
        The interval of each record, present and proposed.
    thresholds
        As in :func:`~pymc_dapper.records.kernels.sums_sweep.sweep_by_blocks`.

    Returns
    -------
    accepted : ndarray of bool, shape (n,)
        Which proposals were accepted.
    log_density : float
        Log-probability of the releases after the sweep.
    """
    releases, (present, proposed) = Releases(*context), arrays
    n_present, (n_releases, n_intervals) = len(thresholds), releases.passed.shape
    counts = np.zeros(n_intervals, dtype=np.int64)
    for i in range(n_present):
        counts[present[i]] += 1

    most = releases.n_candidates.max()
    distances = np.empty((n_releases, most))
    steps, ratios = np.empty((2, most + 1), dtype=np.int64), np.empty(most)
    first, stop = np.empty(n_releases, dtype=np.int64), np.empty(n_releases, dtype=np.int64)
    accepted = np.ones(len(present), dtype=np.bool_)
    log_now = 0.0
    for start in range(0, max(1, n_present), RUN):  # without records, too
        for q in range(n_releases):
            first[q], stop[q] = look(releases, q, counts, distances, steps)
        log_now = log_chosen(releases, distances, first, stop, ratios)
        for i in range(start, min(start + RUN, n_present)):
            a, b = present[i], proposed[i]
            moved = move(releases, a, b, distances, first, stop)
            log_new = log_chosen(releases, distances, first, stop, ratios) if moved else log_now
            accepted[i] = thresholds[i] < log_gain(log_now, log_new)
            if accepted[i]:
                counts[a] -= 1
                counts[b] += 1
                log_now = log_new
            elif moved:
                move(releases, b, a, distances, first, stop)
    return accepted, log_now


@njit
def look(
    releases: Releases, q: int, counts: np.ndarray, distances: np.ndarray, steps: np.ndarray
) -> tuple[int, int]:
    """Find how far each candidate is from the quantile, with its sign, from all counts.

    Returns the first candidate that may matter in the next run of records, and the last, plus one.
    A record changes a distance by at most 1.
    """
    alpha, n, below, not_above, best = releases.alpha[q], 0, 0, 0, 1e300
    steps[:] = 0
    for k in range(len(counts)):
        steps[0, releases.reached[q, k]] += counts[k]
        steps[1, releases.passed[q, k]] += counts[k]
        n += counts[k]
    for j in range(releases.n_candidates[q]):
        below += steps[0, j]
        not_above += steps[1, j]
        distances[q, j] = (1.0 - alpha) * below - alpha * (n - not_above)
        best = min(best, abs(distances[q, j]))
    far = best + FAR * releases.scale[q] + 2 * RUN
    first, stop = releases.n_candidates[q], 0
    for j in range(releases.n_candidates[q]):
        if abs(distances[q, j]) <= far or j == releases.chosen[q]:
            first, stop = min(first, j), j + 1
    return first, stop


@njit
def move(
    releases: Releases, a: int, b: int, distances: np.ndarray, first: np.ndarray, stop: np.ndarray
) -> bool:
    """Move a record from one interval to another, and say whether that may change anything."""
    moved = False
    for q in range(len(first)):
        if stop[q] - first[q] == 1:
            continue  # no other candidate has a chance, whatever its distance
        passed_a, reached_a = releases.passed[q, a], releases.reached[q, a]
        passed_b, reached_b = releases.passed[q, b], releases.reached[q, b]
        alpha, start = releases.alpha[q], max(first[q], min(passed_a, passed_b))
        for j in range(start, min(stop[q], max(reached_a, reached_b))):
            added = (1.0 - alpha) * (j >= reached_b) - alpha * (j < passed_b)
            removed = (1.0 - alpha) * (j >= reached_a) - alpha * (j < passed_a)
            distances[q, j] += added - removed
            moved |= added != removed
    return moved


@njit
def log_chosen(
    releases: Releases,
    distances: np.ndarray,
    first: np.ndarray,
    stop: np.ndarray,
    ratios: np.ndarray,
) -> float:
    """Return the log-probability of the released candidates, among those that may matter.

    As `NoisyMaxMechanism` has it: the softmax, or the integral over a polynomial.
    """
    log_all = 0.0
    for q in range(len(first)):
        chosen, scale = releases.chosen[q], releases.scale[q]
        if chosen < 0:
            return -np.inf
        best = abs(distances[q, chosen])
        for j in range(first[q], stop[q]):
            best = min(best, abs(distances[q, j]))
        far, n_near, total = best + FAR * scale, 0, 0.0
        for j in range(first[q], stop[q]):
            distance = abs(distances[q, j])
            if distance < far:
                ratios[n_near] = exp((best - distance) / scale)
                total += ratios[n_near]
                n_near += j != chosen
        if releases.flips[q]:
            size, total = 1, 0.0
            while 2 * size <= n_near:
                size *= 2
            for k in range(size - 1, 2 * size - 1):
                product = releases.weights[k]
                for j in range(n_near):
                    product *= 1.0 - ratios[j] * releases.nodes[k]
                total += product
            total = 1.0 / total
        log_all += (best - abs(distances[q, chosen])) / scale - log(total)
    return log_all
