"""A sweep over records of which order statistics were released, such as a median.

If one record changes, an order statistic moves to the record's new value, or as far towards it as
its neighbours among the others allow. So what would change is known from three successive numbers.
They are kept in a short sorted list of the numbers around each order statistic, which is made anew
when the order statistic comes near its end.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.records.kernels.sums_sweep import RUN, Sums, end_run, log_gain, plus

FEWEST = 16
"""Fewest numbers in a list on each side of the order statistic, if there are as many."""


class Orders(NamedTuple):
    """Order statistics, and the numbers near each of them."""

    values: np.ndarray
    """Float64, shape (c, n): present numbers of each record; updated in place."""
    proposed: np.ndarray
    """Float64, shape (c, n): proposed ones."""
    ranks: np.ndarray
    """Ints, shape (q, 2): of which column an order statistic is, and its rank from 0 on."""
    near: np.ndarray
    """Shape (q, m): the sorted numbers around each."""
    place: np.ndarray
    """Ints, shape (q, 2): the rank of the first of these numbers, and how many there are."""
    three: np.ndarray
    """Shape (q, 3): the number before each order statistic, itself, and the one after."""


@njit
def orders_of(values: np.ndarray, proposed: np.ndarray, ranks: np.ndarray) -> Orders:
    """Find the numbers around each order statistic."""
    n, n_orders = values.shape[1], len(ranks)
    near = np.empty((n_orders, 4 * (FEWEST + int(np.sqrt(n)))))
    place = np.empty((n_orders, 2), dtype=np.int64)
    orders = Orders(values.copy(), proposed, ranks, near, place, np.empty((n_orders, 3)))
    for q in range(n_orders):
        look(orders, q)
    return orders


@njit
def look(orders: Orders, q: int) -> None:
    """Find the numbers around an order statistic among all."""
    values, half = orders.values[orders.ranks[q, 0]], orders.near.shape[1] // 4
    first = max(orders.ranks[q, 1] - half, 0)
    stop = min(orders.ranks[q, 1] + half, len(values))
    parted = np.partition(values, np.array([first, stop - 1]))
    orders.near[q, : stop - first] = np.sort(parted[first:stop])
    orders.place[q, 0], orders.place[q, 1] = first, stop - first
    between(orders.near, orders.place, orders.three, orders.ranks[q, 1], q)


@njit
def between(near: np.ndarray, place: np.ndarray, three: np.ndarray, rank: int, q: int) -> None:
    """Note an order statistic with the numbers before and after it."""
    at, size = rank - place[q, 0], place[q, 1]
    three[q, 0] = near[q, at - 1] if at > 0 else -np.inf
    three[q, 1] = near[q, at]
    three[q, 2] = near[q, at + 1] if at + 1 < size else np.inf


@njit
def moved(three: np.ndarray, q: int, a: float, b: float) -> float:
    """Return the order statistic after one record's number changes from a to b."""
    present = three[q, 1]
    low = present if a < present else three[q, 0]
    high = present if a > present else three[q, 2]
    return min(max(b, low), high)


@njit
def move(near: np.ndarray, place: np.ndarray, n: int, q: int, a: float, b: float) -> None:
    """Change a number from a to b, where it is among those around an order statistic."""
    first, size = place[q, 0], place[q, 1]
    low = near[q, 0] if first > 0 else -np.inf
    high = near[q, size - 1] if first + size < n else np.inf
    # Numbers are as often on one side as on the other: a branch here would take longer.
    place[q, 0] += int(b < low) - int(a < low)
    if low <= a <= high:
        size -= 1
        k, last = size, near[q, size]
        while last > a:
            k -= 1
            near[q, k], last = last, near[q, k]
    if low <= b <= high and size == near.shape[1]:
        size = 0  # there is no place: the list is to be made anew
    elif low <= b <= high:
        k = size
        while k > 0 and near[q, k - 1] > b:
            near[q, k] = near[q, k - 1]
            k -= 1
        near[q, k] = b
        size += 1
    place[q, 1] = size


@njit(inline="always")
def decide_by_order(
    log_density: Callable[..., float],
    context: tuple[tuple[Any, ...], Orders],
    sums: Sums,
    removed: np.ndarray,
    added: np.ndarray,
    n_sums: int,
    start: int,
    thresholds: np.ndarray,
    accepted: np.ndarray,
) -> float:
    """Update the records of a block one by one, each given the outcome of those before it.

    The state of the log-density has the sums, then the order statistics. The context has its other
    inputs, and `Orders`. Else parameters and returns are those of
    :func:`~pymc_dapper.records.kernels.sums_sweep.decide_by_sums`.
    """
    inputs, orders = context
    total, change, _ = sums
    values, proposed, ranks, near, place, three = orders
    n, n_orders = values.shape[1], len(ranks)
    state = np.empty(n_sums + n_orders)
    for j in range(n_sums):
        state[j] = total[j]
    for q in range(n_orders):
        state[n_sums + q] = three[q, 1]
    log_now = log_density(state, inputs)
    new = state.copy()
    for k in range(len(removed)):
        i, same = start + k, True
        for j in range(n_sums):
            new[j] = plus(total[j], change[j] + (added[k, j] - removed[k, j]))
            same &= removed[k, j] == added[k, j]
        for q in range(n_orders):
            c = ranks[q, 0]
            new[n_sums + q] = moved(three, q, values[c, i], proposed[c, i])
            same &= new[n_sums + q] == state[n_sums + q]
        log_new = log_now if same else log_density(new, inputs)
        accepted[i] = thresholds[i] < log_gain(log_now, log_new)
        if accepted[i]:
            log_now = log_new
            for j in range(n_sums):
                change[j] += added[k, j] - removed[k, j]
            for q in range(n_orders):
                c = ranks[q, 0]
                move(near, place, n, q, values[c, i], proposed[c, i])
                state[n_sums + q] = new[n_sums + q]
            for c in range(len(values)):
                values[c, i] = proposed[c, i]
            for q in range(n_orders):
                rank, first, last = ranks[q, 1], place[q, 0], place[q, 0] + place[q, 1] - 1
                if (rank == first and first > 0) or (rank >= last and last < n - 1):
                    look(orders, q)
                else:
                    between(near, place, three, rank, q)
        if k % RUN == RUN - 1:
            end_run(sums)
    end_run(sums)
    return log_now
