"""Cells that no move changed in a whole chain, though the log-density would allow it.

A reader can't know every way in which a model holds counts together. Where it misses one, no move
leads to other tables, and the chain looks as if it had converged. So at the end of a chain other
changes are tried of what never moved: a cell by itself, with each of the cells that a term sees
along with it, and in short combinations that keep what is known exactly.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pymc_dapper.counts.kernels.lattice import reduce_basis
from pymc_dapper.counts.reading.blocks import MAX_BLOCK_CELLS, integer_kernel
from pymc_dapper.counts.reading.model import CountReading

Counts = NDArray[np.int64]

EXPECTED = 10.0
"""So often a chain would have met a table, at least, before not having met it is told."""
MAX_TRIED = 1_000
"""Tables that are looked at, at most."""
MAX_PARTNERS = 20
"""Cells that are tried along with one, at most."""


def find_held(
    reading: CountReading,
    log_density: Callable[[Counts], float],
    table: Counts,
    moved: NDArray[np.bool_],
    n_sweeps: int,
) -> NDArray[np.bool_]:
    """Find cells that should have moved in a chain of so many sweeps and didn't.

    These are different in some table that is nearly as probable as the last one: more than
    ``EXPECTED / n_sweeps`` times. ``log_density`` is that of a table that satisfies what is known
    exactly; ``moved`` says which cells moved, and the result which of the others should have.
    """
    held = np.zeros(len(table), dtype=bool)
    if moved.all() or n_sweeps < 2 * EXPECTED:
        return held
    least, left = log_density(table) + np.log(EXPECTED / n_sweeps), MAX_TRIED
    known = reading.equations
    changes = _Changes(reading, known)
    # An empty cell mostly is one that can't hold anyone: those come last.
    for cell in np.argsort(-table, kind="stable"):
        if moved[cell] or held[cell]:
            continue
        for change in changes.of(cell):
            new = table + change
            if new[change != 0].min(initial=0) < 0 or np.any(known @ change):
                continue
            left -= 1
            if left < 0:
                return held
            if log_density(new) > least:
                held |= ~moved & (reading.totals.completed(change) != 0)
                break
    return held


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
