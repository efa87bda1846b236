"""Fourier transforms of length 2^k or 3 * 2^k, as rows times columns.

A vector is a table of rows and columns. All columns are transformed at once, in loops along the
rows, which the compiler vectorises. Then entries are multiplied by roots of unity, the table is
transposed, and the same is done again. Frequencies come out in a permuted order, which doesn't
matter: products are entrywise, and the inverse starts from the same order.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

LEVEL_ERROR = 5 * 2.0**-53
"""Error bound of each of the log2 levels, relative to the sum of absolute entries.

A sum has a relative error of 2^-53, a product of complex numbers of 5^0.5 times that (Brent,
Percival and Zimmermann 2007, Mathematics of Computation 76), and the factor was rounded, too.
"""


class Plan(NamedTuple):
    """The constants of transforms of one length."""

    rows: int
    cosines: np.ndarray
    sines: np.ndarray
    """Float64, shape (length,): of the angles of all roots of unity."""
    turn_cosines: np.ndarray
    turn_sines: np.ndarray
    """Float64, shape (length,): factors of the entries when the table is transposed."""
    places: np.ndarray
    """Int64, shape (length,): the place of each frequency."""


@njit
def _reversed(k: int, n: int) -> int:
    """Return the bits of a number below n, the last one first."""
    found = 0
    while n > 1:
        found = 2 * found + k % 2
        k //= 2
        n //= 2
    return found


@njit
def frequency(place: int, n: int) -> int:
    """Return the frequency that a column's transform of n entries has at a place."""
    if n % 3:
        return _reversed(place, n)
    return place // (n // 3) + 3 * _reversed(place % (n // 3), n // 3)


@njit
def plan_of(n: int) -> Plan:
    """Plan transforms of a length, which is a power of 2 or 3 times one."""
    rows = 1
    while 4 * rows * rows <= n:
        rows *= 2
    columns = n // rows
    cosines, sines = np.empty(n), np.empty(n)
    for k in range(n):
        cosines[k], sines[k] = math.cos(2 * math.pi * k / n), -math.sin(2 * math.pi * k / n)
    turn_cosines, turn_sines = np.empty(n), np.empty(n)
    places = np.empty(n, dtype=np.int64)
    for r in range(rows):
        first = _reversed(r, rows)
        for c in range(columns):
            turn_cosines[c * rows + r] = cosines[c * first]
            turn_sines[c * rows + r] = sines[c * first]
            places[first + rows * frequency(c, columns)] = c * rows + r
    return Plan(rows, cosines, sines, turn_cosines, turn_sines, places)


@njit(fastmath={"contract"})
def _apart(
    ur: np.ndarray, ui: np.ndarray, vr: np.ndarray, vi: np.ndarray, x: float, y: float
) -> None:
    """Put the sum of two rows and their turned difference in their places."""
    for q in range(ur.size):
        a, b, c, d = ur[q], ui[q], vr[q], vi[q]
        ur[q] = a + c
        ui[q] = b + d
        e, f = a - c, b - d
        vr[q] = e * x - f * y
        vi[q] = e * y + f * x


@njit(fastmath={"contract"})
def _together(
    ur: np.ndarray, ui: np.ndarray, vr: np.ndarray, vi: np.ndarray, x: float, y: float
) -> None:
    """Invert that, up to a factor of 2."""
    for q in range(ur.size):
        a, b, c, d = ur[q], ui[q], vr[q], vi[q]
        e, f = c * x + d * y, d * x - c * y
        ur[q] = a + e
        ui[q] = b + f
        vr[q] = a - e
        vi[q] = b - f


@njit(fastmath={"contract"})
def _thirds(plan: Plan, re: np.ndarray, im: np.ndarray, n: int, back: bool) -> None:
    """Transform the thirds of a table of n rows, and turn them; or the same back."""
    lanes, third, stride = re.size // n, n // 3, plan.cosines.size // n
    sine = -math.sqrt(0.75) if back else math.sqrt(0.75)
    for p in range(third):
        x1, y1 = plan.cosines[p * stride], plan.sines[p * stride]
        x2, y2 = plan.cosines[2 * p * stride], plan.sines[2 * p * stride]
        for q in range(lanes):
            i, j, k = p * lanes + q, (p + third) * lanes + q, (p + 2 * third) * lanes + q
            a, b, c, d, e, f = re[i], im[i], re[j], im[j], re[k], im[k]
            if back:
                c, d = c * x1 + d * y1, d * x1 - c * y1
                e, f = e * x2 + f * y2, f * x2 - e * y2
            s, t = c + e, d + f
            u, v = sine * (d - f), sine * (e - c)
            re[i], im[i] = a + s, b + t
            a, b = a - 0.5 * s, b - 0.5 * t
            c, d, e, f = a + u, b + v, a - u, b - v
            if not back:
                c, d = c * x1 - d * y1, c * y1 + d * x1
                e, f = e * x2 - f * y2, e * y2 + f * x2
            re[j], im[j], re[k], im[k] = c, d, e, f


@njit
def _columns(plan: Plan, re: np.ndarray, im: np.ndarray, n: int, back: bool) -> None:
    """Transform all columns of a table of n rows."""
    lanes, power = re.size // n, n if n % 3 else n // 3
    if power < n and not back:
        _thirds(plan, re, im, n, back)
    half = 1 if back else power // 2
    while 0 < half < power:
        stride = plan.cosines.size // (2 * half)
        for start in range(0, n, 2 * half):
            for p in range(half):
                i, j = (start + p) * lanes, (start + p + half) * lanes
                x, y = plan.cosines[p * stride], plan.sines[p * stride]
                ur, ui = re[i : i + lanes], im[i : i + lanes]
                vr, vi = re[j : j + lanes], im[j : j + lanes]
                if back:
                    _together(ur, ui, vr, vi, x, y)
                else:
                    _apart(ur, ui, vr, vi, x, y)
        half = 2 * half if back else half // 2
    if power < n and back:
        _thirds(plan, re, im, n, back)


@njit(fastmath={"contract"})
def forward(
    plan: Plan, re: np.ndarray, im: np.ndarray, to_re: np.ndarray, to_im: np.ndarray
) -> None:
    """Transform a vector, which is overwritten; frequency k is at ``plan.places[k]``."""
    rows = plan.rows
    columns = re.size // rows
    _columns(plan, re, im, rows, False)
    for r in range(rows):
        for c in range(columns):
            i, j = r * columns + c, c * rows + r
            x, y, a, b = re[i], im[i], plan.turn_cosines[j], plan.turn_sines[j]
            to_re[j] = x * a - y * b
            to_im[j] = x * b + y * a
    _columns(plan, to_re, to_im, columns, False)


@njit(fastmath={"contract"})
def backward(
    plan: Plan, re: np.ndarray, im: np.ndarray, to_re: np.ndarray, to_im: np.ndarray
) -> None:
    """Transform back, up to a factor of the length; the input is overwritten."""
    rows = plan.rows
    columns = re.size // rows
    _columns(plan, re, im, columns, True)
    for r in range(rows):
        for c in range(columns):
            i, j = r * columns + c, c * rows + r
            x, y, a, b = re[j], im[j], plan.turn_cosines[j], plan.turn_sines[j]
            to_re[i] = x * a + y * b
            to_im[i] = y * a - x * b
    _columns(plan, to_re, to_im, rows, True)
