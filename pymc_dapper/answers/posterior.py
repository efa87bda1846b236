"""The joint posterior of true values, given a release: the choice of method, and the draws."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from pymc_dapper.answers.answer import Answer, Provenance
from pymc_dapper.answers.cells import draw_cells, probabilities
from pymc_dapper.answers.law import CellLaw, law_of
from pymc_dapper.answers.prior import Prior, read_prior
from pymc_dapper.answers.sharing import SharingCells
from pymc_dapper.answers.smooth import grid_of, log_marginal, log_pmf
from pymc_dapper.answers.table import Table, are_nested, joint_table, spread, table_of_query
from pymc_dapper.answers.trees import Sums, SumsTree
from pymc_dapper.answers.windows import DROP, LARGEST_DROP, tabulate
from pymc_dapper.checks import flag, known, random_generator, shown, whole_number, whole_numbers
from pymc_dapper.mechanisms import DiscreteGaussianMechanism, DiscreteLaplaceMechanism
from pymc_dapper.mechanisms.perturbed_counts import PerturbedCounts
from pymc_dapper.releases.margins import Within
from pymc_dapper.releases.query import Query

if TYPE_CHECKING:
    from pymc_dapper.releases.release import Release

CELLS = "exact and independent draws, each cell by itself"
TREE = "exact and independent draws, by the tree of the sums"
FEW = 1_000
"""A tree with more cells is compared with the smooth prior at its most likely parameters."""
WEIGHED = "draws under the other prior, chosen by their weights under this one"
MOST_WEIGHED = 100
"""Draws can be reweighed for up to this number of cells."""
LEAST_SHARE = 0.1
"""Reweighing needs this share of effective draws."""

MARGIN = 5.0
"""A window is widened if a draw under a smooth prior comes this close to its ends."""

Known = list[tuple[np.ndarray, np.ndarray]]


def posterior_of(
    release: "Release",
    *,
    prior: Any,
    total: Any,
    margins: bool | None,
    within: Within | None,
    draws: int,
    random_seed: Any,
) -> Answer | dict[str, Answer]:
    """Return the posterior of the true values. Arguments are those of `Release.posterior`."""
    draws = whole_number(draws, "draws", at_least=1)
    rng = random_generator(random_seed, "random_seed")
    tables = _tables(release, margins, within)
    if total is not None and len(tables) > 1:
        raise ValueError(
            "total is of one table, but the release has several statistics: "
            f"{', '.join(table.name for table in tables)}. Take one, as in "
            f"pmd.Release([release[{tables[0].name!r}]]).posterior(total=...)"
        )
    seed, answers = int(rng.integers(2**62)), {}
    for table, of in zip(tables, _of_each(prior, tables), strict=True):
        read = read_prior(of, table.shape)
        posterior = Posterior(table, read, _known(table, total))
        # Each release gets its own draws, even with the same seed.
        mark = zlib.crc32(repr([_content(query) for query in table.queries]).encode())
        call = (seed, draws, repr(of), repr(total))
        answers[table.name] = posterior.answer(draws, [seed, mark], {mark: call})
    return answers if len(answers) > 1 else next(iter(answers.values()))


def _content(query: Query) -> tuple[Any, ...]:
    values = np.ma.filled(np.ma.asarray(query.values, dtype=float), np.nan)
    return query.name, values.tobytes(), repr(query.mechanism), query.dims, query.coords


def _of_each(prior: Any, tables: Sequence[Table]) -> list[Any]:
    """Return the prior of each table."""
    if not isinstance(prior, dict):
        return [prior] * len(tables)
    names = [table.name for table in tables]
    known(prior, names, "prior: there is no statistic")
    return [prior.get(name, "flat") for name in names]


def _tables(release: "Release", margins: bool | None, within: Within | None) -> list[Table]:
    """Group queries into tables: those that are margins of one table belong together."""
    queries = list(release)
    for query in queries:
        if not np.size(query.values):
            raise ValueError(f"'{query.name}': nothing was released, as its values are empty")
    if margins is not None:
        flag(margins, "margins")
    if within is not None and margins is False:
        raise ValueError("within groups dims of one table, but margins=False means several tables")
    if margins or within is not None:
        return [joint_table(queries, within)]
    by_dims = {frozenset(dim for dim in query.dims if dim): query.name for query in queries}
    if margins is None and len(by_dims) > 1:
        one, other, *_ = by_dims.values()
        raise ValueError(
            f"'{one}' and '{other}' have different dims: say margins=True if all queries are "
            "margins of one table, or margins=False if each is a statistic of its own"
        )
    return [table_of_query(query) for query in queries]


def _known(table: Table, total: Any) -> Known:
    """Read the known sums of a table's cells."""
    if total is None:
        return []
    if hasattr(total, "to_xarray"):
        total = total.to_xarray()
    if not isinstance(total, xr.DataArray):
        if np.ndim(total):
            raise TypeError(
                "total must be a whole number, or totals with labels in a DataArray or a pandas "
                f"Series, got {shown(total)}"
            )
        total = xr.DataArray(total)
    whole_numbers(total.values, "total", at_least=0)
    known(total.dims, table.dims, "total: there is no dim")
    for dim in total.dims:
        own, given = table.coords.get(str(dim)), total.coords.get(dim)
        if own is not None and (given is None or set(own) != set(given.values.tolist())):
            raise ValueError(f"total: its labels along '{dim}' aren't those of the release: {own}")
        if own is not None:
            total = total.sel({dim: own})
    numbers = xr.DataArray(np.arange(total.size).reshape(total.shape), dims=total.dims)
    of = spread(numbers, table.dims, table.shape)
    return [(of, total.values.reshape(-1).astype(int))]


@dataclass(frozen=True)
class Posterior:
    """The posterior of the cells of one table.

    Cells without further information are drawn one by one, cells with nested sums by the tree of
    these sums, all others by a chain.

    Attributes
    ----------
    table : Table
        The table, with its released margins.
    prior : Prior
        The prior of its cells.
    known : list
        Known sums: the number of the sum that each cell belongs to, and the sums.

    Raises
    ------
    ValueError
        If sums are known, but cells aren't counts.
    """

    table: Table
    prior: Prior
    known: Known

    def __post_init__(self) -> None:
        if not self.alone and (not self.prior.whole or self.prior.lowest < 0):
            raise ValueError(
                f"'{self.table.name}': total= and margins are for counts from 0 on, and don't go "
                f"with this prior: {self.prior.describe(total=False)}"
            )

    @property
    def groups(self) -> list[np.ndarray]:
        """For each released or known margin, the number of the sum that each cell belongs to."""
        return [*self.table.groups, *(of for of, _ in self.known)]

    @property
    def alone(self) -> bool:
        """Whether cells are independent of each other."""
        return len(self.groups) == len(self.table.of_cells) == 1

    def answer(self, draws: int, seed: list[int], source: dict[Any, Any]) -> Answer:
        """Draw, and describe the method."""

        def answer_of(
            prior: Prior, found: tuple[np.ndarray, str], other: Callable[[], Answer | None] | None
        ) -> Answer:
            counts, method = found
            is_total = self.known if prior.kind == "flat" else self._total is not None
            provenance = Provenance(method, prior.describe(total=bool(is_total)), source)
            array = self.table.as_array(counts)
            return Answer(array, provenance, released=self.table.released(), other=other)

        def other() -> Answer | None:
            again = replace(self, prior=self.prior.other)
            under = again._instead_of(drawn[0], np.random.default_rng(seed))
            return None if under is None else answer_of(again.prior, under, None)

        drawn = self.draw(draws, np.random.default_rng(seed))
        return answer_of(self.prior, drawn, other)

    def _instead_of(
        self, counts: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, str] | None:
        """Make draws from those under the other prior; None if that isn't cheap."""
        draws = counts.shape[1]
        is_tree = not self.alone and are_nested(self.groups)
        is_fast = is_tree and (self.prior.kind == "flat" or self.table.size <= FEW)
        if self.alone or (is_fast and not self.prior.is_bent):
            return self.draw(draws, rng)
        if is_tree and self.prior.kind == "smooth":
            return self._at_likeliest(draws, rng)
        if len(counts) > MOST_WEIGHED:
            return None
        if self.prior.is_bent:
            logs = self.prior.log_weight(counts).sum(axis=0)
        else:
            sign = 1 if self.prior.kind == "smooth" else -1
            logs = sign * log_marginal(counts, self._total)
        p = np.exp(logs - logs.max())
        p /= p.sum()
        if p @ p * draws > LEAST_SHARE**-1:
            return None
        return counts[:, rng.choice(draws, draws, p=p)], WEIGHED

    def _at_likeliest(self, draws: int, rng: np.random.Generator) -> tuple[np.ndarray, str] | None:
        """Draw by the tree, at the parameters that are most likely given the single cells."""
        if not self.table.of_cells:
            return None
        law = law_of(self.table.of_cells[0], whole=True)
        cells = SharingCells(tabulate(law, self.prior.support(), pieces=None))
        grid = grid_of(cells.log_evidence, self._start([law]))
        best = int(grid.weights.argmax())
        tree = self._tree([law_of(query, whole=True) for query in self.table.queries])
        return tree.draw(draws, rng, _size_and_p(grid.alpha[best], grid.mu[best])), TREE

    def draw(self, draws: int, rng: np.random.Generator) -> tuple[np.ndarray, str]:
        """Draw all cells, of shape (cells, draws), and describe the method."""
        if self.alone:
            return self._by_cells(draws, rng), CELLS
        laws = [law_of(query, whole=True) for query in self.table.queries]
        if are_nested(self.groups):
            return self._by_tree(laws, draws, rng), TREE
        from pymc_dapper.answers.chain import draw_chain

        likely = self._likely(laws)
        groups = self.table.groups
        return draw_chain(laws, groups, self.known, self.prior, likely, draws, rng)

    def _by_cells(self, draws: int, rng: np.random.Generator) -> np.ndarray:
        [query], prior = self.table.queries, self.prior
        discrete = DiscreteLaplaceMechanism | DiscreteGaussianMechanism | PerturbedCounts
        if not prior.whole and isinstance(query.mechanism, discrete):
            raise ValueError(
                f"'{query.name}': {type(query.mechanism).__name__} adds whole numbers to counts: "
                "write prior=range(lower, upper + 1) in the place of (lower, upper)"
            )
        law = law_of(query, whole=prior.whole, apart=prior.each_cell)
        if prior.kind == "smooth":
            return self._sharing(law, draws, rng)
        tables = tabulate(law, prior.support())
        bend = None
        if prior.is_bent:
            bend = prior.log_weight((tables.nodes[:, :-1] + tables.nodes[:, 1:] - prior.whole) / 2)
        return draw_cells(tables, probabilities(tables, bend), draws, rng)

    def _sharing(self, law: CellLaw, draws: int, rng: np.random.Generator) -> np.ndarray:
        """Draw cells that share strength; widen windows until no draw is near an end.

        The prior may lead far from the likely values of single cells.
        """
        drop, support = DROP, self.prior.support()
        while True:
            tables = tabulate(law, support, drop=drop, pieces=None)
            cells = SharingCells(tables)
            counts = cells.draw(grid_of(cells.log_evidence, self._start([law])), draws, rng)
            low, high = tables.inner(support, MARGIN - drop)[:, tables.which]
            inside = np.all((counts.min(axis=1) >= low) & (counts.max(axis=1) <= high))
            if inside or drop >= LARGEST_DROP:
                return counts
            drop = min(2 * drop, LARGEST_DROP)

    def _tree(self, laws: Sequence[CellLaw]) -> SumsTree:
        sums = [Sums(of, law) for of, law in zip(self.table.groups, laws, strict=True)]
        sums += [Sums(of, values) for of, values in self.known]
        return SumsTree(self.table.size, sums, (self.prior.lowest, self.prior.highest))

    def _by_tree(self, laws: Sequence[CellLaw], draws: int, rng: np.random.Generator) -> np.ndarray:
        tree = self._tree(laws)
        if self.prior.kind == "flat":
            return tree.draw(draws, rng)
        total = self._total

        def log_evidence(alpha: np.ndarray, mu: np.ndarray) -> np.ndarray:
            points = zip(alpha.tolist(), mu.tolist(), strict=True)
            found = np.array([tree.log_evidence(_size_and_p(*point)) for point in points])
            if total is None:
                return found
            # The total is given: parameters say nothing about it.
            k = self.table.size
            return found - log_pmf(np.array(total), k * alpha, k * mu)

        grid = grid_of(log_evidence, self._start(laws), free_mean=total is None)
        times = rng.multinomial(draws, grid.weights)
        points = zip(grid.alpha, grid.mu, times, strict=True)
        parts = [tree.draw(int(n), rng, _size_and_p(alpha, mu)) for alpha, mu, n in points if n]
        return np.concatenate(parts, axis=1)[:, rng.permutation(draws)]

    @property
    def _total(self) -> int | None:
        """The sum of all cells, if it is known."""
        return next((int(values[0]) for of, values in self.known if not of.any()), None)

    def _likely(self, laws: Sequence[CellLaw]) -> np.ndarray:
        """Return approximate likely counts of all cells, by the query with the most entries."""
        finest = max(range(len(laws)), key=lambda k: laws[k].which.size)
        law, of = laws[finest], self.table.groups[finest]
        counts = law.near[law.which][of] / np.bincount(of)[of]
        return np.clip(np.round(counts), self.prior.lowest, self.prior.highest).astype(np.int64)

    def _start(self, laws: Sequence[CellLaw]) -> tuple[float, float]:
        """Return logarithms of a concentration and of a mean, where a search begins."""
        totals = [float(values.sum()) / self.table.size for _, values in self.known]
        mean = totals[0] if totals else float(self._likely(laws).mean())
        return 0.5, float(np.log(max(mean, 0.5)))


def _size_and_p(alpha: float, mu: float) -> tuple[float, float]:
    """Return the parameters of a negative binomial law in the form that trees use."""
    return float(alpha), float(alpha / (alpha + mu))
