"""Find which records exchange, and how, from their contributions to known totals.

Exchanges of pairs are enough within a group of records that contribute equally, under two
conditions. The equations fix the total of each group. And a record's possible contributions form a
set of points whose tables are connected by exchanges of two: affinely independent points (counts of
categories), equally spaced numbers, or products of such sets (margins). These sets have a Markov
basis of quadrics (Diaconis and Sturmfels 1998; Sturmfels 1996, chapter 14). Other models are
refused.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import explicit_graph_inputs

from pymc_dapper.graphs.bounds import ANY_NUMBER
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.flat import split
from pymc_dapper.graphs.laws import has_density
from pymc_dapper.graphs.prior import all_entries, to_values_of_records
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.terms.equations import KnownTotals
from pymc_dapper.records.reading.exchanges import ByShift, BySwap, ByValue, Exchange, NaturalSpace
from pymc_dapper.records.reading.finite import FiniteLaw
from pymc_dapper.records.reading.fixed_totals import check_fixed_totals, values_to_compare
from pymc_dapper.records.reading.known_totals import find_known_totals
from pymc_dapper.records.reading.model import ModelReading, log_priors_of_each, prior_law
from pymc_dapper.records.reading.possible import bounds_of_record, is_users_own

DRAWS = 24
"""Number of record values at which contributions are computed."""
NARROW = 0.01
"""Within this share of their spread, single continuous records can't be expected to change."""
MOST_STATES, DRAWN_RECORDS = 2000, 200_000
"""Most states drawn, and approximate number of records, to find some that contribute."""
COMPARED = 2000
"""Number of draws of a record that are compared."""
DIGITS = 9
"""Contributions that agree to this number of digits are equal."""


def read_exchange(reading: ModelReading, point: Mapping[str, np.ndarray]) -> Exchange | None:
    """Find the exchanges that a model needs.

    None if records can change alone, because nothing is known exactly. Models are refused if
    exchanges of pairs aren't known to reach all possible states.
    """
    known = find_known_totals(reading.additive_factors, reading.sums)
    if known is None or reading.n_records < 2:
        return None
    contributions = _Contributions(reading, known, point)
    if contributions.depend_on_parameters:
        return None
    equations = contributions.offset(), contributions.each_at
    every = values_to_compare(reading, contributions.sums, point)
    check_fixed_totals(reading, known, *equations, every)
    law = reading.conditional or prior_law(reading)
    if law is not None:
        return _by_value(contributions, law)
    values = contributions.draw_values()
    found = _by_shift(contributions, values) or _by_swap(contributions, values)
    if not every:
        check_fixed_totals(reading, known, *equations, values, drawn=True)
    return found


class _Contributions:
    """Contributions of records to known totals."""

    def __init__(self, reading: ModelReading, known: KnownTotals, point: Mapping[str, np.ndarray]):
        self.reading, self.known = reading, known
        self._records = [point[x.name] for x in reading.records]
        self._parameters = [point[x.name] for x in reading.parameters]
        ends = np.cumsum([np.prod(x.total.type.shape, dtype=int) for x in reading.sums])
        parts = zip(reading.sums, np.split(known.matrix.toarray(), ends[:-1], axis=1), strict=True)
        seen = [(sum_.contributions, part) for sum_, part in parts if part.any()]
        self.sums = sums = [x for x, _ in seen]
        self._matrix = np.hstack([part for _, part in seen])
        self._function = reading.in_python(sums)
        # Integers in this range: their sum doesn't depend on the order.
        self.are_whole = True
        inputs = set(explicit_graph_inputs(sums))
        self.depend_on_parameters = not inputs.isdisjoint(reading.parameters)

    def at(self, values: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
        """Evaluate contributions with all records at the same value, for each of some values.

        The shape is (n, number of values, m), with an entry for each equation.
        """
        tables = []
        for value in values:
            flat = self._sums_of(self._all_at(value))
            self.are_whole &= bool(np.all(flat == np.round(flat)))
            tables.append(flat @ self._matrix.T)
        return np.stack(tables, axis=1)

    def each_at(self, value: Sequence[np.ndarray]) -> np.ndarray:
        """Evaluate each record's contributions with all records at the same value."""
        return self._of(self._all_at(value))

    def offset(self) -> np.ndarray:
        """Evaluate the equations' constants, shape (m,)."""
        [offset] = self.reading.in_python([self.known.offset])(*self._records, *self._parameters)
        return np.asarray(offset)

    def naturals_at(
        self, values: Sequence[Sequence[np.ndarray]], space: NaturalSpace
    ) -> np.ndarray:
        """Return the same values in the space of the records' prior, flattened, a row for each."""
        function = self.reading.in_python(space.naturals(self.reading.records))
        found = [function(*self._all_at(value), *self._parameters) for value in values]
        return np.array([np.concatenate([np.ravel(x[0]) for x in each]) for each in found], float)

    def possible(self, law: FiniteLaw) -> np.ndarray:
        """Say which values each record can take."""
        graphs = [pt.broadcast_to(weight, (self.reading.n_records,)) for weight in law.weights]
        weights = compile_in_python(self.reading.model, self.reading.parameters, graphs)
        return np.column_stack(weights(*self._parameters)) > 0

    def draw_values(self) -> list[list[np.ndarray]]:
        """Draw different values of records, until each total changes between them."""
        reading, rng = self.reading, np.random.default_rng(0)
        propose = reading.proposing_in_python()
        n_states = int(np.clip(DRAWN_RECORDS // reading.n_records, DRAWS, MOST_STATES))
        found: dict[bytes, list[np.ndarray]] = {}

        def add(state: Sequence[np.ndarray], i: int) -> bool:
            """Take a record's value; return whether it is new."""
            value, number = [np.asarray(x[i]) for x in state], len(found)
            if all(np.all(np.isfinite(v)) for v in value):
                found.setdefault(b"".join(v.tobytes() for v in value), value)
            return len(found) > number

        at_first = self._of(self._records)
        changed = np.zeros(at_first.shape[1], dtype=bool)
        for k, each in enumerate(rng.spawn(n_states)):
            if k >= DRAWS and changed.all():
                break
            state, _ = propose(each, self._records, self._parameters)
            if k < DRAWS:  # a value of any record, since their priors may differ
                any(add(state, i) for i in rng.permutation(reading.n_records))
            changes = ~np.isclose(self._of(state), at_first, rtol=1e-9, atol=0)
            for j in np.flatnonzero(changes.any(axis=0) & ~changed):
                i = int(np.argmax(changes[:, j]))
                add(state, i)
                add(self._records, i)
                changed[j] = True
        return list(found.values())

    def may_be_shifted(self, moving: np.ndarray) -> bool:
        """Whether none of the float numbers that would be shifted has a positive probability.

        A shift rarely leads to such a number, and a probability can't be compared with densities. A
        user's own law counts as continuous if no draw comes twice.
        """
        reading = self.reading
        of_each = split(moving, [x.type.shape[1:] for x in reading.records])
        for k, (x, moved) in enumerate(zip(reading.records, of_each, strict=True)):
            node = reading.rvs[k].owner
            if x.dtype[0] != "f" or not moved.any() or has_density(node):
                continue
            if not is_users_own(node.op) or self._has_ties(k, moved.ravel()):
                return False
        return True

    def _has_ties(self, k: int, moved: np.ndarray) -> bool:
        """Whether a number is drawn twice for the same entry of a record."""
        reading = self.reading
        propose = reading.proposing_in_python()
        rngs = np.random.default_rng(0).spawn(int(np.ceil(COMPARED / reading.n_records)))
        drawn = [propose(rng, self._records, self._parameters)[0][k] for rng in rngs]
        entries = np.concatenate(drawn).reshape(len(rngs) * reading.n_records, -1)[:, moved]
        return any(len(np.unique(column)) < len(column) for column in entries.T)

    def _sums_of(self, state: Sequence[np.ndarray]) -> np.ndarray:
        """Evaluate each record's contribution to each sum."""
        rows = self._function(*state, *self._parameters)
        return np.hstack([np.reshape(x, (len(x), -1)).astype(float) for x in rows])

    def _of(self, state: Sequence[np.ndarray]) -> np.ndarray:
        """Evaluate each record's contribution to each equation."""
        return self._sums_of(state) @ self._matrix.T

    def exact(self, smallest: np.ndarray) -> np.ndarray:
        """Return which totals are known so well that no record can change alone.

        ``smallest`` is the smallest change of each total, shape (m,); infinite if no value changes
        it. Such a total must already have its known value. Otherwise it is refused, since only
        others could change it.
        """
        offset = self.offset()
        missing = np.abs(self._of(self._records).sum(axis=0) + offset)
        never = np.isinf(smallest)
        unmet = never & (missing > np.maximum(self.known.tolerances, 1e-9 * np.abs(offset)))
        if unmet.any():
            raise ReadingError(
                f"{_holds(self.known.only(unmet))} a sum over the records "
                f"{self.reading.quoted_names} fixed, but none of their values drawn from the prior "
                "contributes to it, so DapperStep can't find exchanges that keep it. Pass records "
                "that have the total, DapperStep(..., initial_point={name: values}), and start "
                "chains there (initvals); or check that the total is right"
            )
        return (self.known.tolerances < smallest) & ~never

    def _all_at(self, value: Sequence[np.ndarray]) -> list[np.ndarray]:
        pairs = zip(value, self.reading.records, strict=True)
        return [np.broadcast_to(np.asarray(v, dtype=x.dtype), x.type.shape) for v, x in pairs]


def _by_value(contributions: _Contributions, law: FiniteLaw) -> Exchange | None:
    """Make exchanges in which the second record draws one of the values that keep the totals."""
    found = _points(contributions, [list(value) for value in law.values])
    if found is None:
        return None
    known, groups, points = found
    possible = contributions.possible(law)
    if not all(_allow_pairs(rows, possible[groups == k]) for k, rows in enumerate(points)):
        raise _unreached(contributions.reading, known)
    # Number the joint contributions of pairs. Most groups differ only in where they contribute.
    k = points.shape[1]
    pairs = (_rounded(rows[:, None] + rows[None]).reshape(k**2, -1) for rows in points)
    tables = [np.unique(rows, axis=0, return_inverse=True)[1].ravel() for rows in pairs]
    kinds, different = _grouped(np.array(tables))
    kind = np.array([*kinds, 0])[groups]  # any, for those that take no part
    return ByValue(known, groups, law, different.reshape(-1, k, k), kind)


def _by_swap(
    contributions: _Contributions, values: Sequence[Sequence[np.ndarray]]
) -> Exchange | None:
    """Make exchanges in which two records swap their values."""
    found = _points(contributions, values)
    if found is None:
        return None
    known, groups, points = found
    if not all(_is_simplex(np.unique(rows, axis=0)) for rows in points):
        raise _unreached(contributions.reading, known)
    return BySwap(known, groups, _natural_space(contributions.reading))


def _by_shift(
    contributions: _Contributions, values: Sequence[Sequence[np.ndarray]]
) -> Exchange | None:
    """Make exchanges that shift the second record; None if totals aren't linear in the records."""
    reading, known = contributions.reading, contributions.known
    space = _natural_space(reading)
    at = contributions.naturals_at(values, space)
    design = np.column_stack([np.ones(len(at)), at])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    table = contributions.at(values)
    coefficients = np.linalg.pinv(design) @ table
    if not np.allclose(design @ coefficients, table, rtol=1e-9, atol=1e-9 * np.abs(table).max()):
        return None
    slopes = coefficients[:, 1:]  # (n, entries, m)
    effects = np.abs(slopes) * np.ptp(at, axis=0)[:, None]
    slopes = _rounded(np.where(effects > 1e-9 * np.abs(table).max(), slopes, 0.0))
    continuous = np.concatenate(
        [np.full(np.prod(x.type.shape[1:], dtype=int), x.dtype[0] == "f") for x in reading.records]
    )
    spread = np.where(continuous, NARROW * np.ptp(at, axis=0), 1.0)
    exact = contributions.exact(_smallest(slopes * spread[:, None]))
    if not exact.any():
        return None
    known, slopes = known.only(exact), slopes[:, :, exact]
    moving = np.any(slopes != 0, axis=(0, 2))
    if not contributions.may_be_shifted(moving):
        return None
    _check_kept(contributions, known)
    slopes = slopes[:, moving]
    # Records whose contributions are proportional form one group.
    flat = slopes.reshape(len(slopes), -1)
    scales = flat[np.arange(len(flat)), np.argmax(flat != 0, axis=1)]
    scales[scales == 0] = 1.0
    if not continuous[moving].all():
        scales = np.sign(scales)
    groups, shapes = _grouped(_rounded(flat / scales[:, None]).reshape(slopes.shape))
    _check_groups(reading, known, shapes)
    if any(np.linalg.matrix_rank(shape) < len(shape) for shape in shapes):
        raise _unreached(reading, known)
    shifted = split(moving, [x.type.shape[1:] for x in reading.records])
    return ByShift(known, groups, space, tuple(shifted), scales, shapes)


def _points(
    contributions: _Contributions, values: Sequence[Sequence[np.ndarray]]
) -> tuple[KnownTotals, np.ndarray, np.ndarray] | None:
    """Group records by their contributions at each of some values.

    Returns the totals that are known so well that no record can change alone; the group of each
    record, shape (n,); and the contributions of a record of each group, up to a constant, shape
    (number of groups, number of values, m).
    """
    table = contributions.at(values)
    points = _rounded(table - table[:, :1])
    exact = contributions.exact(_smallest(points))
    if not exact.any():
        return None
    reading, known = contributions.reading, contributions.known.only(exact)
    _check_kept(contributions, known)
    points = points[:, :, exact]
    groups, shapes = _grouped(points)
    _check_groups(reading, known, shapes)
    if not all(reached_in_pairs(np.unique(shape, axis=0)) for shape in shapes):
        raise _unreached(reading, known)
    return known, groups, shapes


def _smallest(changes: np.ndarray) -> np.ndarray:
    """Return the smallest change of each total; infinite if nothing changes it."""
    sizes = np.where(changes == 0, np.inf, np.abs(changes))
    return sizes.min(axis=tuple(range(changes.ndim - 1)))


def _rounded(x: np.ndarray) -> np.ndarray:
    """Round away rounding errors, so that equal numbers can be compared."""
    size = np.abs(x).max(initial=0.0)
    digits = DIGITS - int(np.ceil(np.log10(size))) if size > 0 else DIGITS
    return np.round(x, digits) + 0.0  # no negative zero


def _grouped(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give equal rows a number, and zero rows -1; also return the row of each number."""
    numbers: dict[bytes, int] = {}
    groups = np.full(len(rows), -1)
    shapes: list[np.ndarray] = []
    for k in np.flatnonzero(rows.reshape(len(rows), -1).any(axis=1)):
        groups[k] = numbers.setdefault(rows[k].tobytes(), len(shapes))
        if groups[k] == len(shapes):
            shapes.append(rows[k])
    return groups, np.array(shapes).reshape(-1, *rows.shape[1:])


def _check_groups(reading: ModelReading, known: KnownTotals, shapes: np.ndarray) -> None:
    """Check that the equations fix the total of each group."""
    if len(shapes) <= len(known.factors):
        ranks = [np.linalg.matrix_rank(shape) for shape in shapes]
        if np.linalg.matrix_rank(shapes.reshape(-1, shapes.shape[-1])) == sum(ranks):
            return
    raise _unreached(reading, known)


def _allow_pairs(points: np.ndarray, possible: np.ndarray) -> bool:
    """Whether exchanges of pairs are enough although some records can't take some values.

    Records that can't change are harmless. So are restricted records if values are equally spaced.
    Points have a row for each value, shape (k, m); ``possible``, shape (number of records, k),
    marks the values that each record can take.
    """
    distinct, place = np.unique(points, axis=0, return_inverse=True)
    supports = {tuple(np.unique(place.ravel()[each])) for each in possible}
    supports = {each for each in supports if len(each) > 1}
    return len(supports) < 2 or (
        _is_row(distinct) and all(np.ptp(each) == len(each) - 1 for each in supports)
    )


def reached_in_pairs(points: np.ndarray) -> bool:
    """Whether exchanges of pairs connect all data sets with the same total.

    Points are the different contributions that a record may make, shape (k, m).
    """
    # Columns that don't take all combinations of their values belong to the same factor.
    n_columns = points.shape[1]
    factor = np.arange(n_columns)
    sizes = [len(np.unique(points[:, j])) for j in range(n_columns)]
    for i in range(n_columns):
        for j in range(i):
            if len(np.unique(points[:, [i, j]], axis=0)) < sizes[i] * sizes[j]:
                factor[factor == factor[i]] = factor[j]
    parts = [np.unique(points[:, factor == k], axis=0) for k in np.unique(factor)]
    if np.prod([len(part) for part in parts]) != len(points):
        parts = [points]
    return all(_is_simplex(part) or _is_row(part) for part in parts)


def _is_simplex(points: np.ndarray) -> bool:
    return int(np.linalg.matrix_rank(points - points[0])) == len(points) - 1


def _is_row(points: np.ndarray) -> bool:
    """Whether points lie on a line at equal distances."""
    steps = np.diff(points[np.lexsort(points.T)], axis=0)
    return bool(np.allclose(steps, steps[:1], rtol=1e-9, atol=0))


def _check_kept(contributions: _Contributions, known: KnownTotals) -> None:
    """Check that totals don't depend on other variables, and aren't broken by rounding."""
    reading = contributions.reading
    others = set(explicit_graph_inputs([known.offset])) & set(reading.parameters)
    if others:
        names = ", ".join(sorted(f"'{name}'" for name in reading.names(others)))
        raise ReadingError(
            f"{_holds(known)} the records {reading.quoted_names} equal to a function of {names}, "
            f"which another step updates: neither could ever change. If {names} follows from the "
            "records, write it as a function of them. If it is a variable of the records, pass it "
            "to the same step"
        )
    if not contributions.are_whole and not np.all(known.tolerances > 0):
        raise ReadingError(
            f"{_holds(known)} a sum over the records {reading.quoted_names} equal to a number, but "
            "the records' contributions aren't whole numbers: rounding breaks the equality, and "
            "for continuous records it has probability zero. Give it a tolerance: "
            "pm.Potential(name, pt.switch(pt.abs(total - known) < 1e-6, 0, -np.inf))"
        )


def _unreached(reading: ModelReading, known: KnownTotals) -> ReadingError:
    return ReadingError(
        f"DapperStep doesn't know exchanges between the records {reading.quoted_names} that keep "
        f"what {_holds(known)} fixed and reach all possible states. It knows totals of groups of "
        "records that count alike, counts and margins of categories. Leave out totals that follow "
        "from the others; or give the total some noise, a pm.Normal with a small scale; or, if the "
        "records differ only in their category, count them, and pass CountStep the moves"
    )


def _holds(known: KnownTotals) -> str:
    names = list(dict.fromkeys(known.factors))
    return ", ".join(f"'{name}'" for name in names) + (" hold" if len(names) > 1 else " holds")


def _natural_space(reading: ModelReading) -> NaturalSpace:
    """Write the records and their prior in the prior's own space."""
    view, records, rvs = reading.view, reading.records, reading.rvs
    naturals = view.at_values(rvs)
    stand_ins = {rv: x.type(name=rv.name) for rv, x in zip(rvs, naturals, strict=True)}
    values = []
    for rv, x in stand_ins.items():
        transform = reading.model.rvs_to_transforms[rv]
        if transform is not None:
            inputs = view.at_values(rv.owner.inputs, stand_ins)
            x = to_values_of_records(transform, x, *inputs)
        values.append(x)
    try:
        found = log_priors_of_each(view, rvs, records, jacobian=False)
    except NotImplementedError as error:
        raise ReadingError(
            f"a sum over the records {reading.quoted_names} is known exactly, and exchanges that "
            f"keep it need the density of the records' prior: {error}. Give a CustomDist a `logp` "
            "function"
        ) from error
    # Another variable might look up a value that an exchange can't give, outside of its table.
    bounds = zip(records, map(bounds_of_record, rvs), strict=True) if len(rvs) > 1 else ()
    inside = {x: pt.clip(x, *of[:2]).astype(x.dtype) for x, of in bounds if of != ANY_NUMBER}
    [log_prior] = rebuild([pt.add(*found)], inside)
    for x, held in inside.items():
        log_prior = pt.switch(all_entries(pt.eq(x, held)), log_prior, -np.inf)
    return NaturalSpace(
        tuple(records), tuple(naturals), tuple(stand_ins.values()), tuple(values), log_prior
    )
