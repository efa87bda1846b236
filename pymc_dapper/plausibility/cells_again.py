"""The same cells released twice, by a mechanism that gives a cell the same change each time."""

import warnings
from itertools import combinations

import numpy as np
from pymc import Model
from pytensor.graph.basic import equal_computations

from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import compile_in_python

FEW_CELLS = 10
"""Up to this number of cells may be rounded alike twice by chance."""


def check_cells_again(model: Model) -> None:
    """Find two releases of the same cells whose changes would count as drawn twice.

    A mechanism's ``changes_again`` says whether it changes a cell in the same way in each
    publication.

    Raises
    ------
    ReadingError
        If the mechanism always repeats its changes.

    Warns
    -----
    UserWarning
        If it may draw them anew, but many cells are all changed alike.
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
                stacklevel=4,
            )
