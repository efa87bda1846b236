"""Counts that an office publishes as other counts, at random: rounded, or changed by a table."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, override

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.graph import Variable
from pytensor.raise_op import Assert
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.checks import nowhere, places
from pymc_dapper.mechanisms.count_law import CountLaw
from pymc_dapper.mechanisms.published import PublishedByRules
from pymc_dapper.mechanisms.rules import Publication
from pymc_dapper.mechanisms.spans import Span, both, either, no, one_of
from pymc_dapper.mechanisms.whole import refuse_fractions

LARGEST = 2**53
"""Counts up to this one are exact in double precision."""

FEW = 8
"""Messages show up to this number of values."""


@dataclass(frozen=True, eq=False, repr=False)
class PerturbedCounts(PublishedByRules):
    """Each cell of a table of counts is published by a law P(published | true count).

    Cells are independent of each other, given the true counts. There is no privacy budget.
    """

    changes_again: ClassVar[bool] = False
    """Whether a cell gets the same change in each publication."""

    _also_shown = ("no privacy budget",)

    law: CountLaw = field(init=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        name = type(self).__name__
        if self.budget is not None:
            raise ValueError(f"{name} keeps no privacy budget: leave budget out")
        object.__setattr__(self, "publication", Publication(1.0))
        object.__setattr__(self, "law", self._read_law())
        for each in fields(self):
            value = getattr(self, each.name)
            if each.init and isinstance(value, Sequence):
                object.__setattr__(self, each.name, np.asarray(value))

    def _read_law(self) -> CountLaw:
        """Make the law of the fields."""
        raise NotImplementedError

    @override
    def _shown(self) -> dict[str, str]:
        shown = super()._shown()
        for name in shown:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                few = value.size <= FEW
                shown[name] = f"{value.tolist()}" if few else f"<array of shape {value.shape}>"
        return shown

    def _released_shape(self, name: str, statistic: TensorVariable) -> tuple[int | None, ...]:
        refuse_fractions(statistic, f"'{name}': {type(self).__name__} publishes counts")
        return super()._released_shape(name, statistic)

    def _log_published(
        self, released: TensorVariable, span: Span, statistic: TensorVariable
    ) -> TensorVariable:
        # True counts that are negative, fractional or beyond the law are impossible, too.
        count, whole = _as_counts(statistic)
        logp = self._log_of_span(span, count)
        impossible = one_of(span.never, no(whole))
        if not self.publication.rules and released.dtype.startswith("float"):
            is_fraction = pt.neq(released, pt.round(released))
            of_fraction = both(is_fraction, no(self.publication.hidden(released)))
            impossible = one_of(impossible, of_fraction)
        return either(impossible, -np.inf, logp)

    def _log_of_span(self, span: Span, count: Any) -> Any:
        """Log-probability that a value lies in a span, given the true count."""
        low, high = _whole(span.low.value), _whole(span.high.value)
        tails = one_of(span.below, span.above)
        if not span.cells and tails is False:
            return self.law.log_at(low, count)
        cells = self.law.log_between(low, high, span.below, span.above, count)
        if not span.points:
            return cells
        known = both(no(tails), low >= high if span.cells else True)
        return either(known, self.law.log_at(low, count), cells)

    def check_released(self, name: str, released: np.ndarray) -> None:
        """Check that the law and the rules can give a release: else a ValueError.

        Suppressed entries are minus infinity.
        """
        super().check_released(name, released)
        released = np.asarray(released)
        _, _, wrong, beyond = self._behind(released)
        if wrong.any():
            value = released[wrong > 0].min()
            shown = "a suppressed entry" if np.isneginf(value) else f"{value:.10g}"
            raise ValueError(
                f"'{name}': {shown} was released, which {self!r} gives for no true count: "
                f"{places(wrong)}"
            )
        if beyond.any():
            raise ValueError(
                f"'{name}': {released[beyond > 0].min():.10g} was released, which can have come "
                f"from true counts above {self.law.last}, the largest with probabilities in "
                f"{type(self).__name__}: {places(beyond)}. Give those of larger counts, or say by "
                "repeats= which rows they use"
            )

    def count_range(self, released: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest true count that may have led to each released value.

        Some counts between them may be impossible. Float64; infinite if counts have no upper end.
        Suppressed entries are minus infinity.
        """
        low, high, _, _ = self._behind(released)
        return low, high

    def _behind(self, released: np.ndarray) -> np.ndarray:
        """Return what `_behind_one` does of each value, along a first axis."""
        distinct, inverse = np.unique(released, return_inverse=True)
        found = np.array([self._behind_one(value) for value in distinct], dtype=float)
        return np.moveaxis(found.reshape(-1, 4)[inverse.reshape(np.shape(released))], -1, 0)

    def _behind_one(self, released: float) -> tuple[float, float, bool, bool]:
        """Return the range of true counts that may have led to a released value.

        Also, whether none gives it after all, and whether counts beyond the law may give it.
        """
        law, span = self.law, self.publication.span(np.array([released]))
        of_empty = self.publication.nonempty and np.isneginf(released)
        if of_empty and not span.suppressed:
            return 0.0, 0.0, False, False
        ends = _ends(span)
        counts = law.counts_behind(*ends)
        low, none = (0, 0) if of_empty else (counts.min(initial=LARGEST), -1)
        below, above = (bool(np.isinf(end)) for end in ends)
        high = np.inf if above and law.repeats is not None else counts.max(initial=none)
        counts = counts[counts > 0] if self.publication.nonempty else counts
        first, last = (np.full(counts.shape, 0 if np.isinf(end) else int(end)) for end in ends)
        log_p = law.log_between(first, last, below, above, counts)
        by_none = not (of_empty or np.any(np.isfinite(log_p)))
        return float(low), float(high), by_none, law.may_be_beyond(ends[1])

    def _random(self, statistic: TensorVariable, size: Any) -> TensorVariable:
        count, whole = _as_counts(statistic)
        shape = count.shape if rv_size_is_none(size) else size
        rows = pt.clip(self.law.row(count), 0, self.law.last)
        p = pt.constant(self.law.probabilities)[pt.broadcast_to(rows, shape)]
        noisy = pm.Categorical.dist(p=p) + self.law.first
        noisy = noisy + count if self.law.relative else noisy
        message = f"{type(self).__name__}: true counts must be whole numbers that it has a law for"
        noisy = Assert(message)(noisy, pt.all(both(whole, self.law.has(count))))
        released = self.publication.publish(noisy, statistic)
        whole_release = self.integer and not self.suppresses
        return released.astype("int64") if whole_release else released

    def _draw(self, statistic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        count = np.asarray(np.round(statistic)).astype(np.int64)
        known = (count == statistic) & self.law.has(count) & (np.abs(statistic) <= LARGEST)
        largest = "" if self.law.repeats is not None else f" up to {self.law.last}"
        rule = f"must hold true counts: whole numbers from 0{largest}"
        nowhere(~known, f"the statistic of {type(self).__name__} {rule}")
        released = self.publication.publish(self.law.draw(count, rng), statistic)
        return self._as_drawn(released)


def _as_counts(statistic: TensorVariable) -> tuple[TensorVariable, Any]:
    """Convert a statistic to integers, and return where it is whole."""
    if not statistic.dtype.startswith("float"):
        return statistic.astype("int64"), True
    whole = pt.eq(statistic, pt.floor(statistic)) & (pt.abs(statistic) <= float(LARGEST))
    return pt.floor(pt.clip(statistic, -1.0, float(LARGEST))).astype("int64"), whole


def _whole(value: Any) -> Any:
    if not isinstance(value, Variable):
        return np.round(value).astype(np.int64)
    return value if value.dtype.startswith("int") else pt.round(value).astype("int64")


def _ends(span: Span) -> tuple[float, float]:
    """Return the ends of the span of one value; infinite if it is open."""
    low, high = (float(_whole(np.asarray(end.value).flat[0])) for end in (span.low, span.high))
    return -np.inf if np.any(span.below) else low, np.inf if np.any(span.above) else high
