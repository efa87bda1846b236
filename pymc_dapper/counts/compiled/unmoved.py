"""Find cells that no move changed in a whole chain, though the log-density would allow it.

A reader can't know every way in which a model ties counts together. If it misses one, no move leads
to other tables, and the chain looks converged. So in the middle of a chain, other changes of
unmoved cells are tried: of a cell alone, with each other cell in one of its terms, and in short
combinations that keep the known equations.

A single table of the chain says little about a change, even if the other table is as probable:
someone in a rare cell could as well be in another rare cell, and a chain never visits most of
these. But the ratio of both probabilities, averaged over the chain, is the probability of the
tables to which the change leads. So the same changes are evaluated again until the chain ends.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from pymc_dapper.counts.kernels.lattice import reduce_basis
from pymc_dapper.counts.reading.blocks import MAX_BLOCK_CELLS, integer_kernel
from pymc_dapper.counts.reading.model import CountReading

LogDensity = Callable[[np.ndarray], float]

EXPECTED = 20.0
"""A warning needs so many expected visits to other values, of which none was made: the chance of
that is exp(-20)."""
LOOKS = 10
"""Number of tables at which changes are evaluated again."""
MAX_TRIED = 1_000
"""Most tables that are evaluated in the middle of the chain."""
MAX_KEPT = 4
"""Most changes of a cell that are evaluated again."""
MAX_PARTNERS = 20
"""Most cells that are tried together with one cell."""


class Change(NamedTuple):
    """A change of some cells, and the number of tables at which it was likely."""

    cells: np.ndarray
    steps: np.ndarray
    likely: int = 0


def looks(n_sweeps: int) -> list[int]:
    """Return after which sweeps evaluations are due: in the middle, LOOKS more until the last."""
    if n_sweeps < 4 * EXPECTED:
        return []
    return [-(-number * n_sweeps // (2 * LOOKS)) for number in range(LOOKS, 2 * LOOKS + 1)]


def find_changes(
    reading: CountReading,
    log_density: LogDensity,
    table: np.ndarray,
    moved: np.ndarray,
    n_sweeps: int,
) -> list[Change]:
    """Find changes of unmoved cells to tables that are nearly as probable as this one.

    ``log_density`` is of tables that satisfy the known equations; ``moved`` marks cells that have
    moved, and ``n_sweeps`` is the length of the chain.
    """
    found: list[Change] = []
    if moved.all():
        return found
    seen, left = np.zeros(len(table), dtype=bool), MAX_TRIED
    least = log_density(table) + _least(n_sweeps)
    known = reading.known.matrix
    changes = _Changes(reading, known)
    # Empty cells come last: most of them must be empty.
    for cell in np.argsort(-table, kind="stable"):
        if moved[cell] or seen[cell]:
            continue
        kept = 0
        for change in changes.of(cell):
            new = table + change
            if new[change != 0].min(initial=0) < 0 or np.any(known @ change):
                continue
            left -= 1
            if left < 0:
                return found
            if log_density(new) > least:
                cells = np.flatnonzero(change)
                found.append(Change(cells, change[cells]))
                seen |= reading.totals.completed(change) != 0
                kept += 1
            if kept == MAX_KEPT:
                break
    return found


def look_again(
    changes: list[Change], log_density: LogDensity, table: np.ndarray, n_sweeps: int
) -> list[Change]:
    """Evaluate changes at another table."""
    if not changes:
        return changes
    least = log_density(table) + _least(n_sweeps)

    def is_likely(change: Change) -> bool:
        new = table.copy()
        new[change.cells] += change.steps
        return bool(new[change.cells].min() >= 0 and log_density(new) > least)

    return [change._replace(likely=change.likely + is_likely(change)) for change in changes]


def held_cells(changes: list[Change], reading: CountReading, moved: np.ndarray) -> np.ndarray:
    """Return cells that should have moved in a chain and didn't: changes are mostly likely."""
    return held_by([x for x in changes if 2 * x.likely > LOOKS], reading, moved)


def held_by(changes: list[Change], reading: CountReading, moved: np.ndarray) -> np.ndarray:
    """Return unmoved cells in any of these changes, and their latent totals."""
    held = np.zeros(len(moved), dtype=bool)
    for change in changes:
        whole = np.zeros(len(moved), dtype=np.int64)
        whole[change.cells] = change.steps
        held |= ~moved & (reading.totals.completed(whole) != 0)
    return held


def _least(n_sweeps: int) -> float:
    """Return the logarithm of the ratio which a likely change has.

    If half of all tables reach it, the average ratio is at least half of it.
    """
    return float(np.log(2 * EXPECTED / n_sweeps))


class _Changes:
    """Small changes of the free cells."""

    def __init__(self, reading: CountReading, known: sparse.csr_array):
        self._sums = reading.totals.sums
        seen = [sum(abs(matrix) for matrix in terms.linear.values()) for terms in reading.terms]
        for whole in reading.wholes:
            rows = sum(abs(at.matrix).sum(axis=0) for at in whole.linear.values())
            seen.append(sparse.csr_array(np.atleast_2d(rows)))
        self._seen = sparse.vstack(seen, format="csr")
        self._rng = np.random.default_rng(0)
        self._combinations = np.zeros((0, reading.n_cells), dtype=np.int64)
        if known.shape[0] and reading.n_cells <= MAX_BLOCK_CELLS:
            basis = integer_kernel(known.toarray().astype(np.int64))
            self._combinations = reduce_basis(basis, np.eye(reading.n_cells))

    def of(self, cell: int) -> Iterator[np.ndarray]:
        """Yield changes of a cell, or of the cells that it sums."""
        parts = self._some(self._sums[[cell]].indices)
        ups = np.zeros((len(parts), self._sums.shape[0]), dtype=np.int64)
        ups[np.arange(len(parts)), parts] = 1
        for up in ups:
            yield from (up, -up)
        for part, up in zip(parts, ups, strict=True):
            for partner in self._some(self._partners(part)):
                for step in (-1, 1):
                    both = up.copy()
                    both[partner] += step
                    yield from (both, -both)
        for change in self._combinations[np.any(self._combinations[:, parts], axis=1)]:
            yield from (change, -change)

    def _partners(self, cell: int) -> np.ndarray:
        """Return the cells that share a term with this one."""
        terms = self._seen[:, [cell]].nonzero()[0]
        cells = np.unique(self._seen[terms].indices)
        return cells[cells != cell]

    def _some(self, cells: np.ndarray) -> np.ndarray:
        return cells if len(cells) <= MAX_PARTNERS else self._rng.choice(cells, MAX_PARTNERS, False)
