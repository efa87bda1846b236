"""Noise for groups of records, each with its own sensitivity: parallel composition."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pymc_dapper.budget import Budget
from pymc_dapper.budget.kinds import largest
from pymc_dapper.checks import as_array, is_a
from pymc_dapper.sensitivity import Neighbours, Sensitivities

SensitivityLike = Sensitivities | ArrayLike


def by_group(scale_of: Callable[[Any], float], sensitivity: SensitivityLike) -> Any:
    """Choose the noise scale for a statistic, or for each group of records.

    Parameters
    ----------
    scale_of : callable
        Maps a sensitivity to a scale.
    sensitivity : Sensitivities, float, or a (nested) list or array of either
        Of the whole statistic; or of each group, in a shape that broadcasts to the statistic's: one
        number for each entry, or shape (groups, 1) if groups are rows.

    Returns
    -------
    float or ndarray
        In the shape of ``sensitivity``.

    Raises
    ------
    TypeError, ValueError
        As ``scale_of``; or if there are no groups.

    Notes
    -----
    Each record is in one group, which is public and the same in neighbouring data sets. Each entry
    depends on the records of one group only. So one record changes the entries of one group, and
    the whole release spends the budget once: parallel composition. A group's sensitivity is that of
    all its entries together. If a record enters entries of several groups, as in the columns of a
    matrix, give the sensitivity of the whole statistic.

    References
    ----------
    McSherry, F. (2009). Privacy integrated queries. SIGMOD 2009, 19-30. Theorem 4.
    """
    groups = _groups(sensitivity)
    if groups is None:
        return scale_of(sensitivity)
    return np.array([scale_of(each) for each in groups.flat]).reshape(groups.shape)


def with_neighbours(mechanism: type, budget: Any, neighbours: Neighbours | None) -> Any:
    """Set the neighbours of a budget to those given; None leaves them as they are."""
    needs = f"{mechanism.__name__}.calibrate needs a budget, such as pmd.PureDP(epsilon=0.5)"
    is_a(budget, Budget, needs)
    return budget.among(neighbours)


def _groups(sensitivity: Any) -> np.ndarray | None:
    """Return the sensitivities for each group of records; None if there is one for all."""
    if np.ma.is_masked(sensitivity):
        raise ValueError("sensitivity must be a number, or one for each group: some are masked")
    if not isinstance(sensitivity, list | tuple | np.ndarray) or not as_array(sensitivity).ndim:
        return None
    groups = np.array(sensitivity, dtype=object)
    if groups.size == 0:
        raise ValueError("sensitivity must be a number, or one for each group: it is empty")
    return groups


def largest_loss(budget_of: Callable[..., Any], scale: Any, sensitivity: SensitivityLike) -> Any:
    """Budget that a release spends; with groups of records, the largest."""
    groups = _groups(sensitivity)
    if groups is None:
        return budget_of(one_scale(scale), sensitivity=sensitivity)
    pairs = np.broadcast(np.asarray(scale, dtype=float), groups)
    return largest([budget_of(float(b), sensitivity=s) for b, s in pairs])


def one_scale(scale: float | np.ndarray) -> float:
    """Return the noise scale if it is the same for all entries."""
    values = np.unique(np.asarray(scale, dtype=float))
    if values.size != 1:
        raise ValueError(
            "the entries have noise of different scales: the privacy loss depends on how each "
            "entry can change. If each entry is of another group of records, give an array of "
            "their sensitivities. Otherwise compute the budget of each entry and add them up"
        )
    return float(values[0])
