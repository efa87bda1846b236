"""Sums of clamped numbers and of their powers."""

import math

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from pymc_dapper.checks import whole_number
from pymc_dapper.statistics.arrays import (
    Records,
    as_records,
    module_of,
    n_columns,
)
from pymc_dapper.statistics.statistic import (
    Array,
    Neighbours,
    Statistic,
    check_neighbours,
    exact_sensitivities,
)


def clamped_sum(
    x: Records, lower: ArrayLike, upper: ArrayLike, *, neighbours: Neighbours = "replace"
) -> Statistic:
    """Clamp the records to an interval and add them up.

    Parameters
    ----------
    x : tensor or array, shape (n,) or (n, m)
        The records: one number each, or m.
    lower, upper : float, or array_like of shape (m,)
        The interval, for all columns or for each.
    neighbours : {"replace", "add_remove"}
        Which data sets the sensitivity compares: one record with other values (the number of
        records is public), or one record more or less.

    Returns
    -------
    Statistic
        Sum, a scalar or of shape (m,); an integer if records and limits are. Sensitivity, exact:
        upper - lower for one record replaced, max(abs(lower), abs(upper)) for one added or removed.
        Over columns these add up for L1, their squares for L2.

    Raises
    ------
    ValueError
        If the limits aren't finite, or not in order.

    Examples
    --------
    >>> clamped_sum([-2.0, 0.5, 9.0], 0, 1).value
    array(1.5)
    """
    records, low, high = _with_limits(x, lower, upper)
    check_neighbours(neighbours)
    by_column = []
    for a, b in zip(*np.atleast_1d(low, high), strict=True):
        distance = float(b - a if neighbours == "replace" else max(abs(a), abs(b)))
        by_column.append((distance, distance))
    value = _clamp(records, low, high).sum(axis=0)
    if isinstance(records, np.ndarray):
        value = np.asarray(value)
    return Statistic(value, exact_sensitivities(by_column, neighbours))


def clamped_moments(
    x: Records,
    lower: ArrayLike,
    upper: ArrayLike,
    order: int = 2,
    *,
    neighbours: Neighbours = "replace",
) -> Statistic:
    """Clamp the records to an interval and add up their powers 1, ..., ``order``.

    Parameters
    ----------
    x : tensor or array, shape (n,) or (n, m)
        The records: one number each, or m.
    lower, upper : float, or array_like of shape (m,)
        The interval, for all columns or for each. The powers are in its units: scale records to
        [-1, 1] or [0, 1] first, or the highest power takes most of the noise.
    order : int, default 2
        The highest power.
    neighbours : {"replace", "add_remove"}
        Which data sets the sensitivity compares: one record with other values (the number of
        records is public), or one record more or less.

    Returns
    -------
    Statistic
        Sums of powers, of shape (order,) or (m, order). Sensitivity, exact, see the notes. Over
        columns the L1 sensitivities add up, and the squares of those for L2.

    Raises
    ------
    ValueError
        If the limits aren't finite, or not in order.

    Notes
    -----
    Write M for the larger and w' for the smaller of abs(lower), abs(upper), and P(u) for
    u + u^2 + ... + u^order. One record added or removed: L1 is P(M), L2 the root of the sum of
    M^(2k). One record replaced, where the interval has no 0 inside: the largest distance is that
    between its ends. Else it is the largest, over w in [0, w'], of the distance between M and -w:
    a maximum over one number. For L1 it is P(M) - P(-w), with w = w' if the order is odd, and
    the smaller of w' and the positive root of (order + 1) w^order + order w^(order + 1) = 1 if it
    is even (1/2 at order 2). For L2 it is at an end or at a root of a polynomial, all of
    which are found numerically. Proofs are in the documentation.

    Examples
    --------
    >>> clamped_moments([-2.0, 0.5, 9.0], -1, 1).value
    array([0.5 , 2.25])
    >>> clamped_moments([-2.0, 0.5, 9.0], -1, 1).sensitivity.l1
    Sensitivity(2.25, exact=True)
    """
    order = whole_number(order, "order", at_least=1)
    records, low, high = _with_limits(x, lower, upper)
    largest = _largest_change if check_neighbours(neighbours) == "replace" else _largest_value
    by_column = [
        largest(float(a), float(b), order) for a, b in zip(*np.atleast_1d(low, high), strict=True)
    ]
    clamped = _clamp(records, low.astype(np.float64), high.astype(np.float64))
    powers = [clamped**k for k in range(1, order + 1)]
    value = module_of(records).stack(powers, axis=-1).sum(axis=0)
    return Statistic(value, exact_sensitivities(by_column, neighbours))


def _with_limits(
    x: Records, lower: ArrayLike, upper: ArrayLike
) -> tuple[Array, np.ndarray, np.ndarray]:
    """Check records and limits; give each column its own limits."""
    records = as_records(x, "x")
    columns = n_columns(records, "x")
    shape = () if columns is None else (columns,)
    low, high = np.asarray(lower), np.asarray(upper)
    for limit, name in ((low, "lower"), (high, "upper")):
        if limit.dtype.kind not in "iuf" or not np.isfinite(limit).all():
            raise ValueError(f"{name} must be finite, got {limit}")
        if limit.shape not in ((), shape):
            per_column = f" or one per column, {columns}" if shape else ""
            raise ValueError(f"{name} must be one number{per_column}: its shape is {limit.shape}")
    if not np.all(low < high):
        raise ValueError(f"lower must be less than upper, got {low} and {high}")
    dtype = np.float64 if "f" in (low.dtype.kind, high.dtype.kind) else np.int64
    return (
        records,
        np.broadcast_to(low, shape).astype(dtype),
        np.broadcast_to(high, shape).astype(dtype),
    )


def _clamp(records: Array, low: np.ndarray, high: np.ndarray) -> Array:
    return module_of(records).clip(records, low, high)


def _largest_value(a: float, b: float, order: int) -> tuple[float, float]:
    """L1 and L2 norm of (u, u^2, ..., u^order), the largest over u in [a, b]."""
    powers = _powers(max(abs(a), abs(b)), order)
    return math.fsum(powers), math.hypot(*powers)


def _largest_change(a: float, b: float, order: int) -> tuple[float, float]:
    """L1 and L2 distance of (u, ..., u^order) and (v, ..., v^order), the largest over [a, b]."""
    if a >= 0 or b <= 0:
        return _l1(b, a, order), _l2(b, a, order)
    large, small = max(abs(a), abs(b)), min(abs(a), abs(b))
    # Reflecting the interval changes no distance: one record is `large`, the other -w.
    w = small if order % 2 else min(small, _minimum_of_power_sum(order))
    squared = Polynomial([0.0])
    for k in range(1, order + 1):
        squared += Polynomial([large**k, *[0.0] * (k - 1), -((-1.0) ** k)]) ** 2
    stationary = np.clip(squared.deriv().roots().real, 0.0, small)
    return _l1(large, -w, order), max(_l2(large, -v, order) for v in (small, *stationary))


def _minimum_of_power_sum(order: int) -> float:
    """Where w minimises -w + w^2 - ... + w^order, of even order, among positive numbers."""
    return float(brentq(lambda w: (order + 1) * w**order + order * w ** (order + 1) - 1, 0, 1))


def _powers(u: float, order: int) -> list[float]:
    return [u**k for k in range(1, order + 1)]


def _l1(u: float, v: float, order: int) -> float:
    changes = zip(_powers(u, order), _powers(v, order), strict=True)
    return math.fsum(abs(s - t) for s, t in changes)


def _l2(u: float, v: float, order: int) -> float:
    return math.dist(_powers(u, order), _powers(v, order))
