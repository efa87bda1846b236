"""The same cells, released twice by a mechanism that changes a cell alike each time."""

import warnings
from itertools import combinations

import numpy as np
from pymc import Model
from pytensor.graph.basic import equal_computations

from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import compile_in_python

FEW_CELLS = 10
"""So many cells may be rounded alike twice, by chance."""


def check_cells_again(model: Model) -> None:
    """Tell of releases of the same cells whose changes would count as if drawn twice.

    A mechanism says by ``changes_again`` whether a cell that it changed is changed alike wherever
    it is published.

    Raises
    ------
    ReadingError
        If it is.

    Warns
    -----
    UserWarning
        If it needn't be, but all of many cells are alike.
    """
    found = [
        (x, x.tag.mechanism)
        for x in (*model.potentials, *model.observed_RVs)
        if hasattr(getattr(x.tag, "mechanism", None), "changes_again")
    ]
    for (one, mechanism), (other, of_other) in combinations(found, 2):
        statistics = [x.tag.statistic for x in (one, other)]
        if type(mechanism) is not type(of_other):
            continue
        if not equal_computations(statistics[:1], statistics[1:]):
            continue
        tell = compile_in_python(model, [], [one.tag.released, other.tag.released])
        first, second = tell()
        same = np.array_equal(first, second)
        named = f"'{one.name}' and '{other.name}' are releases of the same cells"
        kind = type(mechanism).__name__
        if mechanism.changes_again and same:
            raise ReadingError(
                f"{named}, which {kind} changes alike each time: they are one observation. Leave "
                "one of them out: counted twice, it seems to be more precise than it is"
            )
        if mechanism.changes_again:
            raise ReadingError(
                f"{named}, which {kind} changes alike each time, but they differ. They can't both "
                "be of these cells: look for another statistic or another table"
            )
        if same and first.size >= FEW_CELLS:
            warnings.warn(
                f"{named}, and all of them are alike. If {kind} was applied once, they are one "
                "observation: leave one of them out",
                UserWarning,
                stacklevel=4,
            )
