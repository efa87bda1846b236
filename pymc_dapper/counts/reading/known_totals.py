"""Exactly known totals of a model's counts, at given parameters and data."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from pymc_dapper.counts.reading.model import CountReading
from pymc_dapper.counts.reading.moves import Moves, find_moves
from pymc_dapper.graphs.errors import ReadingError


def totals_of(reading: CountReading) -> Callable[[Sequence[np.ndarray]], np.ndarray]:
    """Make a function of parameters and data: the known totals.

    Raises
    ------
    ReadingError
        If a total depends on a variable that another step would change.
    """
    if reading.unknown_totals:
        listed = ", ".join(f"'{x.name}'" for x in reading.unknown_totals)
        raise ReadingError(
            f"the total that {', '.join(sorted({repr(x) for x in reading.known.factors}))} fixes "
            f"depends on {listed}, which another step would change. If that is a latent count, "
            "pass it to the same CountStep, which then moves it together with the table"
        )
    return reading.known.in_python(reading.model, [*reading.parameters, *reading.data.values()])


def moves_of(
    reading: CountReading, given: ArrayLike | None = None, *, linked: bool = True
) -> Moves:
    """Find moves that keep a model's known totals (:func:`find_moves`), or take those given.

    With ``linked=False``, tables that agree on margins are treated as any other equations.
    """
    statistics, ties = (
        [matrix for each in terms for matrix in each.linear.values()]
        for terms in (reading.terms, reading.prior_terms)
    )
    known, bounded = reading.known, reading.bounded_cells()
    shapes = [x.type.shape for x in reading.counts]
    read = known.matrix, statistics, bounded, known.factors, given, ties, reading.totals
    return find_moves(*read, shapes if linked else ())
