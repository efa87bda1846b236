"""Laws of a published whole number, given the true count: tables of probabilities."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import pytensor.tensor as pt
from pytensor.graph import Variable
from pytensor.tensor.elemwise import Elemwise

from pymc_dapper.backend import numba_ops  # noqa: F401  (compiles look-ups)
from pymc_dapper.backend.entries import LookUp
from pymc_dapper.checks import has_shape, is_a, real_numbers, shown, whole_number, whole_numbers
from pymc_dapper.mechanisms.spans import Value, either

MOST_ENTRIES = 100_000
"""Numba doesn't cache larger arrays with compiled code."""

NOT_ONE = 1e-6
"""Allowed difference of a sum of probabilities from one: tables are written with few digits."""


@dataclass(frozen=True, eq=False)
class CountLaw:
    """P(published | true count), with a row for each true count from 0 on.

    Published values are whole numbers. Columns are successive whole numbers from a given first one:
    published values, or, if ``relative``, their differences from the true count.
    """

    probabilities: np.ndarray
    """Shape (rows, columns); rows add up to one."""
    first: int
    relative: bool
    repeats: int | None = None
    """This number of last rows repeats for all larger counts. None: larger counts have no row."""
    open_ended: bool = False
    """Whether larger counts may occur although their law is unknown."""

    @property
    def last(self) -> int:
        """The largest count with its own row."""
        return len(self.probabilities) - 1

    # -- look-ups, in NumPy and in PyTensor alike --------------------------------------------------

    def row(self, count: Value) -> Value:
        """Return the row of a count: -1 if it is negative, one past the last if there is none."""
        row = _clip(count, -1, self.last + 1)
        if self.repeats is None:
            return row
        first = self.last + 1 - self.repeats
        return either(count > self.last, first + (count - first) % self.repeats, row)

    def log_at(self, value: Value, count: Value) -> Value:
        """Log-probability that a value is published."""
        column = _clip(value - self._shift(count) - self.first, -1, self._width)
        return _look_up(self._log, self.row(count) + 1, column + 1)

    def log_between(
        self, low: Value, high: Value, below: Value, above: Value, count: Value
    ) -> Value:
        """Log-probability that the published value is from one value to another.

        If the range is open below or above, that end is ignored.
        """
        shift, row = self._shift(count) + self.first, self.row(count) + 1
        start = either(below, 0, _clip(low - shift, 0, self._width))
        stop = either(above, self._width, _clip(high - shift + 1, 0, self._width))
        stop = either(start > stop, start, stop)
        up_to_stop = _look_up(self._up_to, row, stop)
        from_start = _look_up(self._from, row, start)
        # Keep small probabilities precise: subtract small numbers from each other.
        lower = up_to_stop - _look_up(self._up_to, row, start)
        upper = from_start - _look_up(self._from, row, stop)
        total = either(up_to_stop < 0.5, lower, upper)
        possible = total > 0
        module = pt if isinstance(total, Variable) else np
        return either(possible, module.log(either(possible, total, 1.0)), -np.inf)

    def _shift(self, count: Value) -> Value:
        return count if self.relative else 0

    @property
    def _width(self) -> int:
        return self.probabilities.shape[1]

    @cached_property
    def _rows(self) -> np.ndarray:
        """Rows, with an empty row at both ends, for negative counts and for larger ones."""
        return np.pad(self.probabilities, ((1, 1), (0, 0)))

    @cached_property
    def _log(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(np.pad(self._rows, ((0, 0), (1, 1))))

    @cached_property
    def _up_to(self) -> np.ndarray:
        return np.pad(np.cumsum(self._rows, axis=1), ((0, 0), (1, 0)))

    @cached_property
    def _from(self) -> np.ndarray:
        return np.pad(np.cumsum(self._rows[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))

    # -- draws ---------------------------------------------------------------------------------

    def has(self, count: Value) -> Value:
        """Return the counts whose law is known."""
        known = count >= 0
        return known if self.repeats is not None else known & (count <= self.last)

    def draw(self, count: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw published values."""
        below = self._up_to[self.row(count) + 1, 1:]
        u = rng.random(count.shape) * below[..., -1]
        return (below <= u[..., None]).sum(axis=-1) + self.first + self._shift(count)

    # -- what can be published -------------------------------------------------------------------

    def counts_behind(self, low: float, high: float) -> np.ndarray:
        """Return a set that includes every count which can lead to a value between two ends.

        If such counts have no upper end, the set has one for each row.
        """
        if not self.relative:
            return np.arange(self.last + 1)
        least = 0 if np.isinf(low) else max(0, int(low) - self.first - self._width + 1)
        most = max(least, self.last) + (self.repeats or 0)
        most = most if np.isinf(high) else int(high) - self.first
        return np.arange(least, (most if self.repeats else min(most, self.last)) + 1)

    def may_be_beyond(self, high: float) -> bool:
        """Whether a count with unknown law may have led to a value up to an end."""
        lowest = self.first + int(np.argmax(self.probabilities[-1] > 0))
        return self.open_ended and high - lowest > self.last


def read_law(
    probabilities: Any,
    *,
    published: Any = None,
    differences: Any = None,
    repeats: int | None = None,
    what: str = "probabilities",
) -> CountLaw:
    """Check probabilities and make a law from them.

    Raises
    ------
    TypeError
        If they aren't real numbers, or ``repeats`` isn't a whole number.
    ValueError
        If they aren't a matrix, don't fit the values, or a row of them doesn't add up to one.
    """
    p = real_numbers(probabilities, what)
    if p.ndim != 2:
        raise ValueError(
            f"{what} must be a matrix, with a row for each true count from 0 on and a column for "
            f"each published value, got shape {p.shape}"
        )
    if published is not None and differences is not None:
        raise ValueError("give published or differences: columns are one of both")
    relative = differences is not None
    name, given = ("differences", differences) if relative else ("published", published)
    values = np.arange(p.shape[1]) if given is None else whole_numbers(given, name)
    has_shape(values, name, p.shape[1:], why=f", one for each column of {what}")
    if len(np.unique(values)) < len(values):
        raise ValueError(f"{name} must be different for each column, got {shown(values)}")
    if repeats is not None:
        repeats = whole_number(repeats, "repeats", at_least=1)
        if not relative:
            raise ValueError(
                "repeats is for columns that are differences: use differences= instead of "
                "published="
            )
        if repeats > len(p):
            raise ValueError(f"repeats must be at most the number of rows, {len(p)}, got {repeats}")
    _check_rows(p, what)
    return _narrow(p / p.sum(axis=1, keepdims=True), values, relative, repeats, what)


def law_of_function(law: Callable[[int], Any], largest: int) -> tuple[np.ndarray, np.ndarray]:
    """Tabulate a function of the true count, which returns probabilities by published value."""
    try:
        signature(law).bind(0)
    except TypeError as error:
        raise TypeError(f"law must take a true count, as law(true): {error}") from None
    rows = []
    for count in range(largest + 1):
        row = law(count)
        example = "a dict of probabilities by published value, such as {0: 0.4, 3: 0.6}"
        is_a(row, dict, f"law({count}) must return {example}")
        published = whole_numbers(list(row), f"what law({count}) publishes").tolist()
        p = real_numbers(list(row.values()), f"what law({count}) returns", finite=True)
        rows.append(dict(zip(published, p, strict=True)))
    table = pd.DataFrame(rows).fillna(0).sort_index(axis=1)
    return table.to_numpy(), table.columns.to_numpy()


def _check_rows(p: np.ndarray, what: str) -> None:
    if not np.all(np.isfinite(p)) or np.any(p < 0):
        row = int(np.argmax(np.any(~(p >= 0) | np.isinf(p), axis=1)))
        raise ValueError(f"{what} must be from 0 to 1, but those of true count {row} aren't")
    off = np.abs(p.sum(axis=1) - 1) > NOT_ONE
    if off.any():
        row, others = int(np.argmax(off)), np.count_nonzero(off) - 1
        more = f", nor do those of {others} more" if others else ""
        raise ValueError(
            f"{what} of each true count must add up to 1, but those of {row} add up to "
            f"{p[row].sum():.6g}{more}"
        )


def _narrow(
    p: np.ndarray, values: np.ndarray, relative: bool, repeats: int | None, what: str
) -> CountLaw:
    """Sort columns, without those at either side that are never published.

    Columns become differences if that takes fewer of them.
    """
    open_ended = relative and repeats is None
    rows, columns = np.nonzero(p)
    value = values[columns]
    if not relative:
        apart = value - rows
        if np.ptp(apart) < np.ptp(value):
            value, relative = apart, True
    first, width = int(value.min()), int(np.ptp(value)) + 1
    if len(p) * width > MOST_ENTRIES:
        raise ValueError(
            f"{what} of {len(p)} true counts have {width} values each, more than "
            f"{MOST_ENTRIES:,} in all. If the law is the same for larger counts, use "
            "differences= and repeats="
        )
    table = np.zeros((len(p), width))
    table[rows, value - first] = p[rows, columns]
    return CountLaw(table, first, relative, repeats, open_ended)


def _look_up(table: np.ndarray, *indices: Value) -> Value:
    if any(isinstance(x, Variable) for x in indices):
        return Elemwise(LookUp(table))(*indices)
    return table[indices]


def _clip(x: Value, low: int, high: int) -> Value:
    module = pt if isinstance(x, Variable) else np
    return module.clip(x, np.int64(low), np.int64(high))
