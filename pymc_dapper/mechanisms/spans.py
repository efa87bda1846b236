"""Spans: where a noisy value lay, given the published one; of real or whole numbers.

All functions take NumPy arrays and PyTensor variables alike.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Variable

Value = Any
"""An array, a variable or a number."""


def either(condition: Value, yes: Value, no: Value) -> Value:
    """Choose entry by entry; a condition that is a plain bool chooses for all entries."""
    if isinstance(condition, bool):
        return yes if condition else no
    if any(isinstance(x, Variable) for x in (condition, yes, no)):
        # PyTensor takes no plain bool, and would hold a plain float in single precision.
        yes, no = (np.asarray(x) if isinstance(x, bool | float) else x for x in (yes, no))
        return pt.switch(condition, yes, no)
    return np.where(condition, yes, no)


def both(a: Value, b: Value) -> Value:
    """Whether both conditions hold; either may be a plain bool for all entries."""
    if isinstance(a, bool):
        return b if a else False
    return either(b, a, False) if isinstance(b, bool) else a & b


def one_of(a: Value, b: Value) -> Value:
    """Whether one of two conditions holds."""
    if isinstance(a, bool):
        return True if a else b
    return either(b, True, a) if isinstance(b, bool) else a | b


def no(condition: Value) -> Value:
    """Whether a condition doesn't hold."""
    return not condition if isinstance(condition, bool) else ~condition


@dataclass(frozen=True)
class End:
    """An end of a span, ``at + plus``. The two are stored apart: a half is lost beside 1e17."""

    at: Value
    plus: Value = 0.0
    closed: Value = True
    """Whether the end is part of the span. It matters for values with point masses."""

    @property
    def value(self) -> Value:
        """The end as one number."""
        return self.at if isinstance(self.plus, float) and not self.plus else self.at + self.plus

    def at_most(self, limit: float, margin: float) -> Value:
        """Whether a span that begins here has values up to a limit."""
        return either(self.closed, self.value <= limit + margin, self.value < limit - margin)

    def at_least(self, limit: float, margin: float) -> Value:
        """Whether a span that ends here has values from a limit on."""
        return either(self.closed, self.value >= limit - margin, self.value > limit + margin)

    def over(self, factor: float) -> "End":
        """Return the end in other units."""
        return End(self.at / np.float64(factor), self.plus / factor, self.closed)

    def or_else(self, condition: Value, other: "End") -> "End":
        """Return another end where a condition holds."""
        return End(
            either(condition, other.at, self.at),
            chosen(condition, other.plus, self.plus),
            chosen(condition, other.closed, self.closed),
        )


@dataclass(frozen=True)
class Span:
    """The range of each entry's value: two ends, which are equal if the value is known."""

    low: End
    high: End
    below: Value = False
    """Whether the span is open below; ``low`` is then ignored."""
    above: Value = False
    """Whether the span is open above; ``high`` is then ignored."""
    never: Value = False
    """Whether the span is empty."""
    points: bool = True
    """Whether some entries may be known exactly."""
    cells: bool = False
    """Whether some entries may lie between two different finite ends."""
    suppressed: bool = False
    """Whether the rules include a threshold."""

    @property
    def width(self) -> float | None:
        """Distance of the ends, if it is the same for all entries."""
        known = self.low.at is self.high.at and all(
            isinstance(end.plus, float) for end in (self.low, self.high)
        )
        return self.high.plus - self.low.plus if known else None


def chosen(condition: Value, yes: Value, no: Value) -> Value:
    """Choose entry by entry; two equal numbers stay a number."""
    known = not any(isinstance(x, np.ndarray | Variable) for x in (yes, no))
    return yes if known and yes == no else either(condition, yes, no)
