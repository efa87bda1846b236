"""Find records that can have led to the released values, if few can."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable
from scipy import sparse

from pymc_dapper.graphs.evaluation import choose_rows, compile_in_python
from pymc_dapper.graphs.nearest_counts import nearest_counts
from pymc_dapper.graphs.terms.equations import KnownTotals
from pymc_dapper.graphs.terms.of_sums import Terms, terms_of
from pymc_dapper.graphs.terms.ranges import PossibleRanges
from pymc_dapper.graphs.terms.roles import Mixed, Reduced
from pymc_dapper.graphs.terms.walk import CountWalk, as_terms
from pymc_dapper.records.compiled.sweep import contributions
from pymc_dapper.records.reading.contributions import side_by_side
from pymc_dapper.records.reading.exchanges import ByShift, Exchange
from pymc_dapper.records.reading.model import ModelReading
from pymc_dapper.records.reading.possible import bounds_of_record
from pymc_dapper.records.reading.rows_by_cell import rows_by_value, value_index

SWEEPS = 300
"""Number of proposals for each record; each that brings the sums nearer is accepted."""

SMALLEST, LARGEST = -4.0, 20.0
"""The lengths of steps lie between these powers of two, with the longest last."""

MANY = 0.3
"""Steps become longer if more than this share of them brings sums nearer, or if none does."""

MOST_LOOKED_AT = 10_000
"""Number of records with proposals in a sweep; they are decided on one by one, in Python."""

MOST_ENTRIES = 50_000_000
"""Contributions with more entries aren't kept in memory."""


class RecordStart:
    """Changes a small number of records so that the released values become possible.

    The targets are sums over records: known sums, and sums in a term of the log-density, which must
    lie in the range where the term is finite.
    """

    def __init__(self, reading: ModelReading, exchange: Exchange | None = None):
        self._reading, self._exchange = reading, exchange
        records = reading.records
        terms, whole = _terms(reading)
        self._sums = [next(iter(each.linear.values())) for each in terms]
        self._ranges = PossibleRanges(reading.model, list(reading.parameters), terms, whole)
        rows = contributions(reading.sums) if reading.additive_factors else pt.zeros((1, 0))
        self._n_sums = rows.type.shape[1]
        known = KnownTotals.of([], self._n_sums) if exchange is None else exchange.known
        self._tolerances = known.tolerances
        equations = sparse.csr_array(known.matrix.toarray())
        self._matrix = sparse.vstack([equations, *self._sums], format="csr")
        self._known = known.in_python(reading.model, reading.parameters)
        self._total = reading.in_python([rows.sum(axis=0)])
        self._propose = reading.proposing_in_python()
        self._rows = reading.in_python([rows])
        self._log_prior = reading.in_python([pt.add(pt.zeros(()), *reading.log_priors)])
        self._has_prior = len(reading.log_priors) == len(records)
        self._highest = [bounds_of_record(rv).high for rv in reading.rvs]
        self._values = None
        if self._has_prior and reading.possible_values is not None:
            table = _at_values(reading, reading.possible_values)
            if table is not None:
                self._values = _OfValues(reading, reading.possible_values, table)
        if isinstance(exchange, ByShift):
            naturals = exchange.space.naturals(records)
            shifts = [x.type.clone(dtype="float64")() for x in naturals]
            pairs = zip(naturals, shifts, strict=True)
            moved = exchange.space.to_records([(x + by).astype(x.dtype) for x, by in pairs])
            log_prior = exchange.space.log_prior(moved)
            self._shift = reading.in_python([*moved, log_prior], shifts)

    def __call__(
        self,
        rng: np.random.Generator,
        records: Sequence[np.ndarray],
        parameters: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        """Return records that make the released values possible, or nearly so."""
        self._rng, self._parameters = rng, parameters  # of this search
        records = [x.copy() for x in records]
        # First move into the range, then out of gaps: the nearest values may not be jointly
        # possible.
        aim, has_gaps = self._aim(records, with_gaps=True), True
        if not len(aim.low) or self._reading.n_records * self._n_sums > MOST_ENTRIES:
            return records
        if self._values is not None:
            near = self._values(rng, self._matrix, aim, records, parameters) or records
            aim_near = self._aim(near)
            found = self._values(rng, self._matrix, aim_near, near, parameters)
            if found is not None:
                return found
        scale, longest = self._scale(records), 0.0
        for sweep in range(SWEEPS):
            at = self._matrix @ self._total(*records, *parameters)[0]
            if has_gaps and aim.is_reached(at):
                aim, has_gaps = self._aim(records), False
            if aim.is_reached(at):
                break
            if sweep % 2 == 0 or not self._has_prior:
                records = self._nearer(aim, at, scale, records, self._anew(records))
            else:
                proposed = self._stepped(records, longest)
                stepped = self._nearer(aim, at, scale, records, proposed)
                if np.isfinite(self._log_prior(*stepped, *parameters)[0]):
                    share = _share_of_changed(stepped, records)
                    records = stepped
                    longest += 0.0 if 0 < share < MANY else 1.0
                else:
                    longest += 1.0
                longest = longest if longest <= LARGEST else SMALLEST
            if isinstance(self._exchange, ByShift):
                n = len(self._tolerances)
                at = (self._matrix @ self._total(*records, *parameters)[0])[:n]
                missing = at - aim.low[:n]
                if not aim.of_first(n).is_reached(at):
                    self._shift_some(self._exchange, missing, records)
        return records

    def _aim(self, records: Sequence[np.ndarray], *, with_gaps: bool = False) -> "_Aim":
        """Find the targets of the sums."""
        [total] = self._total(*records, *self._parameters)
        known = self._known(self._parameters)
        find = self._ranges.with_gaps if with_gaps else self._ranges
        found = find(self._parameters, [matrix @ total for matrix in self._sums])
        low = np.concatenate([known, *(np.where(x.known, x.low, -np.inf) for x in found)])
        high = np.concatenate([known, *(np.where(x.known, x.high, np.inf) for x in found)])
        beyond = np.concatenate([self._tolerances, np.zeros(len(low) - len(known))])
        return _Aim(low, high, beyond)

    def _anew(self, records: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Draw records from their prior; records without a valid proposal stay."""
        proposals, possible = self._propose(self._rng, records, self._parameters)
        for x in proposals:
            possible = possible & np.all(np.isfinite(x.reshape(len(x), -1)), axis=1)
        return choose_rows(possible, proposals, records)

    def _stepped(self, records: Sequence[np.ndarray], longest: float) -> list[np.ndarray]:
        """Move records by steps from their present values; whole numbers stay at possible ones."""
        moved, rng = [], self._rng
        for x, highest in zip(records, self._highest, strict=True):
            length = 2.0 ** rng.uniform(longest - 2.0, longest, x.shape)
            step = length * rng.standard_normal(x.shape)
            whole = np.clip(x + np.round(step), 0, highest).astype(x.dtype)
            moved.append(x + step if x.dtype.kind == "f" else whole)
        return moved

    def _change(self, records: Sequence[np.ndarray], proposed: Sequence[np.ndarray]) -> np.ndarray:
        """Return each record's change of the sums, with a column for each sum."""
        with np.errstate(all="ignore"):
            before, after = (self._rows(*x, *self._parameters)[0] for x in (records, proposed))
            return (after - before) @ self._matrix.T

    def _scale(self, records: Sequence[np.ndarray]) -> np.ndarray:
        """Return the typical change of each sum by a record; 1 if no record changes it."""
        size = np.abs(self._change(records, self._anew(records)))
        size[~np.isfinite(size) | (size == 0)] = np.nan
        moved = np.isfinite(size).any(axis=0)
        scale = np.ones(size.shape[1])
        if moved.any():
            scale[moved] = np.nanmedian(size[:, moved], axis=0)
        return scale

    def _nearer(
        self,
        aim: "_Aim",
        at: np.ndarray,
        scale: np.ndarray,
        records: Sequence[np.ndarray],
        proposed: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        """Accept proposals that bring the sums nearer, one by one."""
        change = self._change(records, proposed)
        useful = np.all(np.isfinite(change), axis=1) & np.any(change != 0, axis=1)
        distance, taken = aim.distance(at, scale), np.zeros(len(change), dtype=bool)
        for i in self._rng.permutation(np.flatnonzero(useful))[:MOST_LOOKED_AT]:
            nearer = aim.distance(at + change[i], scale)
            if nearer < distance:
                at, distance, taken[i] = at + change[i], nearer, True
                if distance == 0:
                    break
        return choose_rows(taken, proposed, records)

    def _shift_some(
        self, exchange: ByShift, missing: np.ndarray, records: list[np.ndarray]
    ) -> None:
        """Shift one record of each group by all that its total lacks, if possible."""
        order = self._rng.permutation(len(exchange.groups))
        groups, first = np.unique(exchange.groups[order], return_index=True)
        chosen = order[first[groups >= 0]]
        slopes = exchange.slopes * exchange.scales[chosen][:, None, None]
        n_entries = slopes.shape[1]
        flat = slopes.reshape(-1, slopes.shape[-1])
        needed = np.linalg.lstsq(flat.T, -missing, rcond=None)[0].reshape(-1, n_entries)
        shifts, ends = [], np.cumsum([shifted.sum() for shifted in exchange.shifted])
        parts = np.split(needed, ends[:-1], axis=1)
        for x, shifted, part in zip(records, exchange.shifted, parts, strict=True):
            shift = np.zeros((len(x), *shifted.shape))
            block = np.zeros((len(chosen), *shifted.shape))
            block[:, shifted] = part
            shift[chosen] = block if x.dtype.kind == "f" else np.round(block)
            shifts.append(shift)
        *moved, log_prior = self._shift(*shifts, *records, *self._parameters)
        if all(np.all(np.isfinite(x[chosen])) for x in (*moved, log_prior)):
            for x, new in zip(records, moved, strict=True):
                x[chosen] = new[chosen]


class _Aim:
    """Targets of linear functions of sums: a range for each, with a tolerance."""

    def __init__(self, low: np.ndarray, high: np.ndarray, tolerances: np.ndarray):
        self.low, self.high, self.tolerances = low, high, tolerances

    def of_first(self, n: int) -> "_Aim":
        return _Aim(self.low[:n], self.high[:n], self.tolerances[:n])

    def _missing(self, at: np.ndarray) -> np.ndarray:
        return np.maximum(np.maximum(self.low - at, at - self.high), 0.0)

    def is_reached(self, at: np.ndarray) -> bool:
        missing, within = self._missing(at), self.tolerances
        return bool(np.all(np.where(within > 0, missing < within, missing == 0)))

    def distance(self, at: np.ndarray, scale: np.ndarray) -> float:
        """Return the distance of the functions from their targets; zero if all are reached."""
        if self.is_reached(at):
            return 0.0
        return float(((self._missing(at) / scale) ** 2).sum())


class _OfValues:
    """Records with few values and equal contributions: only the number at each value matters."""

    def __init__(self, reading: ModelReading, values: np.ndarray, table: TensorVariable):
        self._values = values
        self._table = compile_in_python(reading.model, list(reading.parameters), [table])
        index = value_index(reading.records, self._values)
        self._index = compile_in_python(reading.model, list(reading.records), [index])
        separable = [x.log_densities.sum() for x in reading.separable_factors]
        log_density = pt.add(pt.zeros(()), *reading.log_priors, *separable)
        self._log_density = reading.in_python([log_density])

    def __call__(
        self,
        rng: np.random.Generator,
        matrix: sparse.csr_array,
        aim: _Aim,
        records: Sequence[np.ndarray],
        parameters: Sequence[np.ndarray],
    ) -> list[np.ndarray] | None:
        """Give new values to as few records as possible; None if there is no solution."""
        [table], [index] = self._table(*parameters), self._index(*records)
        k = len(self._values)
        if np.any(index >= k) or not np.all(np.isfinite(table)):
            return None
        counts = np.bincount(index, minlength=k)
        functions = sparse.csr_array(np.vstack([matrix @ table.T, np.ones(k)]))
        low, high = (np.append(x, len(index)) for x in (aim.low, aim.high))
        wanted = nearest_counts(functions, (low, high), counts)
        if wanted is None:
            return None
        index = index.astype(np.int64)
        free = [rng.permutation(np.flatnonzero(index == v))[wanted[v] :] for v in range(k)]
        more = np.maximum(wanted - counts, 0)
        index[np.concatenate(free)] = rng.permutation(np.repeat(np.arange(k), more))
        columns = zip(records, self._values.T, strict=True)
        found = [column[index].astype(x.dtype).reshape(x.shape) for x, column in columns]
        [log_density] = self._log_density(*found, *parameters)
        return found if np.isfinite(log_density) else None


def _at_values(reading: ModelReading, values: np.ndarray) -> TensorVariable | None:
    """Contributions at each value, shape (k, d), if equal records contribute equally."""
    found = [rows_by_value(each.contributions, reading.records, values) for each in reading.sums]
    rows = [x for x in found if x is not None]
    return side_by_side(rows) if rows and len(rows) == len(found) else None


def _terms(reading: ModelReading) -> tuple[list[Terms], list[bool]]:
    """Split additive factors into terms of one sum each, and say which sums are whole numbers."""
    totals: list[TensorVariable] = [sum_.total for sum_ in reading.sums]
    found: list[Terms] = []
    if any(None in total.type.shape for total in totals):
        return [], []
    walk = CountWalk(totals, {})
    for factor in reading.additive_factors:
        role = walk.follow(factor.log_density)
        if isinstance(role, Mixed) or (isinstance(role, Reduced) and role.by != "add"):
            continue
        terms = (terms_of(factor.name, x) for x in as_terms(role, walk, factor.log_density))
        found += [each for each in terms if len(each.linear) == 1]
    kinds = [np.dtype(x.dtype).kind in "iub" for x in totals]
    is_whole = np.repeat(kinds, [int(np.prod(x.type.shape)) for x in totals])
    whole = [bool(np.all(is_whole[next(iter(x.linear.values())).indices])) for x in found]
    return found, whole


def _share_of_changed(new: Sequence[np.ndarray], old: Sequence[np.ndarray]) -> float:
    """Return the share of records that changed."""
    differ = [(a != b).reshape(len(a), -1).any(axis=1) for a, b in zip(new, old, strict=True)]
    return float(np.any(differ, axis=0).mean())
