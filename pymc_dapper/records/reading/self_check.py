"""A numerical check of a reading, made before sampling."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import prod
from typing import NamedTuple

import numpy as np
from pytensor.graph import Variable

from pymc_dapper.graphs.errors import FAILURES, ReadingError
from pymc_dapper.graphs.evaluation import (
    TOLERANCE,
    agree,
    choose_rows,
    compile_in_python,
    rounding,
    sum_of_rows,
    with_careful_sums,
)
from pymc_dapper.graphs.prior_draws import draw_values, is_finite
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.records.reading.contributions import of_any_length
from pymc_dapper.records.reading.factors import AdditiveFactor, Factor, FullFactor, SeparableFactor
from pymc_dapper.records.reading.law_check import check_laws
from pymc_dapper.records.reading.model import ModelReading
from pymc_dapper.records.reading.prior_check import PriorCheck, check_picked
from pymc_dapper.records.reading.rows_of_others import rows_of_others

ENTRIES_AT_ONCE, RECORDS_AT_ONCE = 2**26, 1024
"""If contributions have more entries than this, they are computed in blocks."""

MAX_PROPOSALS = 100
FEWEST_POSSIBLE = 1e-3


type State = Sequence[np.ndarray]


class CheckedState(NamedTuple):
    """A state at which the reading was checked, and the model's log-density.

    Attributes
    ----------
    records : list of ndarray
        The records.
    parameters : list of ndarray
        The parameters.
    log_density : callable
        ``log_density(records, parameters) -> float``: all factors together, as the model computes
        them; nan if that fails.
    tolerance : float
        Expected relative rounding error.
    """

    records: list[np.ndarray]
    parameters: list[np.ndarray]
    log_density: Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], float]
    tolerance: float

    @property
    def is_double(self) -> bool:
        """Whether everything is computed in double precision."""
        return self.tolerance <= TOLERANCE["float64"]


def check_reading(reading: ModelReading, point: Mapping[str, np.ndarray]) -> CheckedState:
    """Compare the sweep's computations with the model's own log-density.

    Uses two random states of the records and a mixture of their rows. Each record's contributions
    must depend on that record alone. A factor computed from cached sums, and nothing else of the
    records, must equal the model's. This is checked at a given point of the parameters, and at one
    drawn from their prior, if it has draws.

    Parameters
    ----------
    reading : ModelReading
        The reading.
    point : dict of str to ndarray
        Values of the value variables; the parameters' are used.

    Returns
    -------
    CheckedState
        A state of the records, and the model's log-density as a function.

    Raises
    ------
    ReadingError
        If the reading and the model disagree: the message names the factor.
    """
    rng = np.random.default_rng(0)
    factors = [_CompiledFactor(reading, factor) for factor in reading.factors]
    priors = PriorCheck(reading)
    check_picked(reading)
    if (elsewhere := _draw_parameters(reading, rng, point)) is not None:
        # The prior may well reach where a model has no value, or where digits are lost.
        with suppress(_NoValueError):
            _check_at(elsewhere, reading, factors, priors, rng, allow_lost_digits=True)
    try:
        mixed = _check_at(point, reading, factors, priors, rng)
    except _NoValueError as error:
        raise ReadingError(str(error)) from error.__cause__
    parameters = [point[x.name] for x in reading.parameters]
    priors.check_draws(mixed, parameters, rng)
    check_laws(reading, point, lambda rng: _draw_parameters(reading, rng, point))

    def log_density(records: Sequence[np.ndarray], parameters: Sequence[np.ndarray]) -> float:
        try:
            return sum(factor.as_written([*records, *parameters]) for factor in factors)
        except _NoValueError:
            return np.nan

    tolerance = max(factor.tolerance for factor in factors)
    return CheckedState(mixed, parameters, log_density, tolerance)


def _check_at(
    point: Mapping[str, np.ndarray],
    reading: ModelReading,
    factors: Sequence["_CompiledFactor"],
    priors: PriorCheck,
    rng: np.random.Generator,
    *,
    allow_lost_digits: bool = False,
) -> list[np.ndarray]:
    """Check all factors at the parameters of a point; return the state of the check."""
    parameters = [point[x.name] for x in reading.parameters]
    others = [*(point[x.name] for x in reading.records), *parameters]
    first, second = _draw_states(reading, rng, point)
    # At random, since a wrong rule may preserve regular patterns.
    changed = rng.permutation(reading.n_records) % 2 == 0
    priors.check(first, second, changed, parameters)
    marks = []  # as all numbers of many rows would take much memory
    for factor in factors:
        of_first, of_second = (
            [rows.marks for rows in factor.rows([*state, *parameters])] for state in (first, second)
        )
        marks.append(choose_rows(changed, of_second, of_first))
    mixed = choose_rows(changed, second, first)
    for factor, alone in zip(factors, marks, strict=True):
        factor.check([*mixed, *parameters], alone, others, allow_lost_digits=allow_lost_digits)
    return mixed


class _NoValueError(Exception):
    """A value can't be drawn or evaluated."""


class _Rows(NamedTuple):
    """Contributions of records to a sum: a mark of each row, which identifies it, and the sum."""

    marks: np.ndarray
    total: np.ndarray


class _CompiledFactor:
    """A factor of the log-density, as functions of a state: the records, and then parameters."""

    def __init__(self, reading: ModelReading, factor: Factor):
        self.factor, self._n_variables = factor, len(reading.records)
        self.tolerance = rounding(reading.records, [factor.as_written])
        self._as_written = reading.in_python([with_careful_sums(factor.as_written)])
        if isinstance(factor, FullFactor):
            return
        self._per_record = reading.in_python(_per_record(factor))
        self._of_block = _rows_of_block(reading, factor)
        if isinstance(factor, AdditiveFactor):
            # If a shape isn't known beforehand, the function of the sums still takes it from the
            # records.
            self._totals = [sum_.total for sum_ in factor.sums]
            cached = [total.type() for total in self._totals]
            to_cached = dict(zip(self._totals, cached, strict=True))
            [at_sums] = rebuild([factor.log_density], to_cached)
            self._at_sums = reading.in_python([at_sums], cached)

    def rows(self, state: State) -> list[_Rows]:
        """Summarise each record's contributions to each sum; nothing if they can't be computed."""
        if isinstance(self.factor, FullFactor):
            return []
        if self._of_block is None:
            return self._all_rows(self._per_record, state)
        records, parameters = state[: self._n_variables], state[self._n_variables :]
        cut = zip(*(_blocks(x) for x in records), strict=True)
        blocks = [self._all_rows(self._of_block, [*block, *parameters]) for block in cut]
        found = []
        for of_sum in zip(*blocks, strict=True):
            total = sum_of_rows(np.array([rows.total for rows in of_sum]))
            found.append(_Rows(np.concatenate([rows.marks for rows in of_sum]), total))
        return found

    def _all_rows(self, function: Callable[..., list[np.ndarray]], state: State) -> list[_Rows]:
        per_record = self._call(function, state)
        with np.errstate(all="ignore"):
            return [_Rows(_mark(rows), sum_of_rows(rows)) for rows in per_record]

    def check(
        self, state: State, marks: Sequence[np.ndarray], others: State, *, allow_lost_digits: bool
    ) -> None:
        """Check the factor at a state of the records.

        ``marks`` are those of its rows in other states; ``others`` is one with other records.
        """
        expected = self.as_written(state)
        if isinstance(self.factor, FullFactor):
            return  # evaluated as in the model
        computed_rows = self.rows(state)
        for rows, alone in zip(computed_rows, marks, strict=True):
            if not _close(rows.marks, alone):
                raise _misread(self.factor, "what it computes for one record depends on others")
        totals = [rows.total for rows in computed_rows]
        if isinstance(self.factor, AdditiveFactor):
            # Use other records than the sums': only the sums may matter.
            computed = self._from_sums(totals, others)
        else:
            computed = float(totals[0])
        if agree(computed, expected, self.tolerance):
            return
        if allow_lost_digits:
            if not np.isfinite([computed, expected]).all():
                return
            if isinstance(self.factor, AdditiveFactor):
                nearby = self._from_sums(_nearby(totals), others)
                change = nearby - computed
                if not abs(computed - expected) > 10 * abs(change):
                    return
        raise _misread(self.factor, f"it is {expected:.10g}, but record by record {computed:.10g}")

    def as_written(self, state: State) -> float:
        """Evaluate the factor as the model computes it."""
        return _log_density(self._call(self._as_written, state)[0])

    def _from_sums(self, sums: Sequence[np.ndarray], state: State) -> float:
        """Evaluate the factor at sums; only the records' shapes are used."""
        values = [x.astype(total.dtype) for x, total in zip(sums, self._totals, strict=True)]
        return _log_density(self._call(self._at_sums, [*values, *state])[0])

    def _call(
        self, function: Callable[..., list[np.ndarray]], values: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        try:
            return function(*values)
        except np.linalg.LinAlgError:
            return [np.asarray(np.nan)]  # a singular matrix: an impossible state
        except FAILURES as error:
            raise _NoValueError(
                f"'{self.factor.name}' can't be evaluated at the initial point: {error}"
            ) from error


def _draw_states(
    reading: ModelReading, rng: np.random.Generator, point: Mapping[str, np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Draw two states of the records, given the parameters of a point.

    A record's value is its first possible proposal; without one, its value at the point.
    """
    parameters = [point[x.name] for x in reading.parameters]
    start = [point[x.name] for x in reading.records]

    def draw_state(rng: np.random.Generator) -> list[np.ndarray]:
        state, found = start, np.zeros(reading.n_records, dtype=bool)
        n_possible, n_drawn = 0, 0
        for each in rng.spawn(MAX_PROPOSALS):
            drawn, possible = propose(each, start, parameters)
            state = choose_rows(possible & ~found, drawn, state)
            found |= possible
            n_possible += int(np.count_nonzero(possible))
            n_drawn += len(possible)
            if found.all():
                break
        if n_possible < FEWEST_POSSIBLE * n_drawn:
            raise _out_of_reach(reading, n_possible / n_drawn)
        return state

    try:
        propose = reading.proposing_in_python()
        first, second = map(draw_state, rng.spawn(2))
    except (NotImplementedError, *FAILURES) as error:
        raise _NoValueError(
            f"DapperStep proposes the records {reading.quoted_names} from their prior, but it "
            f"can't be drawn from: {error}. Use a proper distribution; give a CustomDist a `dist` "
            "or a `random` function"
        ) from error
    return first, second


def _draw_parameters(
    reading: ModelReading, rng: np.random.Generator, point: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray] | None:
    """Draw the parameters from their prior, if it has finite draws; the rest is a point's."""
    rvs = [reading.model[name] for name in reading.names(reading.parameters)]
    drawn = draw_values(reading.view, rvs, rng.spawn(1)[0], point) if rvs else None
    return None if drawn is None or not is_finite(drawn) else {**point, **drawn}


def _out_of_reach(reading: ModelReading, share: float) -> _NoValueError:
    transforms = reading.model.rvs_to_transforms.items()
    described = ", ".join(
        f"'{rv.name}' ({type(transform).__name__})"
        for rv, transform in transforms
        if transform is not None and rv.name in reading.record_names
    )
    if not described:
        names = reading.quoted_names
        return _NoValueError(
            f"DapperStep proposes the records {names} from their prior, but only {share:.2%} of "
            "its draws have a positive density: most draws of one record variable are invalid as "
            "parameters of another. Write these parameters so that they are valid for all values"
        )
    return _NoValueError(
        f"DapperStep proposes records from their prior, but only {share:.2%} of its draws are "
        f"values that the transforms of the records can reach: {described}. Use the prior's own "
        "transform, or a prior within the transform's range"
    )


def _log_density(value: np.ndarray) -> float:
    # For a singular matrix, PyTensor's `solve` in Python gives nan (or its cast to integers) in the
    # shape of the matrix.
    return float(value) if np.ndim(value) == 0 else np.nan


def _close(computed: np.ndarray, expected: np.ndarray) -> bool:
    if np.array_equal(computed, expected):
        return True  # at once, and without working memory
    size = np.max(np.abs(expected), initial=1.0, where=np.isfinite(expected))
    return np.allclose(computed, expected, rtol=1e-10, atol=1e-12 * size, equal_nan=True)


def _nearby(sums: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Change sums slightly, but by more than rounding; integers aren't rounded."""
    rng = np.random.default_rng(0)
    return [
        x * (1 + 1e-12 * rng.standard_normal(x.shape)) if x.dtype.kind == "f" else x for x in sums
    ]


def _per_record(factor: AdditiveFactor | SeparableFactor) -> list[Variable]:
    if isinstance(factor, AdditiveFactor):
        return [sum_.contributions for sum_ in factor.sums]
    return [factor.log_densities]


def _rows_of_block(
    reading: ModelReading, factor: AdditiveFactor | SeparableFactor
) -> Callable[..., list[np.ndarray]] | None:
    """Compute contributions block by block, if all at once would take much memory.

    None if they wouldn't, or if that isn't possible. The sweep uses blocks, too.
    """
    entries = [prod(size or 1 for size in rows.type.shape[1:]) for rows in _per_record(factor)]
    if sum(entries) * reading.n_records <= ENTRIES_AT_ONCE:
        return None
    of_block: dict[Variable, Variable] = {x: of_any_length(x) for x in reading.records}
    rows = [rows_of_others(x, of_block, lambda *_: None) for x in _per_record(factor)]
    known = [x for x in rows if x is not None]
    if len(known) < len(rows):
        return None
    return compile_in_python(reading.model, [*of_block.values(), *reading.parameters], known)


def _blocks(x: np.ndarray) -> list[np.ndarray]:
    return [x[start : start + RECORDS_AT_ONCE] for start in range(0, len(x), RECORDS_AT_ONCE)]


def _mark(rows: np.ndarray) -> np.ndarray:
    """Return a number for each row that identifies it: a product with random numbers."""
    if rows.ndim == 1:
        return rows
    flat = rows.reshape(len(rows), -1)
    if not np.isfinite(flat).all():
        # Any numbers will do, as long as the others of the row still count.
        flat = np.nan_to_num(flat, nan=101.7, posinf=203.1, neginf=307.9)
    # Unlike a matrix product, this converts only a few integers at a time.
    return np.einsum("ij,j->i", flat, np.random.default_rng(0).standard_normal(flat.shape[1]))


def _misread(factor: Factor, why: str) -> ReadingError:
    return ReadingError(
        f"DapperStep can't read the factor '{factor.name}' exactly: {why}. Nothing has been "
        "sampled. If the records lie far from zero compared with how they vary, digits are lost "
        "in a variance or the like: subtract a public constant from them first. Otherwise this is "
        "a fault of pymc_dapper's, or of what was registered with `action_of` or "
        "`follow_records`; please report the model"
    )
