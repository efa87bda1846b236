"""Tables with nested sums: exact, independent draws by the trees of `counts.trees`."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pymc_dapper.answers.law import CellLaw
from pymc_dapper.answers.windows import LARGEST, LARGEST_DROP, Support, Tables, tabulate
from pymc_dapper.counts.trees import weights
from pymc_dapper.counts.trees.forest import ContradictionError, Forest, Releases, Solved
from pymc_dapper.counts.trees.priors import Prior, to_tables

DROP = 60.0
"""Windows of single sums first end where log-weights are this far below the maximum."""
MARGIN = 25.0
"""A window is widened if a draw comes this close to its ends."""
NO_TABLE = (
    "no table of counts fits the released cells and sums, or only a very unlikely one. Look for a "
    "wrong scale, a wrong total, or queries that aren't margins of one table"
)


class Sums(NamedTuple):
    """Sums of cells about which something is known."""

    of: np.ndarray
    """Int64, shape (cells,): the number of the sum that each cell belongs to."""
    known: CellLaw | np.ndarray
    """The law of the released sums; or the exact sums, int64."""


class Windows:
    """Tables of sums: log-weights of the counts in their windows."""

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []
        self.lowest: list[int] = []
        self.inner: list[list[int]] = []
        """Counts away from the ends of their table, unless nothing is possible beyond."""

    def add(
        self, found: Tables, support: Support, drop: float, rows: np.ndarray | None = None
    ) -> np.ndarray:
        """Add tables, one for each row or for some, and return their numbers."""
        first, ends = len(self.rows), found.inner(support, MARGIN - drop).T.tolist()
        for row in range(len(found.nodes)) if rows is None else rows:
            counts = found.nodes[row]
            self.rows.append(found.logs[row, :-1][np.diff(counts) > 0])
            self.lowest.append(int(counts[0]))
            self.inner.append(ends[row])
        return np.arange(first, len(self.rows))

    def hold(self, number: np.ndarray, counts: np.ndarray) -> bool:
        """Whether counts, of shape (sums, draws), stay away from the ends of their tables."""
        seen = np.flatnonzero(number >= 0)
        if not seen.size:
            return True
        low, high = np.array(self.inner)[number[seen]].T
        return bool(np.all((counts[seen].min(1) >= low) & (counts[seen].max(1) <= high)))


class SumsTree:
    """The tree of known cells and sums of a table.

    Parameters
    ----------
    n_cells : int
        Number of cells.
    sums : sequence of Sums
        Known sums, which are nested or disjoint.
    limits : tuple of int
        The smallest and the largest count of a cell.
    """

    def __init__(self, n_cells: int, sums: Sequence[Sums], limits: tuple[int, int] = (0, LARGEST)):
        self.n_cells, self._known, self._limits = n_cells, [each.known for each in sums], limits
        exact = [int(known.max()) for known in self._known if isinstance(known, np.ndarray)]
        self._largest = min([LARGEST, *exact])
        members: list[tuple[np.ndarray, int, int]] = []
        for k, (of, _) in enumerate(sums):
            order, ends = np.argsort(of, kind="stable"), np.cumsum(np.bincount(of))[:-1]
            members += [(cells, k, j) for j, cells in enumerate(np.split(order, ends))]
        members.sort(key=lambda each: each[0].size)
        self._place(members)
        self._drop, (self._windows, self._number) = DROP, self._tabulated(DROP)

    def _place(self, members: Sequence[tuple[np.ndarray, int, int]]) -> None:
        """Build the tree: the parent of a sum is the next larger sum with its cells.

        A second piece of information about the same cells is a node with one child.
        """
        top = np.arange(self.n_cells)
        parent, sizes = [-1] * self.n_cells, [1] * self.n_cells
        self._about = [(-1, -1)] * self.n_cells
        """For each node: its element of ``sums``, and its number there."""
        for cells, k, j in members:
            if cells.size == 1 and self._about[cells[0]][0] < 0:
                self._about[cells[0]] = (k, j)
                continue
            for child in np.unique(top[cells]):
                parent[child] = len(parent)
            top[cells] = len(parent)
            parent.append(-1)
            sizes.append(cells.size)
            self._about.append((k, j))
        self._parent, self._sizes = np.array(parent), np.array(sizes)

    def _tabulated(self, drop: float) -> tuple[Windows, np.ndarray]:
        """Tabulate the release, once for all nodes with the same released value.

        Also return the table of each node; -1 for none.
        """
        windows = Windows()
        number = np.full(self._parent.size, -1)
        which, place = np.array(self._about).T
        for k, law in enumerate(self._known):
            if not isinstance(law, CellLaw):
                continue
            for size in np.unique(self._sizes[which == k]):
                nodes = np.flatnonzero((which == k) & (self._sizes == size))
                low, high = (int(size) * end for end in self._limits)
                high = min(high, LARGEST if size > 1 else self._largest)
                support = Support(low, high, True)
                found = tabulate(law, support, drop=drop, pieces=None)
                used, at = np.unique(law.which[place[nodes]], return_inverse=True)
                number[nodes] = windows.add(found, support, drop, used)[at]
        low, high = self._limits
        if high < LARGEST and np.any(number[: self.n_cells] < 0):
            number[: self.n_cells][number[: self.n_cells] < 0] = len(windows.rows)
            windows.rows.append(np.zeros(high - low + 1))
            windows.lowest.append(low)
            windows.inner.append([low, high])
        return windows, number

    def _forest(self, prior: tuple[float, float] | None) -> tuple[Forest, Solved]:
        n, windows = self._parent.size, self._windows
        noise = np.where(self._number < 0, weights.NONE, weights.TABLE)
        released = np.maximum(self._number, 0).astype(np.float64)
        for node, (k, j) in enumerate(self._about):
            known = self._known[k] if k >= 0 else None
            if isinstance(known, np.ndarray):
                noise[node], released[node] = weights.EXACT, known[j]
        kind, first, second = np.zeros((3, n))
        if prior is not None:
            kind[: self.n_cells] = weights.NEGATIVE_BINOMIAL
            first[: self.n_cells], second[: self.n_cells] = prior
        law = Prior(kind, first, second, to_tables(windows.rows, windows.lowest))
        forest = Forest(self._parent, Releases(noise, released, np.zeros(n)), law)
        if forest.endless is not None:
            raise ValueError(
                "some cells are unbounded: neither these cells nor sums of them were released. "
                "Give total="
            )
        return forest, forest.solve()

    def log_evidence(self, prior: tuple[float, float] | None = None) -> float:
        """Return the log-probability of all known sums, cells marginalised; -inf if impossible.

        Parameters
        ----------
        prior : tuple of float, optional
            Size and probability of the negative binomial prior of cells; flat by default.
        """
        try:
            return self._forest(prior)[1].log_evidence
        except ContradictionError:
            return -np.inf

    def draw(
        self, draws: int, rng: np.random.Generator, prior: tuple[float, float] | None = None
    ) -> np.ndarray:
        """Draw all cells, independently: shape (cells, draws).

        Windows are widened until no draw comes close to their ends.

        Raises
        ------
        ValueError
            If no table fits the known sums.
        """
        while True:
            [own] = rng.spawn(1)
            try:
                forest, solved = self._forest(prior)
                counts = forest.draw(solved, draws, own).T
                if self._windows.hold(self._number, counts) or self._drop >= LARGEST_DROP:
                    return counts[: self.n_cells]
            except ContradictionError:
                if self._drop >= LARGEST_DROP:
                    raise ValueError(NO_TABLE) from None
            self._drop = min(2 * self._drop, LARGEST_DROP)
            self._windows, self._number = self._tabulated(self._drop)
