"""The same release twice in a model: its noise would count as two independent draws.

Some mechanisms give a cell the same change each time: releases of the same cells are then one.
"""

import warnings
from itertools import combinations

import numpy as np
from pymc import Model
from pytensor.graph.basic import equal_computations
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.plausibility.known_margins import SAME_DRAWS, step_of
from pymc_dapper.plausibility.noise_law import NoiseLaw


def is_same(
    first: TensorVariable, second: TensorVariable, draws: tuple[np.ndarray, np.ndarray]
) -> bool:
    """Say whether two statistics are the same, by their graphs or in all draws from the prior."""
    if equal_computations([first], [second]):
        return True
    one, other = (x.reshape(len(x), -1) for x in draws)
    if len(one) < 3 or one.shape != other.shape or not np.ptp(one, axis=0).all():
        return False
    return bool(np.abs(one - other).max() <= SAME_DRAWS * np.abs(one).max())


def check_repeated(
    names: tuple[str, str], noisy_range: tuple[np.ndarray, np.ndarray], noise: NoiseLaw
) -> None:
    """Check for two releases of one statistic with the same values and the same noise.

    ``noisy_range`` has the lowest and the highest possible noisy values, as vectors.

    Raises
    ------
    ReadingError
        If independent noise would give the same values with probability zero.

    Warns
    -----
    UserWarning
        If the agreement can be chance.
    """
    lowest, highest = noisy_range
    exact = lowest == highest
    width = highest - lowest + (1.0 if noise.is_whole else 0.0)
    if not noise.is_whole and exact.any():
        width[exact] = step_of(lowest[exact])
    # Computed for normal noise; other noise gives about the same.
    each = np.minimum(width / (2 * np.sqrt(np.pi) * noise.deviations), 1.0)
    chance = float(np.prod(each))
    how_often = "never agree"
    if chance:
        how_often = f"agree once in {min(1 / chance, 1e9):,.0f} times{' or less' * (chance < 1e-9)}"
    message = (
        f"'{names[0]}' and '{names[1]}' have the same released values of the same statistic, with "
        f"the same noise. Two releases with separate noise {how_often}. If it is one release, "
        "leave one of them out: counted twice, it seems to be more precise than it is"
    )
    if not chance:
        raise ReadingError(message)
    warnings.warn(message, UserWarning, stacklevel=4)


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
        if type(mechanism) is not type(of_other):
            continue
        if not equal_computations([one.tag.statistic], [other.tag.statistic]):
            continue
        first, second = compile_in_python(model, [], [one.tag.released, other.tag.released])()
        same = np.array_equal(first, second)
        named = f"'{one.name}' and '{other.name}' are releases of the same cells"
        kind = type(mechanism).__name__
        if mechanism.changes_again and same:
            raise ReadingError(
                f"{named}. {kind} changes a cell alike each time, so they are one observation. "
                "Leave one of them out: counted twice, it seems to be more precise than it is"
            )
        if mechanism.changes_again:
            raise ReadingError(
                f"{named}. {kind} changes a cell alike each time, but they differ. They can't both "
                "be of these cells: look for another statistic or another table"
            )
        if same and first.size >= FEW_CELLS:
            warnings.warn(
                f"{named}, and all values are equal. If {kind} was applied once, they are one "
                "observation: leave one of them out",
                stacklevel=4,
            )
