"""A model's counts on a tree, drawn jointly.

Tables of log-weights are made by a PyTensor operation. Its kernel is compiled once, and given the
model's terms, as with the sweeps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from numba import njit, types

from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.backend.numba_ops import compiles, numba_njit
from pymc_dapper.counts.compiled.op import INTEGERS, NUMBERS, OfTerms, Places
from pymc_dapper.counts.compiled.sweep import context_of, layout_of, term_function
from pymc_dapper.counts.reading.description import name_cells
from pymc_dapper.counts.reading.model import CountReading
from pymc_dapper.counts.reading.tree import TreeReading
from pymc_dapper.counts.trees import compiled, weights
from pymc_dapper.counts.trees.forest import LARGEST_DROP, wider
from pymc_dapper.counts.trees.messages import DROP, TAIL_MASS, Messages
from pymc_dapper.counts.trees.nodes import Nodes
from pymc_dapper.counts.trees.tables import GROWS, IMPOSSIBLE, TOO_WIDE, Tables, Terms, tabulate
from pymc_dapper.graphs.errors import ReadingError


class TabulateTree(OfTerms):
    """Tables, from the last arguments of :func:`tabulate` and the arrays of :class:`Terms`.

    Then come the context of the terms, and the arrays of `Places`. The outputs are the fields of
    :class:`Tables`, the last two in one vector.
    """

    results = (*[pt.lvector] * 2, *[pt.dvector] * 3, *[pt.lvector] * 2)


RETURNED = types.Tuple((*[INTEGERS] * 2, *[NUMBERS] * 3, *[INTEGERS] * 2))


@njit
def tabulate_tree(
    log_weight: Callable[..., float], context: tuple[Any, ...], near: np.ndarray, drop: float,
    tilted: bool, left: np.ndarray, right: np.ndarray, exact: np.ndarray, starts: np.ndarray,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """Tabulate, from arrays to arrays."""
    terms = Terms(left, right, exact, starts)
    tables = tabulate(log_weight, context, terms, near, drop, tilted)
    return (*tables[:6], np.array([tables.fault, tables.at]))


@compiles(TabulateTree)
def _tabulate(op: TabulateTree) -> Callable:
    takes = INTEGERS, types.float64, types.boolean, *[INTEGERS] * 4
    tabulate_all = op.given_to(tabulate_tree, RETURNED, *takes)

    @numba_njit
    def tabulated(near, drop, tilted, left, right, exact, starts, *context):  # type: ignore[no-untyped-def]
        return tabulate_all(context, near, drop.item(), tilted.item(), left, right, exact, starts)

    return tabulated


class NoTreeError(ReadingError):
    """Counts can't be drawn on their tree."""


class SolvedCounts(NamedTuple):
    """The upward messages of all sums, given parameters."""

    tables: Tables
    nodes: Nodes
    messages: Messages


@dataclass(frozen=True)
class ModelTree:
    """The tree of a model's counts, with compiled tables of its terms.

    Attributes
    ----------
    reading : CountReading
        The reading of the counts.
    tree : TreeReading
        The tree of the sums.
    left, right : ndarray of int64, shape (number of nodes in post-order,)
        The same in post-order, with nodes in between, as in :class:`Nodes`.
    """

    reading: CountReading
    tree: TreeReading
    left: np.ndarray
    right: np.ndarray
    origin: np.ndarray
    """The number of each in the reading; -1 for those in between."""
    cells: np.ndarray
    """Int64, shape (number of leaves,): their cells, in the order of the nodes."""
    roots: np.ndarray
    """Int64: the places of roots."""
    _tabulate: JitFunction

    @cached_property
    def places(self) -> np.ndarray:
        """The places of leaves."""
        return np.flatnonzero(self.left < 0)

    @cached_property
    def _runs(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the leaves of each sum begin and end: its subtree is a run of nodes."""
        sizes, _ = compiled.cut(self.left, self.right, 0)
        after = 1 + np.arange(sizes.size)
        begin, end = np.searchsorted(self.places, [after - sizes, after])
        return begin, end

    def sums(self, counts: np.ndarray) -> np.ndarray:
        """Return the sum of each node: int64, shape (number of nodes in post-order,)."""
        cumulated, (begin, end) = np.append(0, np.cumsum(counts[self.cells])), self._runs
        return cumulated[end] - cumulated[begin]

    def solve(self, counts: np.ndarray, given: Sequence[np.ndarray]) -> SolvedCounts:
        """Pass messages up, in windows that are wide enough.

        Parameters
        ----------
        counts : ndarray of int64, shape (number of cells,)
            Possible counts. The result doesn't depend on the choice.
        given : sequence of ndarray
            Parameters and data.

        Raises
        ------
        NoTreeError
            If the tables of log-weights would be too large, if a sum's log-weights have no maximum,
            or if the neglected share can't be bounded.
        """
        drop: float | None = DROP
        at, near = -1, self.sums(counts)
        while drop is not None:
            tables = self.tables(counts, given, drop)
            nodes = self._nodes(near, tables)
            messages = compiled.ascend(nodes, drop, True)
            most, at = np.inf, messages.impossible
            if at < 0:
                _, most, _ = compiled.bound_neglected(nodes, messages)
                most += 1  # a table may not have the largest log-weight, up to that
            if most <= np.log(TAIL_MASS):
                return SolvedCounts(tables, nodes, messages)
            drop = wider(drop, most)
        raise self._at_fault(at, 0)

    def draw(self, rng: np.random.Generator, solved: SolvedCounts) -> np.ndarray:
        """Draw all counts: int64, shape (number of cells,)."""
        counts = np.empty((self.left.size, 1), dtype=np.int64)
        compiled.draw_roots(rng, self.roots, solved.messages, counts)
        compiled.split_draws(rng, solved.nodes, solved.messages, counts)
        table = np.zeros(self.reading.n_cells, dtype=np.int64)
        table[self.cells] = counts[self.places, 0]
        return self.reading.totals.completed(table)

    def log_weight(self, solved: SolvedCounts, counts: np.ndarray) -> float:
        """Return the logarithm of a table's weight, relative to that of the possible counts."""
        tables, sums = solved.tables, self.sums(counts)
        seen = np.flatnonzero(np.diff(tables.starts))
        at = sums[seen] - tables.lowest[seen]
        inside = (at >= 0) & (at < np.diff(tables.starts)[seen])
        if not inside.all():
            return -np.inf
        values = tables.values[tables.starts[seen] + at]
        return float(values.sum() + tables.tops.sum())

    def tables(self, counts: np.ndarray, given: Sequence[np.ndarray], drop: float = DROP) -> Tables:
        """Tabulate the log-weights of all sums.

        Parameters
        ----------
        counts, given
            As in :meth:`solve`.
        drop : float
            Windows end where log-weights are at least this far below the maximum.

        Raises
        ------
        NoTreeError
            As :meth:`solve`.
        """
        near = self.sums(counts)
        first: tuple[int, int] | None = None
        while True:
            for tilted in (True, False):
                arguments = np.asarray(drop), np.asarray(tilted)
                *found, faults = self._tabulate(near, *arguments, *given)
                tables = Tables(*found, *faults.tolist())
                first = (tables.at, tables.fault) if first is None else first
                if tables.fault not in (GROWS, TOO_WIDE):
                    break
            # In wider windows, parts come to more.
            if tables.fault != GROWS or drop >= LARGEST_DROP:
                break
            drop = min(4 * drop, LARGEST_DROP)
        if tables.fault:
            assert first is not None
            raise self._at_fault(*first)
        return tables

    def _nodes(self, near: np.ndarray, tables: Tables) -> Nodes:
        n, is_leaf = self.left.size, self.left < 0
        exact = np.zeros(n, dtype=bool)
        named = self.origin >= 0
        exact[named] = self.tree.exact[self.origin[named]]
        seen = np.diff(tables.starts) > 0
        numbers = np.arange(n, dtype=np.float64)
        noise = np.where(seen, weights.TABLE, weights.NONE)
        noise[exact] = weights.EXACT
        noise[is_leaf] = weights.NONE
        return Nodes(
            self.left,
            self.right,
            noise,
            np.where(noise == weights.EXACT, near.astype(np.float64), numbers),
            np.zeros(n),
            np.where(is_leaf, weights.OF_TABLE, weights.FLAT),
            numbers,
            tables.beyond,
            tables.highest,
            tables.starts,
            tables.lowest,
            tables.values,
        )

    def _at_fault(self, at: int, fault: int) -> NoTreeError:
        seen = np.zeros(self.reading.n_cells, dtype=bool)
        begin, end = (x[at] for x in self._runs)
        seen[self.cells[begin:end] if at >= 0 else self.cells] = True
        names = name_cells(self.reading, seen)
        if fault == IMPOSSIBLE:
            why = "their log-density is -inf or nan at the chain's state"
        elif fault == GROWS:
            why = "the log-density of their sum has no maximum in the sum's range"
        elif fault:
            why = "the release leaves too many values of them possible to tabulate all"
        else:
            why = (
                "the log-density at the chain's state is below its maximum by more than "
                f"{LARGEST_DROP:.0f}"
            )
        return NoTreeError(
            f"the counts {names} can't be drawn on their tree: {why}. Use CountStep with tree=False"
        )


def compile_tree(reading: CountReading, tree: TreeReading, options: dict[str, Any]) -> ModelTree:
    """Compile the draws of a model's counts on their tree.

    Parameters
    ----------
    reading : CountReading
        The reading of the counts.
    tree : TreeReading
        The tree of its sums.
    options : dict
        Passed on to PyMC's ``compile``. The mode must be one of numba's.
    """
    left, right, origin = compiled.in_post_order(tree.parent)
    n = left.size
    place = np.empty(tree.parent.size, dtype=np.int64)
    place[origin[origin >= 0]] = np.flatnonzero(origin >= 0)
    cells = tree.cells[np.argsort(place[: tree.cells.size])]
    roots = np.setdiff1d(np.arange(n), np.concatenate([left, right]))

    # The terms of each node, in post-order.
    layout = layout_of(reading)
    lengths, exact = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    lengths[place] = np.diff(tree.term_starts)
    exact[place] = tree.exact
    starts = np.cumsum([0, *lengths], dtype=np.int64)
    node_of = np.repeat(place, np.diff(tree.term_starts))
    order = np.argsort(node_of, kind="stable")
    slopes = np.zeros(layout.kinds.size)
    slopes[tree.terms] = tree.weights
    of_layout = np.zeros(slopes.size), layout.kinds, layout.first, layout.contexts
    places = Places(starts, tree.terms[order], slopes, *of_layout)
    fixed = [*map(pt.constant, (left, right, exact, starts)), context_of(reading)]
    functions = tuple(term_function(each) for each in reading.terms)
    given = [*reading.parameters, *reading.data.values()]
    near, drop, tilted = pt.lvector("near"), pt.dscalar("drop"), pt.scalar("tilted", dtype="bool")
    tables = TabulateTree(functions)(near, drop, tilted, *fixed, *map(pt.constant, places))
    return ModelTree(
        reading,
        tree,
        left,
        right,
        origin,
        cells,
        roots,
        JitFunction([near, drop, tilted, *given], tables, reading.model, options),
    )
