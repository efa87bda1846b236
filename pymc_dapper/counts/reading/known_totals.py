"""Exactly known totals of a model's counts, at given parameters and data."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pymc_dapper.counts.reading.model import CountReading
from pymc_dapper.counts.reading.moves import Moves, find_moves
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import compile_in_python


class KnownTotals:
    """The linear equations that a model's counts satisfy.

    Attributes
    ----------
    matrix : csr_array, shape (number of equations, number of cells)
        Their coefficients.
    names : list of str
        The factor of each.
    """

    def __init__(self, reading: CountReading):
        self.matrix = reading.equations
        self.names = reading.factors_of_equations
        unknown = reading.unknown_totals
        if unknown:
            listed = ", ".join(f"'{x.name}'" for x in unknown)
            raise ReadingError(
                f"the total that {', '.join(sorted({repr(name) for name in self.names}))} fixes "
                f"depends on {listed}, which another step would change. If that is a latent count, "
                "pass it to the same CountStep, which then moves it together with the table"
            )
        inputs = [*reading.parameters, *reading.data.values()]
        offsets = [invariant.rows.offset for invariant in reading.invariants]
        self._offsets = compile_in_python(reading.model, inputs, offsets)

    def known(self, given: Sequence[np.ndarray]) -> np.ndarray:
        """Return the right-hand sides of the equations."""
        values = [np.asarray(x, dtype=np.float64) for x in self._offsets(*given)]
        return -np.concatenate([np.zeros(0), *values])


def moves_of(
    reading: CountReading,
    known: KnownTotals,
    given: ArrayLike | None = None,
    *,
    linked: bool = True,
) -> Moves:
    """Find moves that keep a model's known totals (:func:`find_moves`), or take those given.

    With ``linked=False``, tables that agree on margins are treated as any other equations.
    """
    statistics, ties = (
        [matrix for each in terms for matrix in each.linear.values()]
        for terms in (reading.terms, reading.prior_terms)
    )
    bounded, shapes = reading.bounded_cells(), [x.type.shape for x in reading.counts]
    read = known.matrix, statistics, bounded, known.names, given, ties, reading.totals
    return find_moves(*read, shapes if linked else ())
