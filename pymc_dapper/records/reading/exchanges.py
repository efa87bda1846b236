"""Exchanges between two records that keep the known sums over records.

If a total is known, no record can change alone, but two can: the first gets a new proposal, and the
second takes the rest. The second's move depends on the records:

- with few values, it draws one of those that keep the totals, by their probabilities;
- if totals are linear in the records, it is shifted by what the first has lost;
- otherwise both swap their values.

Pairs are chosen without looking at the records' values. `exchange_groups` finds which records may
exchange, and whether that reaches all possible states.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.noise import chosen_by
from pymc_dapper.graphs.prior import all_entries, as_rows, choose
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.terms.equations import KnownTotals
from pymc_dapper.records.reading.finite import FiniteLaw
from pymc_dapper.records.reading.rows_by_cell import value_index


class Proposed(NamedTuple):
    """The effect of an exchange."""

    records: list[TensorVariable]
    """All records, if all exchanges are made."""
    log_present: TensorVariable
    log_proposed: TensorVariable
    """Shape (number of pairs,): subtracted from and added to the logarithm of each exchange's
    acceptance ratio, beside the change of other factors. Minus infinity if the exchange is
    impossible."""


@dataclass(frozen=True)
class Exchange(ABC):
    """How records exchange their contributions to known totals."""

    known: KnownTotals
    groups: np.ndarray
    """Ints, shape (n,): the group in which each record exchanges; -1 if in none."""
    _rule: ClassVar[tuple[str, ...]] = ("groups",)
    """Arrays that say which pairs there are, and what they exchange."""

    @property
    def n_pairs(self) -> int:
        """Number of pairs in a sweep: in each group, all records but an odd one."""
        sizes = np.bincount(self.groups[self.groups >= 0])
        return int((sizes // 2).sum())

    def pairs_as(self, other: "Exchange") -> bool:
        """Whether another exchange has the same groups and the same rule."""
        same = (np.array_equal(getattr(self, x), getattr(other, x)) for x in self._rule)
        return type(self) is type(other) and all(same)

    def draw_pairs(self, rng: np.random.Generator) -> np.ndarray:
        """Draw pairs: returns all records, the pairs first, side by side, then the others."""
        order = rng.permutation(len(self.groups))
        groups = self.groups[order]
        if groups.min() != groups.max():
            by_group = np.argsort(groups, kind="stable")
            order, groups = order[by_group], groups[by_group]
        starts = np.flatnonzero(np.diff(groups, prepend=-2))
        sizes = np.diff(starts, append=len(groups))
        place = np.arange(len(groups)) - np.repeat(starts, sizes)
        pairs = (groups >= 0) & (place < np.repeat(sizes // 2 * 2, sizes))
        return np.concatenate([order[pairs], order[~pairs]])

    @abstractmethod
    def propose(
        self,
        records: Sequence[TensorVariable],
        proposals: Sequence[TensorVariable],
        first: TensorVariable,
        second: TensorVariable,
        u: TensorVariable,
    ) -> Proposed:
        """Build the graph of the proposals for pairs of records.

        ``proposals`` are a draw of all records from their usual proposal; ``first``, ``second`` and
        ``u``, uniform numbers, have an entry for each pair.
        """


@dataclass(frozen=True)
class ByValue(Exchange):
    """Records with few values: the second draws one of those that keep the totals."""

    law: FiniteLaw
    """The law that proposes the records."""
    pair_sums: np.ndarray
    """Ints, shape (number of kinds, k, k): the joint contribution of two records with values a and
    b, as a number; equal contributions have the same number."""
    kinds: np.ndarray
    """Ints, shape (n,): the kind of each record."""
    _rule = ("groups", "pair_sums", "kinds")

    def propose(self, records, proposals, first, second, u):  # type: ignore[no-untyped-def]
        """Build the graph of the proposals."""
        n, k = len(self.groups), len(self.law.values)
        kind = pt.constant(self.kinds)[first]
        sums = pt.constant(self.pair_sums)

        def values_of(arrays: Sequence[TensorVariable]) -> TensorVariable:
            return pt.minimum(value_index(arrays, self.law.values).astype("int64"), k - 1)

        present, proposed = values_of(records), values_of(proposals)
        of_first, of_second, new = present[first], present[second], proposed[first]
        together = sums[kind, of_first, of_second]
        weights = [pt.broadcast_to(weight, (n,))[second] for weight in self.law.weights]

        def that_keep(value: TensorVariable) -> list[TensorVariable]:
            """Return weights of the second's values: zero for those that don't keep the totals."""
            return [
                pt.switch(pt.eq(sums[kind, value, pt.full_like(value, b)], together), weight, 0.0)
                for b, weight in enumerate(weights)
            ]

        of_first_new = [
            pt.switch(pt.eq(new, b), pt.broadcast_to(weight, (n,))[first], 0.0)
            for b, weight in enumerate(self.law.weights)
        ]
        # Draws with invalid parameters have no weight.
        allowed = pt.gt(pt.add(*of_first_new), 0.0)
        keeping = [pt.switch(allowed, weight, 0.0) for weight in that_keep(new)]
        chosen = chosen_by(u, keeping)
        log_proposed = pt.log(pt.add(*keeping))
        log_present = pt.log(pt.add(*that_keep(of_first)))
        # If no value keeps the totals, both stay.
        possible = pt.isfinite(log_proposed)
        values = pt.set_subtensor(present[first], pt.switch(possible, new, of_first))
        values = pt.set_subtensor(values[second], pt.switch(possible, chosen, of_second))
        return Proposed(self.law.at(values, records), log_present, log_proposed)


@dataclass(frozen=True)
class NaturalSpace:
    """Records in the space of their prior; PyMC may keep them transformed."""

    records: tuple[TensorVariable, ...]
    """Variables for the records."""
    of_records: tuple[TensorVariable, ...]
    """The records in the prior's space, as functions of these."""
    values: tuple[TensorVariable, ...]
    """Variables for values in the prior's space."""
    as_records: tuple[TensorVariable, ...]
    """The records as functions of these; nan if there is no such record."""
    log_densities: TensorVariable
    """Shape (n,): the log-density of each record in the prior's space, given ``records``."""

    def naturals(self, records: Sequence[TensorVariable]) -> list[TensorVariable]:
        """Convert records to the space of their prior."""
        return rebuild(self.of_records, dict(zip(self.records, records, strict=True)))

    def to_records(self, naturals: Sequence[TensorVariable]) -> list[TensorVariable]:
        """Convert values in that space back to records."""
        return rebuild(self.as_records, dict(zip(self.values, naturals, strict=True)))

    def log_prior(self, records: Sequence[TensorVariable]) -> TensorVariable:
        """Return the log-density of each record."""
        at = dict(zip(self.records, records, strict=True))
        return rebuild([self.log_densities], at)[0].astype("float64")


@dataclass(frozen=True)
class _OfAnyRecords(Exchange):
    """Exchanges in the space of the records' prior."""

    space: NaturalSpace

    def _proposed(
        self,
        records: Sequence[TensorVariable],
        changed: Sequence[TensorVariable],
        first: TensorVariable,
        second: TensorVariable,
        deciding: Sequence[TensorVariable],
    ) -> Proposed:
        """Return the log-weights of the change; if it is impossible, both records stay.

        Other factors could read outside of a table at impossible values.
        """
        present, proposed = (self.space.log_prior(x) for x in (records, changed))
        possible = pt.isfinite(proposed)
        for x in changed:
            possible = possible & all_entries(pt.isfinite(x))
        together = possible[first] & possible[second]
        goes = pt.set_subtensor(pt.zeros_like(possible)[first], together)
        goes = pt.set_subtensor(goes[second], together)
        after = choose(goes, changed, records)
        log_present = pt.add(*(present[of] for of in deciding))
        log_proposed = pt.add(*(proposed[of] for of in deciding))
        return Proposed(after, log_present, pt.switch(together, log_proposed, -np.inf))


@dataclass(frozen=True)
class ByShift(_OfAnyRecords):
    """For totals that are linear in the records: the second is shifted by the first's loss."""

    shifted: tuple[np.ndarray, ...]
    """Bool: which entries of a record of each variable are shifted."""
    scales: np.ndarray
    """Shape (n,): each record's factor in the totals, relative to its group."""
    slopes: np.ndarray
    """Shape (number of groups, number of shifted entries, m): each entry's factor in each total,
    without the record's own factor."""
    _rule = ("groups", "scales")

    def propose(self, records, proposals, first, second, u):  # type: ignore[no-untyped-def]
        """Build the graph of the proposals."""
        scales = pt.constant(self.scales)
        ratio = scales[first] / scales[second]
        naturals, drawn = self.space.naturals(records), self.space.naturals(proposals)
        changed = []
        for x, new, shifted in zip(naturals, drawn, self.shifted, strict=True):
            lost = (x[first] - new[first]) * as_rows(ratio, x)
            shift = pt.switch(pt.constant(shifted), lost, 0.0).astype(x.dtype)
            x = pt.set_subtensor(x[second], x[second] + shift)
            changed.append(pt.set_subtensor(x[first], new[first]))
        # The first is drawn from its prior, which cancels.
        return self._proposed(records, self.space.to_records(changed), first, second, [second])


@dataclass(frozen=True)
class BySwap(_OfAnyRecords):
    """For any records: both swap their values."""

    def propose(self, records, proposals, first, second, u):  # type: ignore[no-untyped-def]
        """Build the graph of the proposals."""
        changed = []
        for x in self.space.naturals(records):
            swapped = pt.set_subtensor(x[first], x[second])
            changed.append(pt.set_subtensor(swapped[second], x[first]))
        at = self.space.to_records(changed)
        return self._proposed(records, at, first, second, [first, second])
