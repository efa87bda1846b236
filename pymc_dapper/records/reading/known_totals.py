"""Exactly known sums over records: if they don't hold, the log-density is minus infinity.

Sums over records are treated like counts, so the walk through a table's factors finds the
equations.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.terms.equations import compares, requires
from pymc_dapper.graphs.terms.walk import CountWalk
from pymc_dapper.records.reading.factors import AdditiveFactor, RecordSum


@dataclass(frozen=True)
class KnownTotals:
    """Linear functions of sums over records that are known to be zero."""

    factors: tuple[str, ...]
    """For each equation, the name of its factor."""
    matrix: np.ndarray
    """Shape (m, d): their coefficients on all sums over records, flattened and joined."""
    offset: TensorVariable
    """Shape (m,): the constant of each equation, minus the known total."""
    tolerances: np.ndarray
    """Shape (m,): the tolerance of each equation."""

    def only(self, chosen: np.ndarray) -> "KnownTotals":
        """Choose some of them, by a vector of bool."""
        factors = tuple(name for name, kept in zip(self.factors, chosen, strict=True) if kept)
        offset = self.offset[np.flatnonzero(chosen)]
        return KnownTotals(factors, self.matrix[chosen], offset, self.tolerances[chosen])

    def single_sums(self) -> list[int]:
        """Return the sums that are known individually, as columns of the matrix."""
        is_in = self.matrix[np.count_nonzero(self.matrix, axis=1) == 1] != 0
        return np.flatnonzero(is_in.any(axis=0)).tolist()


def find_known_totals(
    factors: Sequence[AdditiveFactor], sums: Sequence[RecordSum]
) -> KnownTotals | None:
    """Find all equations on ``sums`` that factors state; None if there are none.

    Conditions that aren't equations are left out.
    """
    totals = [sum_.total for sum_ in sums]
    if any(None in total.type.shape for total in totals):
        return None
    walk = CountWalk(totals, {}, at_least=True)
    stating = [x for x in factors if compares(totals, x.log_density)]
    found = [(x.name, rows) for x in stating for rows in requires(walk.follow(x.log_density))]
    if not found:
        return None
    names, all_rows = zip(*found, strict=True)
    n_equations = [rows.matrix.shape[0] for rows in all_rows]
    return KnownTotals(
        factors=tuple(np.repeat(names, n_equations).tolist()),
        matrix=np.vstack([rows.matrix.toarray() for rows in all_rows]),
        offset=pt.concatenate([rows.offset for rows in all_rows]),
        tolerances=np.repeat([rows.tolerance for rows in all_rows], n_equations),
    )
