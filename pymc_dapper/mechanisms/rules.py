"""Rules of publication: what a curator did to noisy values, step by step.

Each rule is monotone. So a published value determines two ends between which the value before the
rule lay (:meth:`Rule.before`), and a chain of rules is inverted one by one.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args, override

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Variable

from pymc_dapper.checks import as_array, choice, finite_number, increasing, nowhere, shown
from pymc_dapper.mechanisms.arguments import refuse
from pymc_dapper.mechanisms.spans import End, Span, Value, both, chosen, either, no, one_of

Ties = Literal["half even", "half up", "down", "toward zero"]
Relation = Literal[">", ">="]

MAX_RELEASE = 2**62
"""Largest size of released integers: their difference from a statistic doesn't wrap."""

OFF_GRID = 1e-6
"""How far a rounded value may be from a multiple of the step, in steps."""

SUPPRESSED = -np.inf
"""Marks a suppressed entry in data: its value was below the threshold."""


class Rule(ABC):
    """A rule of publication."""

    @abstractmethod
    def __repr__(self) -> str:
        """Return the call that adds the rule to a mechanism."""

    def grid(self, grid: float | None) -> float | None:
        """Grid of the values after the rule, given the one before: a step; None for real numbers.

        Raises
        ------
        ValueError
            If the rule can't follow on values with such a grid.
        """
        return grid

    @abstractmethod
    def publish(self, value: Value) -> Value:
        """Apply the rule to values."""

    @abstractmethod
    def before(self, span: Span, grid: float | None, hidden: Value) -> Span:
        """Return where values lay before the rule, given where they lay after it.

        ``grid`` is the grid before the rule, and ``hidden`` marks suppressed entries.
        """

    def refusal(self) -> str:
        """Describe the values that the rule can have published."""
        return "values must be finite"


@dataclass(frozen=True, repr=False)
class Rounding(Rule):
    """Rounded to multiples of a step."""

    step: float
    ties: Ties

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", finite_number(self.step, "step", above=0))
        choice(self.ties, "ties", get_args(Ties))

    def __repr__(self) -> str:
        ties = "" if self.ties == "half even" else f", ties={self.ties!r}"
        return f"rounded({self.step:g}{ties})"

    @override
    def grid(self, grid: float | None) -> float:
        if grid is not None and not _is_whole(self.step / grid):
            raise ValueError(
                f"values that are multiples of {grid:g} can't be rounded to multiples of "
                f"{self.step:g}: the step must be a multiple of {grid:g}"
            )
        return self.step

    @override
    def publish(self, value: Value) -> Value:
        steps = value / np.float64(self.step)
        module = pt if isinstance(value, Variable) else np
        match self.ties:
            case "half even":
                whole = module.round(steps)
            case "half up":
                whole = module.floor(steps + 0.5)
            case "down":
                whole = module.floor(steps)
            case "toward zero":
                whole = module.trunc(steps)
        # 3 / 10 is 0.3, but 3 * 0.1 isn't.
        inverse = 1 / self.step
        if inverse > 1 and _is_whole(inverse):
            return whole / np.float64(round(inverse))
        return whole if self.step == 1 else whole * np.float64(self.step)

    @override
    def before(self, span: Span, grid: float | None, hidden: Value) -> Span:
        if grid is not None and round(self.step / grid) == 1:
            return span
        low, high, half = span.low, span.high, self.step / 2
        # Whether an end is part of its cell, and how far away it is if so and if not, in halves.
        match self.ties:
            case "down":
                ends = (True, 0, 0), (False, 2, 2)
            case "half up":
                ends = (True, -1, -1), (False, 1, 1)
            case "half even":
                ends = (no(self._is_odd(low)), -1, -1), (no(self._is_odd(high)), 1, 1)
            case "toward zero":
                ends = (low.value > half, 0, -2), (high.value < -half, 0, 2)
        low, high = (self._moved(*each, grid) for each in zip((low, high), ends, strict=True))
        return replace(span, low=low, high=high, points=False, cells=True)

    def _moved(self, end: End, reach: tuple[Value, int, int], grid: float | None) -> End:
        """Return the end of a cell, so many halves of a step away; on a grid, the last value."""
        closed, if_closed, if_open = reach
        if grid is None:
            half = self.step / 2
            return End(end.at, end.plus + chosen(closed, if_closed * half, if_open * half), closed)
        n = round(self.step / grid)
        inside, before = abs(if_closed) * n // 2, (abs(if_open) * n + 1) // 2 - 1
        sign = float(np.sign(if_open))
        return End(end.at, end.plus + chosen(closed, sign * inside * grid, sign * before * grid))

    def _is_odd(self, end: End) -> Value:
        module = pt if isinstance(end.value, Variable) else np
        number = module.round(end.value / np.float64(self.step))
        return (number - 2 * module.floor(number / 2)) > 0.5

    def is_off(self, values: Value) -> Value:
        """Return which values aren't multiples of the step."""
        module = pt if isinstance(values, Variable) else np
        steps = values / np.float64(self.step)
        return module.abs(steps - module.round(steps)) > OFF_GRID + 2.0**-50 * module.abs(steps)

    @override
    def refusal(self) -> str:
        return f"values must be multiples of {self.step:g}, to which they were rounded"


@dataclass(frozen=True, repr=False)
class Clamping(Rule):
    """Values beyond a limit were moved to it."""

    lower: float | None
    upper: float | None

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            limit = getattr(self, name)
            if as_array(limit).ndim:
                raise TypeError(
                    f"{name} must be a number for all entries, or None for an open end; got "
                    f"{shown(limit)}. For entries with limits of their own, give each its own "
                    'mechanism, as in LaplaceMechanism(scale).clamped(0, 10).potential("first", '
                    "statistic[0], released=released[0])"
                )
            if limit is not None:
                what = f"{name} must be a number, or None for an open end: it"
                number = finite_number(limit, what)
                # Integers stay as they are, beyond 2^53, too.
                is_whole = isinstance(limit, int | np.integer)
                object.__setattr__(self, name, int(limit) if is_whole else number)
        if self.lower is None and self.upper is None:
            raise ValueError("clamped needs a limit: clamped(0, None) moves what is below 0 to 0")
        if self.lower is not None and self.upper is not None and not self.lower < self.upper:
            raise ValueError(
                f"lower must be below upper, lower < upper, got {self.lower:g} and {self.upper:g}"
            )

    def __repr__(self) -> str:
        lower, upper = ("None" if x is None else f"{x:g}" for x in (self.lower, self.upper))
        return f"clamped({lower}, {upper})"

    @override
    def grid(self, grid: float | None) -> float | None:
        for name in ("lower", "upper"):
            limit = getattr(self, name)
            if grid is None or limit is None:
                continue
            if abs(limit) > MAX_RELEASE:
                raise ValueError(
                    f"{name} must be within 2^62, got {limit:g}: use None for an open end"
                )
            if not _is_whole(limit / grid):
                raise ValueError(
                    f"{name} must be a multiple of {grid:g}, as the values are, got {limit:g}"
                )
        return grid

    @override
    def publish(self, value: Value) -> Value:
        module = pt if isinstance(value, Variable) else np
        # Integers stay integers: floats lose their last digits beyond 2^53.
        of_kind = np.int64 if np.dtype(value.dtype).kind in "iu" else np.float64
        if self.lower is not None:
            value = module.maximum(value, of_kind(self.lower))
        return value if self.upper is None else module.minimum(value, of_kind(self.upper))

    @override
    def before(self, span: Span, grid: float | None, hidden: Value) -> Span:
        below, above, never = span.below, span.above, span.never
        if self.lower is not None:
            margin = _margin(self.lower, grid)
            high_enough = one_of(span.above, span.high.at_least(self.lower, margin))
            never = one_of(never, no(high_enough))
            below = one_of(below, span.low.at_most(self.lower, margin))
        if self.upper is not None:
            margin = _margin(self.upper, grid)
            low_enough = one_of(span.below, span.low.at_most(self.upper, margin))
            never = one_of(never, no(low_enough))
            above = one_of(above, span.high.at_least(self.upper, margin))
        return replace(span, below=below, above=above, never=never)

    @override
    def refusal(self) -> str:
        ends = [
            f"{word} {limit:g}"
            for word, limit in (("from", self.lower), ("to", self.upper))
            if limit is not None
        ]
        return f"values must be {' '.join(ends)}, to which they were clamped"


@dataclass(frozen=True, repr=False)
class Threshold(Rule):
    """Values below a threshold, or not above it, were suppressed."""

    relation: Relation
    threshold: float

    def __post_init__(self) -> None:
        choice(self.relation, "relation", get_args(Relation))
        object.__setattr__(self, "threshold", finite_number(self.threshold, "threshold"))

    def __repr__(self) -> str:
        return f"published_if({self.relation!r}, {self.threshold:g})"

    @override
    def publish(self, value: Value) -> Value:
        limit = np.float64(self.threshold)
        return value >= limit if self.relation == ">=" else value > limit

    def _ends(self, grid: float | None) -> tuple[End, End]:
        """Return the largest suppressed value and the smallest published one."""
        at_limit = self.relation == ">="
        if grid is None:
            limit = np.float64(self.threshold)
            return End(limit, 0.0, not at_limit), End(limit, 0.0, at_limit)
        steps = self.threshold / grid
        on_grid = _is_whole(steps)
        first = round(steps) + (not at_limit) if on_grid else int(np.ceil(steps))
        return End(_multiple(first - 1, grid)), End(_multiple(first, grid))

    @override
    def before(self, span: Span, grid: float | None, hidden: Value) -> Span:
        last, first = self._ends(grid)
        margin = _margin(self.threshold, grid)
        high_enough = one_of(span.above, span.high.at_least(float(first.at), margin))
        if not first.closed:
            above_it = span.high.value > first.at
            high_enough = both(high_enough, one_of(span.above, above_it))
        never = one_of(span.never, no(high_enough))
        low, cells = span.low, span.cells
        # Values below the threshold weren't published.
        is_less = low.value < first.at if first.closed is True else low.value <= first.at
        if span.cells or span.below is not False:
            low, cells = low.or_else(one_of(span.below, is_less), first), True
        elif span.above is not False:
            low = low.or_else(both(span.above, is_less), first)
        # With several thresholds, an entry is suppressed if it is below one of them. Later rules
        # may suppress no value, or all.
        reaches = span.high.value <= last.at if last.closed is True else span.high.value < last.at
        higher = one_of(not span.suppressed, one_of(span.never, reaches))
        return replace(
            span,
            low=low,
            high=span.high.or_else(both(hidden, higher), last),
            below=hidden,
            above=both(span.above, one_of(no(hidden), span.suppressed)),
            never=both(never, no(hidden)),
            cells=cells,
            suppressed=True,
        )

    @override
    def refusal(self) -> str:
        return f"values are published only if {self.relation} {self.threshold:g}"


@dataclass(frozen=True, repr=False)
class Scaling(Rule):
    """Values were published in other units, such as per cent."""

    factor: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", finite_number(self.factor, "factor", above=0))

    def __repr__(self) -> str:
        return f"times({self.factor:g})"

    @override
    def grid(self, grid: float | None) -> float | None:
        return None if grid is None else grid * self.factor

    @override
    def publish(self, value: Value) -> Value:
        return value * np.float64(self.factor)

    @override
    def before(self, span: Span, grid: float | None, hidden: Value) -> Span:
        low = span.low.over(self.factor)
        high = low if span.high is span.low else span.high.over(self.factor)
        if low is not high and span.high.at is span.low.at:
            high = replace(high, at=low.at)
        return replace(span, low=low, high=high)


@dataclass(frozen=True, repr=False, eq=False)
class Ranges(Rule):
    """The number of a value's range was published."""

    edges: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", increasing(self.edges, "edges"))

    def __repr__(self) -> str:
        return f"in_ranges([{', '.join(f'{x:g}' for x in self.edges)}])"

    @override
    def grid(self, grid: float | None) -> float:
        return 1.0

    @override
    def publish(self, value: Value) -> Value:
        if not isinstance(value, Variable):
            return np.searchsorted(self.edges, value, side="right")
        return sum(pt.ge(value, np.float64(edge)).astype("int64") for edge in self.edges)

    @override
    def before(self, span: Span, grid: float | None, hidden: Value) -> Span:
        number, k = span.low.at, len(self.edges)
        first = np.concatenate([self.edges[:1], self.edges])
        last = np.concatenate([self.edges, self.edges[-1:]])
        if grid is not None:
            first, last = (grid * np.ceil(x / grid - OFF_GRID) for x in (first, last))
            last = last - grid
        module = pt if isinstance(number, Variable) else np
        index = module.clip(number, 0, k).astype("int64")
        lows, highs = ((pt.constant(x)[index] if module is pt else x[index]) for x in (first, last))
        return replace(
            span,
            low=End(lows),
            high=End(highs, 0.0, grid is not None),
            below=number < 0.5,
            above=number > k - 0.5,
            never=one_of(span.never, (number < 0) | (number > k)),
            points=False,
            cells=k > 1,
        )

    @override
    def refusal(self) -> str:
        return f"ranges have the numbers 0 to {len(self.edges)}"


def _is_whole(number: float) -> bool:
    return abs(number - round(number)) <= OFF_GRID


def _multiple(k: int, grid: float) -> Any:
    return np.int64(k * round(grid)) if float(grid).is_integer() else np.float64(k * grid)


def _margin(limit: float, grid: float | None) -> float:
    """How far a value may be from a limit and still equal it in floating point."""
    return 1e-12 * abs(limit) if grid is None else grid / 4


@dataclass(frozen=True)
class Publication:
    """Rules in the order in which they were applied to noisy values."""

    start: float | None
    """Grid of the noisy values: 1 for whole numbers, None for real ones."""
    rules: tuple[Rule, ...] = ()
    nonempty: bool = False
    """Whether entries exist only where the statistic is above zero."""

    def then(self, rule: Rule) -> "Publication":
        """Add a rule.

        Raises
        ------
        ValueError
            If the rule can't follow the rules before.
        """
        if self.rules and isinstance(self.rules[-1], Ranges):
            raise ValueError(f"in_ranges must be the last rule: {rule!r} can't follow it")
        rule.grid(self.grid)
        return replace(self, rules=(*self.rules, rule))

    def of_nonempty(self) -> "Publication":
        """Add the rule that entries exist only where the statistic is above zero.

        Raises
        ------
        ValueError
            If there are rules already: rows are chosen before there is noise.
        """
        if self.rules or self.nonempty:
            raise ValueError("say nonempty() first, and once: rows are chosen before the noise")
        return replace(self, nonempty=True)

    def __repr__(self) -> str:
        rules = [repr(rule) for rule in self.rules]
        return "".join(f".{rule}" for rule in ["nonempty()"] * self.nonempty + rules)

    @property
    def grids(self) -> list[float | None]:
        """Grid of the values before each rule, and after the last."""
        grids = [self.start]
        for rule in self.rules:
            grids.append(rule.grid(grids[-1]))
        return grids

    @property
    def grid(self) -> float | None:
        """Grid of the published values."""
        return self.grids[-1]

    @property
    def suppresses(self) -> bool:
        """Whether entries may be suppressed."""
        return self.nonempty or any(isinstance(rule, Threshold) for rule in self.rules)

    @property
    def factor(self) -> float:
        """Published units for each unit of the noisy values."""
        factors = [rule.factor for rule in self.rules if isinstance(rule, Scaling)]
        return float(np.prod(factors))

    def publish(self, noisy: Value, statistic: Value) -> Value:
        """Apply all rules to noisy values; entries that aren't published become SUPPRESSED."""
        hidden: Value = no(statistic > 0) if self.nonempty else False
        for rule in self.rules:
            if isinstance(rule, Threshold):
                hidden = one_of(hidden, no(rule.publish(noisy)))
            else:
                noisy = rule.publish(noisy)
        return either(hidden, SUPPRESSED, noisy)

    def span(self, released: Value) -> Span:
        """Return where noisy values lay, given the published ones."""
        return self._back(released, lambda rule, span, grid, hidden: None)

    def check(self, name: str, released: np.ndarray) -> None:
        """Check that these rules can have led to the published values.

        Raises
        ------
        ValueError
            If they can't; the message names the rule.
        """
        # A single hidden count says that few were there, beside other releases.
        if self.suppresses and released.size > 1 and np.all(np.isneginf(released)):
            raise ValueError(
                f"'{name}': all {released.size} entries are suppressed, so there is nothing to "
                "fit a model to"
            )

        def look(rule: Rule, span: Span, grid: float | None, hidden: Value) -> None:
            # The span of a suppressed entry is known only after all thresholds.
            wrong = both(span.never, no(hidden))
            if isinstance(rule, Rounding) and span.points:
                wrong = one_of(wrong, both(rule.is_off(span.low.at), no(hidden)))
            refuse(name, wrong, released, rule.refusal())

        span = self._back(released, look)
        never = both(span.never, self.hidden(released))
        if not self.nonempty:
            rule = f"'{name}': entries are suppressed that these rules, {self!r}, never suppress"
            nowhere(np.broadcast_to(never, released.shape), rule)

    def _back(self, released: Value, look: Any) -> Span:
        hidden = self.hidden(released)
        at = either(hidden, np.float64(0), released)
        if not isinstance(hidden, bool) and all(
            grid is not None and float(grid).is_integer() for grid in self.grids
        ):
            at = at.astype("int64")
        end = End(at)
        span = Span(end, end)
        for rule, grid in zip(reversed(self.rules), reversed(self.grids[:-1]), strict=True):
            if isinstance(rule, Rounding) and span.points:
                look(rule, span, grid, hidden)
                if isinstance(at, Variable) and (rule.step != 1 or at.dtype.startswith("float")):
                    off = both(rule.is_off(span.low.at), no(hidden))
                    span = replace(span, never=one_of(span.never, off))
            span = rule.before(span, grid, hidden)
            look(rule, span, grid, hidden)
        if self.nonempty and not span.suppressed:
            # Without a threshold, every existing entry is published.
            span = replace(span, never=one_of(span.never, hidden))
        return span

    def hidden(self, released: Value) -> Value:
        """Return which entries were suppressed."""
        if not self.suppresses:
            return False
        # The largest negative number: compiled code may lose infinities.
        lowest = np.finfo(np.float64).min
        return released < lowest
