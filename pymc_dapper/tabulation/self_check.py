"""A numerical check that a table is equivalent to its records, made before sampling."""

from collections.abc import Iterable, Iterator, Sequence
from math import prod

import numpy as np
from pymc import Model
from pytensor.graph import ancestors
from pytensor.tensor.variable import TensorVariable
from scipy.special import gammaln, logsumexp

from pymc_dapper.graphs.asked_once import log_densities
from pymc_dapper.graphs.errors import FAILURES
from pymc_dapper.graphs.evaluation import Point, agree, at_point, log_density_at, rounding
from pymc_dapper.graphs.prior_draws import draw_values
from pymc_dapper.graphs.values import at_values
from pymc_dapper.graphs.view import view_of
from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.reading import TableReading, cell_values

MOST_ENTRIES = 1_000_000
"""Most records times values, and most entries of an array, with which a model is evaluated."""

SPREAD = 10
"""Number of random tables, at each of some parameters, that show whether all are possible."""


def check_table(reading: TableReading, written: Model) -> None:
    """Compare a model of counts, factor by factor, with the model of records that was read.

    Both models are evaluated at random parameters, with records that are likely there or spread
    over all possible values. Each factor must be equal in both, and so must Deterministics and the
    statistics of mechanisms. The records' prior must be that of their counts, less the logarithm of
    the number of data sets with these counts. If records are marginalised, the model's own
    density of each record is summed over its values.

    Raises
    ------
    TabulationError
        If they disagree: the message names the factor.
    """
    rng = np.random.default_rng(0)
    try:
        with np.errstate(all="ignore"):
            check = _Check(reading, written)
            for point in _points(written, rng):
                check.at(point, rng)
    except TabulationError:
        raise
    except FAILURES as error:  # any error of a user's operation
        raise TabulationError(
            f"the table can't be compared with the records {reading.names}: {error}"
        ) from error


def are_all_possible(reading: TableReading, written: Model) -> bool:
    """Whether no factor rules out any tables of counts, as far as random ones show.

    Records in these are spread evenly over all values.
    """
    rng, counts = np.random.default_rng(0), counts_of(written)
    seen_by = {*reading.answers, *(part.name for part in reading.seen.values())}
    others = [x for x in (*written.observed_RVs, *written.potentials) if x.name in seen_by]

    def spread(k: int, totals: np.ndarray) -> np.ndarray:
        n_values = len(reading.supports[k])
        return rng.multinomial(totals, np.full(n_values, 1 / n_values))

    try:
        log_density = log_density_at(written, log_densities(written, [*counts, *others]))
        for point in _points(written, rng):
            for _ in range(SPREAD):
                tables = _values_of_counts(counts, reading.in_turn(spread))
                if not np.isfinite(log_density({**point, **tables})):
                    return False
        return True
    except FAILURES:  # of a user's operation: it isn't known
        return False


def is_evaluated_soon(reading: TableReading) -> bool:
    """Whether the comparison is quick, judged by the largest array that it makes."""
    model = reading.model
    seen = [*model.potentials, *model.deterministics]
    seen += [x for rv in model.observed_RVs for x in rv.owner.inputs]
    shapes = [getattr(x.type, "shape", ()) for x in ancestors(reading.read(seen))]
    # The check evaluates each value of a variable, or each joint value if records are
    # marginalised.
    of_each = list(map(len, reading.supports))
    of_records = reading.n * (max(of_each) if reading.sums else prod(of_each))
    return max(of_records, *(prod(k or 1 for k in shape) for shape in shapes)) <= MOST_ENTRIES


class _Check:
    """Both models, as functions of parameters and records or counts."""

    def __init__(self, reading: TableReading, written: Model):
        self._reading, old = reading, reading.model
        self._counts = counts_of(written)
        new_factors = [*written.free_RVs, *written.observed_RVs, *written.potentials]
        kept = old.named_vars.keys() - reading.answers
        same = [x for x in new_factors if x.name in kept]
        answers = [old[name] for name in reading.answers]
        names = {x.name for x in (*old.free_RVs, *old.observed_RVs, *old.potentials)}
        names -= {*(rv.name for rv in reading.rvs), *reading.answers, *(x.name for x in same)}
        if names:
            lacking = ", ".join(f"'{name}'" for name in sorted(names))
            raise TabulationError(f"the model of counts lacks {lacking}. Please report the model")
        # All other variables of the new model replace the records.
        left = [x for x in written.potentials if x not in same]
        apart = not reading.given_answers
        of_cells = [x for x in left if apart and x.name in reading.answers]
        of_cells = of_cells if self._counts else left
        tables = [*self._counts, *(x for x in left if x not in of_cells)]
        self._n_tables, self._of_cells = len(tables), [x.name for x in of_cells]
        others = [x.name for x in written.deterministics]
        statistics = {x.name: getattr(old[x.name].tag, "statistic", None) for x in same}
        others += [name for name, statistic in statistics.items() if statistic in reading.seen]
        self._names = [*(x.name for x in same), *others]
        of_records = log_densities(old, [*reading.rvs, *answers, *(old[x.name] for x in same)])
        n_alone = len(reading.rvs) + len(answers)
        alone, together = of_records[:n_alone], [x.sum() for x in of_records[n_alone:]]
        together += _others(old, others)
        self._at_records = [at_point(old, [x]) for x in alone]
        self._other = at_point(old, together)
        of_counts = [x.sum() for x in log_densities(written, [*tables, *of_cells, *same])]
        self._at_counts = at_point(written, [*of_counts, *_others(written, others)])
        values = [old.rvs_to_values[rv] for rv in reading.rvs]
        self._tolerance = rounding(values, [*alone, *together])

    def at(self, point: Point, rng: np.random.Generator) -> None:
        """Check at parameters, and at records drawn there."""
        for spread in (False, True):
            self._compare(point, self._drawn(point, rng, spread))

    def _drawn(self, point: Point, rng: np.random.Generator, spread: bool) -> list[np.ndarray]:
        """Draw records, variable by variable: which of its values each record has.

        They are drawn from their density given earlier ones, or spread over all that is possible.
        """
        reading = self._reading
        chosen = [np.zeros(reading.n, dtype=np.int64) for _ in reading.rvs]
        last = [
            *range(len(reading.rvs)),
            *(max(reading.seen_by(x)) for x in reading.answers.values()),
        ]
        for k, values in enumerate(reading.supports):
            weights = []
            for value in range(len(values)):
                chosen[k] = np.full(reading.n, value)
                known = [j for j, of in enumerate(last) if of == k]
                weights.append(self._densities(point, chosen, known).sum(axis=0))
            of_value = np.stack(weights, axis=-1)
            of_value = np.where(of_value > -np.inf, 0.0, -np.inf) if spread else of_value
            chosen[k] = np.argmax(of_value + rng.gumbel(size=of_value.shape), axis=-1)
        return chosen

    def _records(self, chosen: Sequence[np.ndarray]) -> Point:
        reading = self._reading
        return {
            rv.name: (values[0] + index).astype(rv.dtype).reshape(reading.shape)
            for rv, values, index in zip(reading.rvs, reading.supports, chosen, strict=True)
        }

    def _densities(
        self, point: Point, chosen: Sequence[np.ndarray], which: Iterable[int]
    ) -> np.ndarray:
        """Return the model's value for each record: of some variables' priors and of answers."""
        full = {**point, **self._records(chosen)}
        found = [self._at_records[j](full)[0] for j in which]
        return np.array([_by_record(x, self._reading.shape) for x in found])

    def _compare(self, point: Point, chosen: Sequence[np.ndarray]) -> None:
        reading = self._reading
        full = {**point, **self._records(chosen)}
        expected = self._other(full)
        tables: list[np.ndarray] = []
        if self._counts:
            tables = [reading.count((*x, k), chosen) for k, x in enumerate(reading.given)]
        counts = _values_of_counts(self._counts, tables)
        found = self._at_counts({**point, **counts})
        n_tables, n_left = self._n_tables, len(self._of_cells)
        of_tables, of_cells = found[:n_tables], found[n_tables : n_tables + n_left]
        if self._counts:
            # The priors of all record variables are added, since one table may hold several.
            alone = [x for evaluate in self._at_records for x in evaluate(full)]
            prior, answers = alone[: len(reading.rvs)], alone[len(reading.rvs) :]
            prior = alone if reading.given_answers else prior
            multiplicity = sum(
                gammaln(x.sum(axis=-1) + 1.0).sum() - gammaln(x + 1.0).sum() for x in tables
            )
            size = multiplicity + sum(np.abs(x).sum() for x in prior)
            log_density = sum(of_tables) - multiplicity
            name = "their prior and what is observed" if reading.given_answers else "their prior"
            self._same(name, log_density, sum(np.sum(x) for x in prior), size)
            by_name = dict(zip(reading.answers, answers, strict=True))
            for name, x in zip(self._of_cells, of_cells, strict=True):
                self._same(f"'{name}'", x, by_name[name].sum(), np.abs(by_name[name]).sum())
        else:
            everything = range(len(self._at_records))
            of_all = [
                self._densities(point, [np.full(reading.n, x) for x in joint], everything).sum(0)
                for joint in cell_values([range(len(values)) for values in reading.supports])
            ]
            each = logsumexp(of_all, axis=0)
            self._same(f"'{self._of_cells[0]}'", of_cells[0], each.sum(), np.abs(each).sum())
        for name, x, y in zip(self._names, found[n_tables + n_left :], expected, strict=True):
            self._same(f"'{name}'", x, y, np.max(np.abs(y), initial=0.0, where=np.isfinite(y)))

    def _same(self, name: str, computed: np.ndarray, expected: np.ndarray, size: float) -> None:
        computed, expected = np.asarray(computed, dtype=float), np.asarray(expected, dtype=float)
        if computed.shape != expected.shape:
            raise TabulationError(
                f"{name} would have shape {computed.shape}, and not {expected.shape}. Please "
                "report the model"
            )
        sizes = (size if np.isfinite(size) else 0.0) + np.abs(expected)
        same = agree(computed, expected, self._tolerance, sizes) | np.isnan(expected)
        if not np.all(same):
            which = np.unravel_index(np.argmin(same), same.shape)
            raise TabulationError(
                f"a table of counts can't stand for the records {self._reading.names}: {name} "
                f"would be {computed[which]:.10g}, and not {expected[which]:.10g}. Please report "
                "the model"
            )


def counts_of(written: Model) -> list[TensorVariable]:
    """Return the tables that stand for records."""
    return [rv for rv in written.free_RVs if hasattr(rv.tag, "in_place_of")]


def _values_of_counts(
    counts: Sequence[TensorVariable], tables: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the count variables' values, given how many records are in each table's cells."""
    found = {}
    for rv, table in zip(counts, tables, strict=True):
        value = table if len(table) > 1 else table[0]
        found[rv.name] = value if value.ndim == rv.type.ndim else value[..., 1]
    return found


def _others(model: Model, names: Sequence[str]) -> list[TensorVariable]:
    """Return Deterministics and statistics of mechanisms, in terms of value variables."""
    variables = [model[name] for name in names]
    graphs = [x if x in model.deterministics else x.tag.statistic for x in variables]
    return at_values(model, graphs, {})


def _by_record(density: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum over all but the records, along any axis, or over none if each entry is a record."""
    if len(shape) > 1:
        return density.ravel()
    [n] = shape
    axis = density.shape.index(n)
    return np.moveaxis(density, axis, 0).reshape(n, -1).sum(axis=1)


def _points(written: Model, rng: np.random.Generator) -> Iterator[Point]:
    """Yield parameters from their prior, if it can be drawn from, and smaller ones."""
    rvs = [rv for rv in written.free_RVs if not hasattr(rv.tag, "in_place_of")]
    if not rvs:
        yield {}
        return
    drawn = draw_values(view_of(written), rvs, rng, {})
    if drawn is None:
        start, drawn = written.initial_point(0), {}
        for x in (written.rvs_to_values[rv] for rv in rvs):
            noise = rng.standard_normal(start[x.name].shape) if x.dtype.startswith("float") else 0
            drawn[x.name] = start[x.name] + noise
    for factor in (1.0, 0.1):
        # With a wide prior, factors may lose all digits.
        yield {n: x * factor if x.dtype.kind == "f" else x for n, x in drawn.items()}
