"""Latent totals: counts that are sums of other latent counts.

The total of a Multinomial may itself be a latent count, and the cells of a table may be the totals
of other tables. Such a total is determined by the cells that it sums. If it is replaced by their
sum, the log-density depends on these cells alone. The total then is one more sum, and moves with
its cells: moves that connect their tables connect all.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable
from scipy import sparse

from pymc_dapper.graphs.terms.of_sums import rows_of, tidy

Expression = Mapping[int, float]
"""Cells and their coefficients."""


@dataclass(frozen=True, eq=False)
class Totals:
    """Which cells of a table are determined by others."""

    follows: np.ndarray
    """Bool, shape (number of cells,): the determined cells."""
    sums: sparse.csr_array
    """Shape (number of cells, number of cells): ``sums @ counts`` is the whole table, made of its
    free cells. Free cells stay as they are; the others are sums of these. Coefficients are whole
    and positive, so no sum is negative."""

    def completed(self, counts: np.ndarray) -> np.ndarray:
        """Return a table whose totals are the sums of its free cells."""
        completed = counts.copy()
        completed[self.follows] = self._of_totals @ counts
        return completed

    def completed_in(self, counts: TensorVariable) -> TensorVariable:
        """Return :meth:`completed` as a graph."""
        if not self.follows.any():
            return counts
        of = self._of_totals.tocoo()
        cells = np.flatnonzero(self.follows)[of.row]
        free = pt.switch(self.follows, np.int64(0), counts)
        return pt.inc_subtensor(free[cells], of.data * counts[of.col])

    @cached_property
    def _of_totals(self) -> sparse.csr_array:
        return self.sums[self.follows].astype(np.int64)

    def of_moving_cells(self, functions: sparse.csr_array) -> sparse.csr_array:
        """Write linear functions of a table as functions of the free cells."""
        return tidy(functions @ self.sums)


def no_totals(n_cells: int) -> Totals:
    """Return totals without determined cells."""
    return Totals(np.zeros(n_cells, dtype=bool), sparse.eye_array(n_cells, format="csr"))


def find_totals(equations: sparse.csr_array) -> Totals:
    """Find cells that are sums of others with whole and positive coefficients.

    They may be so by one equation or by several. ``equations`` has a row for each linear function
    of the counts that is zero.
    """
    rows = [dict(zip(*map(np.ndarray.tolist, x), strict=True)) for x in rows_of(equations)]
    equations_of = defaultdict(set)
    for k, row in enumerate(rows):
        for cell in row:
            equations_of[cell].add(k)
    found: dict[int, Expression] = {}
    pending = list(reversed(range(len(rows))))
    while pending:
        total = _as_total(rows[pending.pop()])
        if total is None:
            continue
        cell, expression = total
        found[cell] = expression
        for k in sorted(k for k in equations_of.pop(cell) if cell in rows[k]):
            rows[k] = _substituted(rows[k], cell, expression)
            for other in rows[k]:
                equations_of[other].add(k)
            pending.append(k)
    return _totals(found, equations.shape[1])


def _as_total(row: Expression) -> tuple[int, Expression] | None:
    """Solve an equation for a cell that is the sum of the others; None if there is no such cell."""
    for sign in (-1, 1):
        alone = [cell for cell, by in row.items() if sign * by > 0]
        if len(alone) != 1 or len(row) == 1:
            continue
        [cell] = alone
        others = {other: -by / row[cell] for other, by in row.items() if other != cell}
        if all(times == round(times) for times in others.values()):
            return cell, others
    return None


def _substituted(row: Expression, cell: int, expression: Expression) -> dict[int, float]:
    """Replace a cell by an expression."""
    times, new = row[cell], {other: by for other, by in row.items() if other != cell}
    for other, by in expression.items():
        new[other] = new.get(other, 0.0) + times * by
        if new[other] == 0:
            del new[other]
    return new


def _totals(found: Mapping[int, Expression], n_cells: int) -> Totals:
    if not found:
        return no_totals(n_cells)
    follows = np.zeros(n_cells, dtype=bool)
    follows[list(found)] = True
    expressions = _matrix(found, n_cells)
    sums = level = sparse.diags_array((~follows).astype(float), format="csr")
    # Replace totals of totals, as long as there are any.
    while level.nnz:
        level = expressions @ level
        sums = sums + level
    return Totals(follows, tidy(sums))


def _matrix(found: Mapping[int, Expression], n_cells: int) -> sparse.csr_array:
    entries = [(cell, other, by) for cell, sum_ in found.items() for other, by in sum_.items()]
    cells, others, times = zip(*entries, strict=True)
    return sparse.csr_array((times, (cells, others)), shape=(n_cells, n_cells))
