"""Cells that no move changed in a whole chain, though the log-density would allow it.

A reader can't know every way in which a model holds counts together. Where it misses one, no move
leads to other tables, and the chain looks as if it had converged. So in the middle of a chain other
changes are tried of what hasn't moved: a cell by itself, with each of the cells that a term sees
along with it, and in short combinations that keep what is known exactly.

How probable the other table is beside one table of the chain says little: where someone is in a
rare cell just then, it is as probable that he is in another one, and most of those are never met.
But averaged over the chain, the ratio of a change is the probability of the tables that it leads
to. So the same changes are looked at again and again until the chain ends.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pymc_dapper.counts.kernels.lattice import reduce_basis
from pymc_dapper.counts.reading.blocks import MAX_BLOCK_CELLS, integer_kernel
from pymc_dapper.counts.reading.model import CountReading

Counts = NDArray[np.int64]
Cells = NDArray[np.bool_]
LogDensity = Callable[[Counts], float]

EXPECTED = 20.0
"""So often a chain would have met other values, at least, before not having met them is told: by
chance that happens to exp(-20) of the cells."""
LOOKS = 10
"""Tables at which changes are looked at again."""
MAX_TRIED = 1_000
"""Tables that are looked at, at most, in the middle of the chain."""
MAX_KEPT = 4
"""Changes of a cell that are looked at again, at most."""
MAX_PARTNERS = 20
"""Cells that are tried along with one, at most."""


class Change(NamedTuple):
    """A change of some cells, and at how many tables the chain should have made it."""

    cells: Counts
    steps: Counts
    likely: int = 0


def look_after(sweep: int, n_sweeps: int) -> int:
    """Say which look is due after a sweep: 0 in a chain's middle, LOOKS at its end, -1 if none."""
    if n_sweeps < 4 * EXPECTED:
        return -1
    number, since = divmod(2 * LOOKS * sweep, n_sweeps)
    return number - LOOKS if since < 2 * LOOKS and number >= LOOKS else -1


def find_changes(
    reading: CountReading, log_density: LogDensity, table: Counts, moved: Cells, n_sweeps: int
) -> list[Change]:
    """Find changes of cells that haven't moved, to tables that are nearly as probable as this one.

    ``log_density`` is that of a table that satisfies what is known exactly; ``moved`` says which
    cells have moved, and ``n_sweeps`` how long the chain will be.
    """
    found: list[Change] = []
    if moved.all():
        return found
    seen, left = np.zeros(len(table), dtype=bool), MAX_TRIED
    least = log_density(table) + _least(n_sweeps)
    known = reading.equations
    changes = _Changes(reading, known)
    # An empty cell mostly is one that can't hold anyone: those come last.
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
    changes: list[Change],
    reading: CountReading,
    log_density: LogDensity,
    table: Counts,
    moved: Cells,
    n_sweeps: int,
) -> list[Change]:
    """Look at changes at another table, and forget those of which all cells have moved by now."""
    changes = [change for change in changes if held_by([change], reading, moved).any()]
    if not changes:
        return changes
    least = log_density(table) + _least(n_sweeps)

    def is_likely(change: Change) -> bool:
        new = table.copy()
        new[change.cells] += change.steps
        return bool(new[change.cells].min() >= 0 and log_density(new) > least)

    return [change._replace(likely=change.likely + is_likely(change)) for change in changes]


def held_cells(changes: list[Change], reading: CountReading, moved: Cells) -> Cells:
    """Say which cells should have moved in a chain and didn't: by changes likely at most tables."""
    return held_by([x for x in changes if 2 * x.likely > LOOKS], reading, moved)


def held_by(changes: list[Change], reading: CountReading, moved: Cells) -> Cells:
    """Say which cells that haven't moved are in any of these changes, or are totals of such."""
    held = np.zeros(len(moved), dtype=bool)
    for change in changes:
        whole = np.zeros(len(moved), dtype=np.int64)
        whole[change.cells] = change.steps
        held |= ~moved & (reading.totals.completed(whole) != 0)
    return held


def _least(n_sweeps: int) -> float:
    """Logarithm of a ratio: where half of all tables have that, the average is half as large."""
    return float(np.log(2 * EXPECTED / n_sweeps))


class _Changes:
    """Small changes of the cells that move."""

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

    def of(self, cell: int) -> Iterator[Counts]:
        """Go through changes of a cell, or of the cells that it is the total of."""
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

    def _partners(self, cell: int) -> Counts:
        """Cells that some term sees along with this one."""
        terms = self._seen[:, [cell]].nonzero()[0]
        cells = np.unique(self._seen[terms].indices)
        return cells[cells != cell]

    def _some(self, cells: Counts) -> Counts:
        return cells if len(cells) <= MAX_PARTNERS else self._rng.choice(cells, MAX_PARTNERS, False)
