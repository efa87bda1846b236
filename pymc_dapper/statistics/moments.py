"""Sums of clamped numbers and of their powers."""

from fractions import Fraction

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike

from pymc_dapper.budget.roots import root
from pymc_dapper.checks import as_array, shown, whole_number
from pymc_dapper.sensitivity import Neighbours, Sensitivities, for_either
from pymc_dapper.statistics import arrays
from pymc_dapper.statistics.statistic import Array, Statistic, column_sensitivities

MAX_INTEGER, MAX_FLOAT = 2**62, Fraction(float(np.finfo(np.float64).max))

INSIDE = Fraction(1, 2**40)
"""Added to a maximum that was found numerically; far larger than its error."""


def clamped_sum(
    x: arrays.Records, lower: ArrayLike, upper: ArrayLike, *, neighbours: Neighbours | None = None
) -> Statistic:
    """Clamp the records to an interval and add them up.

    Parameters
    ----------
    x : tensor or array, shape (n,) or (n, m)
        The records: one number each, or m.
    lower, upper : float, or array_like of shape (m,)
        The interval, for all columns or for each.
    neighbours : {"replace", "add_remove"}, optional
        Neighbouring data sets of the sensitivity. "replace": one record has other values (the
        number of records is public). "add_remove": one record more or less. By default, a
        calibration uses the budget's ``neighbours``.

    Returns
    -------
    Statistic
        Sum, a scalar or of shape (m,); an integer if records and limits are. Sensitivity, exact:
        upper - lower for one record replaced, max(abs(lower), abs(upper)) for one added or removed.
        Over columns these add up for L1, their squares for L2.

    Raises
    ------
    ValueError
        If the limits aren't finite and in order, or are so far apart that a sum or its sensitivity
        may not fit into 64 bits.

    Examples
    --------
    >>> clamped_sum([-2.0, 0.5, 9.0], 0, 1).value
    array(1.5)
    """
    records, low, high = _with_limits(x, lower, upper)
    _check_sum(records, low, high, 1)
    value = _clamp(records, low, high).sum(axis=0)
    if isinstance(records, np.ndarray):
        value = np.asarray(value)
    return Statistic(value, _sensitivities(low, high, 1, neighbours), arrays.n_records(records))


def clamped_moments(
    x: arrays.Records,
    lower: ArrayLike,
    upper: ArrayLike,
    order: int = 2,
    *,
    neighbours: Neighbours | None = None,
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
    neighbours : {"replace", "add_remove"}, optional
        Neighbouring data sets of the sensitivity. "replace": one record has other values (the
        number of records is public). "add_remove": one record more or less. By default, a
        calibration uses the budget's ``neighbours``.

    Returns
    -------
    Statistic
        Sums of powers, of shape (order,) or (m, order). The sensitivity is exact, see the notes.
        Over columns, L1 sensitivities and squared L2 sensitivities add up.

    Raises
    ------
    ValueError
        If the limits aren't finite and in order, or are so far apart that a sum or its sensitivity
        may not fit into 64 bits.

    Notes
    -----
    Write M for the larger and w' for the smaller of abs(lower), abs(upper), and P(u) for u + u^2 +
    ... + u^order.

    One record added or removed: L1 is P(M), L2 the root of the sum of M^(2k).

    One record replaced: if 0 isn't inside the interval, the largest distance is between its ends.
    Otherwise it is the distance between M and -w, maximised over w in [0, w']. For L1 it is P(M) -
    P(-w): for odd order w = w'; for even order w is the smaller of w' and the positive root of
    (order + 1) w^order + order w^(order + 1) = 1 (1/2 at order 2). For L2, w is an end of its range
    or a root of a polynomial; all roots are found numerically. Proofs are in the documentation.

    Examples
    --------
    >>> clamped_moments([-2.0, 0.5, 9.0], -1, 1).value
    array([0.5 , 2.25])
    >>> clamped_moments([-2.0, 0.5, 9.0], -1, 1).sensitivity.l1
    Sensitivity(2.25, exact=True)
    """
    order = whole_number(order, "order", at_least=1)
    records, low, high = _with_limits(x, lower, upper)
    low, high = low.astype(np.float64), high.astype(np.float64)
    _check_sum(records, low, high, order)
    clamped = _clamp(records, low, high)
    powers = [clamped**k for k in range(1, order + 1)]
    value = arrays.module_of(records).stack(powers, axis=-1).sum(axis=0)
    return Statistic(value, _sensitivities(low, high, order, neighbours), arrays.n_records(records))


def _with_limits(
    x: arrays.Records, lower: ArrayLike, upper: ArrayLike
) -> tuple[Array, np.ndarray, np.ndarray]:
    """Check records and limits; give each column its own limits."""
    records = arrays.as_records(x, "x")
    columns = arrays.n_columns(records, "x")
    shape = () if columns is None else (columns,)
    low, high = as_array(lower), as_array(upper)
    for limit, name in ((low, "lower"), (high, "upper")):
        if limit.dtype.kind not in "iuf" or not np.isfinite(limit).all():
            raise ValueError(f"{name} must be finite, got {shown(limit[()])}")
        if limit.dtype.kind == "u" and np.any(limit > MAX_INTEGER):
            raise ValueError(
                f"{name} must be within 2^62, where integers are added up, got {shown(limit[()])}"
            )
        if limit.shape not in ((), shape):
            per_column = f" or one per column, {columns}" if shape else ""
            raise ValueError(f"{name} must be one number{per_column}: its shape is {limit.shape}")
    if not np.all(low < high):
        raise ValueError(
            f"lower must be less than upper, got {shown(low[()])} and {shown(high[()])}"
        )
    dtype = np.float64 if "f" in (low.dtype.kind, high.dtype.kind) else np.int64
    low, high = (np.broadcast_to(x, shape).astype(dtype) for x in (low, high))
    return records, low, high


def _clamp(records: Array, low: np.ndarray, high: np.ndarray) -> Array:
    return arrays.module_of(records).clip(records, low, high)


def _fractions(low: np.ndarray, high: np.ndarray) -> list[tuple[Fraction, Fraction]]:
    """Limits of each column as exact fractions: floats would round their difference."""
    ends = zip(np.atleast_1d(low).tolist(), np.atleast_1d(high).tolist(), strict=True)
    return [(Fraction(a), Fraction(b)) for a, b in ends]


def _check_sum(records: Array, low: np.ndarray, high: np.ndarray, order: int) -> None:
    """Check that no sum of powers of clamped records can overflow, if their number is known."""
    n = arrays.n_records(records)
    largest = max(abs(limit) for limits in _fractions(low, high) for limit in limits)
    bound = (1 if n is None else n) * max(largest, largest**order)
    whole = low.dtype.kind == "i" and np.dtype(records.dtype).kind in "biu"
    if bound > (MAX_INTEGER if whole else MAX_FLOAT):
        power = "" if order == 1 else f" of powers up to {order}"
        raise ValueError(
            f"lower and upper are so far apart that a sum{power} may not fit into "
            + ("64-bit integers: give them as floats, or" if whole else "a float:")
            + " scale the records"
        )


def _sensitivities(
    low: np.ndarray, high: np.ndarray, order: int, neighbours: Neighbours | None
) -> Sensitivities:
    def of(which: Neighbours) -> Sensitivities:
        largest = _largest_change if which == "replace" else _largest_value
        return column_sensitivities([largest(a, b, order) for a, b in _fractions(low, high)], which)

    return for_either(neighbours, of)


def _largest_value(a: Fraction, b: Fraction, order: int) -> tuple[Fraction, Fraction, Fraction]:
    """Largest norms of (u, u^2, ..., u^order) over u in [a, b]: L1, L2 squared, L-infinity."""
    return _distances(max(abs(a), abs(b)), Fraction(0), order)


def _largest_change(a: Fraction, b: Fraction, order: int) -> tuple[Fraction, Fraction, Fraction]:
    """Largest distances of (u, ..., u^order) and (v, ..., v^order) over [a, b], likewise."""
    if a >= 0 or b <= 0:
        return _distances(b, a, order)
    large, small = max(abs(a), abs(b)), min(abs(a), abs(b))
    # Reflecting the interval changes no distance: one record is `large`, the other -w.
    w = small if order % 2 else min(small, _minimum_of_power_sum(order))
    l1, *_ = _distances(large, -w, order)
    if w < small and order > 2:
        l1 *= 1 + INSIDE

    # In units of `large` and of its largest power, which may exceed floats.
    end, ratio = float(small / large), float(min(large, 1 / large))
    squared = Polynomial([0.0])
    for k in range(1, order + 1):
        weight = ratio ** (order - k if large > 1 else k - 1)
        squared += (weight * Polynomial([1.0, *[0.0] * (k - 1), -((-1.0) ** k)])) ** 2
    inside = max(np.clip(squared.deriv().roots().real, 0.0, end), key=squared, default=end)
    _, l2_squared, _ = _distances(large, -small, order)
    if squared(inside) > squared(end):
        _, farther, _ = _distances(large, -large * Fraction(float(inside)), order)
        l2_squared = max(l2_squared, farther * (1 + INSIDE))

    # Odd powers change most between the ends, even ones between `large` and 0. The changes grow
    # with the power, or fall, or fall and then grow.
    odd, even = {1, order - 1 + order % 2}, {2, order - order % 2} if order > 1 else set()
    return l1, l2_squared, max(large**k + (small**k if k in odd else 0) for k in odd | even)


def _minimum_of_power_sum(order: int) -> Fraction:
    """Return the positive w that minimises -w + w^2 - ... + w^order, for even order."""
    if order == 2:
        return Fraction(1, 2)
    return Fraction(root(lambda w: (order + 1) * w**order + order * w ** (order + 1) - 1, 0, 1))


def _distances(u: Fraction, v: Fraction, order: int) -> tuple[Fraction, Fraction, Fraction]:
    """L1 distance of the powers of u and v, the square of the L2 distance, and the L-infinity."""
    # Use one denominator, so that all computations are on whole numbers.
    d = max(u.denominator, v.denominator)
    p, q = int(u * d), int(v * d)
    changes = [abs(p**k - q**k) * d ** (order - k) for k in range(1, order + 1)]
    whole = d**order
    squares = sum(change**2 for change in changes)
    return Fraction(sum(changes), whole), Fraction(squares, whole**2), Fraction(max(changes), whole)
