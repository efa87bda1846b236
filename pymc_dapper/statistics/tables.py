"""Tables of counts: each record is counted in one cell."""

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Literal

import numpy as np
import pytensor.tensor as pt
from numpy.typing import ArrayLike
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.entries import CellOf
from pymc_dapper.checks import choice, increasing, whole_number
from pymc_dapper.sensitivity import Neighbours, Sensitivities, for_either
from pymc_dapper.statistics import arrays
from pymc_dapper.statistics.statistic import Array, Statistic, column_sensitivities

FEW_CATEGORIES = 256
"""Up to this number of categories, records are compared with each of them."""


def counts(record: arrays.Records, k: int, *, neighbours: Neighbours | None = None) -> Statistic:
    """Count the records in each of ``k`` categories.

    Parameters
    ----------
    record : tensor or array of int, shape (n,) or (n, m)
        Each record's category 0, ..., k - 1, or m of them. In a model, categories out of this range
        aren't counted: ``k`` may be smaller than the variable's number of categories, if only the
        first cells of a table were published. The sensitivity holds in either case.
    k : int
        Number of categories, at least 2.
    neighbours : {"replace", "add_remove"}, optional
        Neighbouring data sets of the sensitivity. "replace": one record has other values (the
        number of records is public). "add_remove": one record more or less. By default, a
        calibration uses the budget's ``neighbours``.

    Returns
    -------
    Statistic
        Counts, of shape (k,) or (m, k). Sensitivity, exact: L1 2m and L2 sqrt(2m) for one record
        replaced, m and sqrt(m) for one added or removed (m = 1 if records are single numbers).

    Raises
    ------
    ValueError
        If the records aren't integers, or are data out of range.

    Examples
    --------
    >>> counts([0, 2, 2, 1], 4).value
    array([1, 1, 2, 0])
    """
    k = whole_number(k, "k", at_least=2)
    x = arrays.as_categories(record, "record", k)
    value = _tabulate(x, k) if isinstance(x, np.ndarray) else _count_categories(x, k)
    sensitivity = _one_cell_each(arrays.n_columns(x, "record"), k, neighbours)
    return Statistic(value, sensitivity, arrays.n_records(x))


def count_where(condition: arrays.Records, *, neighbours: Neighbours | None = None) -> Statistic:
    """Count the records for which a condition holds.

    Parameters
    ----------
    condition : tensor or array of bool, shape (n,) or (n, m)
        Whether the condition holds, for each record; or m conditions. For a variable write ``x >
        2`` or ``pt.eq(x, 1)``, and combine conditions by ``&``, ``|`` and ``~``. (Python answers
        ``x == 1`` with False.)
    neighbours : {"replace", "add_remove"}, optional
        Neighbouring data sets of the sensitivity, which is the same for both. "replace": one record
        has other values (the number of records is public). "add_remove": one record more or less.

    Returns
    -------
    Statistic
        The number of records, a scalar; or m numbers. Sensitivity: L1 m and L2 sqrt(m), exact if
        the conditions can all hold for one record and none for another (m = 1 if there is one).

    Raises
    ------
    ValueError
        If the condition isn't a truth value for each record.

    Examples
    --------
    >>> count_where(np.array([17, 44, 90]) >= 18).value
    array(2)
    """
    holds = arrays.as_records(condition, "condition")
    if np.dtype(holds.dtype).kind != "b":
        raise ValueError(
            f"condition must be a truth value for each record, but its dtype is {holds.dtype}. "
            "Write x > 2, or pt.eq(x, 1) instead of x == 1"
        )
    columns = arrays.n_columns(holds, "condition")
    sensitivity = _one_cell_each(columns, 1, neighbours, exact=columns is None)
    value = holds.sum(axis=0, dtype="int64")
    value = np.asarray(value) if isinstance(holds, np.ndarray) else value
    return Statistic(value, sensitivity, arrays.n_records(holds))


def cross_counts(
    a: arrays.Records, b: arrays.Records, ka: int, kb: int, *, neighbours: Neighbours | None = None
) -> Statistic:
    """Cross two attributes of each record and count the records in each cell.

    Parameters
    ----------
    a, b : tensor or array of int, shape (n,)
        Each record's categories 0, ..., ka - 1 and 0, ..., kb - 1. In a model, categories out of
        range aren't counted.
    ka, kb : int
        Numbers of categories, at least 2.
    neighbours : {"replace", "add_remove"}, optional
        Neighbouring data sets of the sensitivity. "replace": one record has other values (the
        number of records is public). "add_remove": one record more or less. By default, a
        calibration uses the budget's ``neighbours``.

    Returns
    -------
    Statistic
        Counts, of shape (ka, kb). Sensitivity, exact: L1 2 and L2 sqrt(2) for one record replaced,
        1 and 1 for one added or removed.

    Raises
    ------
    ValueError
        If the records aren't integers, are data out of range, or differ in number.

    Examples
    --------
    >>> cross_counts([0, 1, 1], [2, 0, 0], 2, 3).value
    array([[0, 0, 1],
           [2, 0, 0]])
    """
    return _cross_counts({"a": (a, "ka", ka), "b": (b, "kb", kb)}, neighbours)


def joint_counts(
    columns: Sequence[arrays.Records], sizes: Sequence[int], *, neighbours: Neighbours | None = None
) -> Statistic:
    """Cross any number of attributes of each record and count the records in each cell.

    Parameters
    ----------
    columns : sequence of tensor or array of int, shape (n,) each
        Each record's categories 0, 1, ... of each attribute. In a model, a record with a category
        out of range is counted nowhere.
    sizes : sequence of int
        Numbers of categories, at least 2.
    neighbours : {"replace", "add_remove"}, optional
        As of `cross_counts`.

    Returns
    -------
    Statistic
        Counts, with an axis for each attribute. The sensitivity is that of `cross_counts`.

    Raises
    ------
    TypeError, ValueError
        As of `cross_counts`; or if there is no column, or not a size for each.

    Examples
    --------
    >>> joint_counts([[0, 1, 1], [1, 0, 0], [0, 0, 1]], (2, 2, 2)).value[1]
    array([[1, 1],
           [0, 0]])
    """
    if not isinstance(columns, list | tuple) or not isinstance(sizes, list | tuple):
        raise TypeError("columns and sizes must be lists, with an entry for each attribute")
    if not columns or len(columns) != len(sizes):
        raise ValueError(
            f"there must be columns, and a size for each: got {len(columns)} columns and "
            f"{len(sizes)} sizes"
        )
    given = zip(columns, sizes, strict=True)
    named = {f"columns[{k}]": (x, f"sizes[{k}]", size) for k, (x, size) in enumerate(given)}
    return _cross_counts(named, neighbours)


def _cross_counts(
    columns: Mapping[str, tuple[arrays.Records, str, int]], neighbours: Neighbours | None
) -> Statistic:
    """Cross attributes, given by their names, each with its number of categories and its name."""
    sizes = [whole_number(k, what, at_least=2) for _, what, k in columns.values()]
    [first, *_] = names = list(columns)
    found = {
        name: arrays.as_categories(x, name, size, max_ndim=1)
        for (name, (x, *_)), size in zip(columns.items(), sizes, strict=True)
    }
    for name in names[1:]:
        found[first], found[name] = arrays.as_pair(found[first], found[name], first, name)
    sensitivity = _one_cell_each(None, math.prod(sizes), neighbours)
    if all(isinstance(x, np.ndarray) for x in found.values()):
        cells = np.ravel_multi_index([x.astype(np.int64) for x in found.values()], sizes)
        value = _tabulate(cells, math.prod(sizes)).reshape(sizes)
        return Statistic(value, sensitivity, arrays.n_records(found[first]))
    inside = []
    for k, (x, size) in enumerate(zip(found.values(), sizes, strict=True)):
        after = (None,) * (len(sizes) - k - 1)
        categories = np.arange(size)[(slice(None), *after)]
        inside.append(pt.eq(pt.as_tensor(x)[(slice(None), *(None,) * len(sizes))], categories))
    value = reduce(pt.and_, inside).sum(axis=0)
    return Statistic(value, sensitivity, arrays.n_records(found[first]))


def histogram(
    x: arrays.Records,
    edges: ArrayLike,
    *,
    outside: Literal["drop", "end_bins"] = "drop",
    neighbours: Neighbours | None = None,
) -> Statistic:
    """Count the records between each pair of successive edges.

    Parameters
    ----------
    x : tensor or array, shape (n,) or (n, m)
        The records: one number each, or m numbers, all with the same bins.
    edges : array_like, shape (bins + 1,)
        Edges of the bins, increasing; -inf and inf are allowed. A bin contains its left edge and
        not its right one, but the last bin contains both, as in NumPy.
    outside : {"drop", "end_bins"}
        What to do with numbers below the first edge or above the last. ``"drop"``: don't count
        them, as in NumPy. ``"end_bins"``: count them in the first or last bin.
    neighbours : {"replace", "add_remove"}, optional
        Neighbouring data sets of the sensitivity. "replace": one record has other values (the
        number of records is public). "add_remove": one record more or less. By default, a
        calibration uses the budget's ``neighbours``.

    Returns
    -------
    Statistic
        Counts, of shape (bins,) or (m, bins). Sensitivity, exact: L1 2m and L2 sqrt(2m) for one
        record replaced, m and sqrt(m) for one added or removed (m = 1 if records are single
        numbers). A single bin has the latter for both neighbours.

    Raises
    ------
    ValueError
        If the edges aren't increasing, or make a single bin that contains all numbers.

    Examples
    --------
    >>> histogram([-3.0, 0.5, 1.0, 2.0, 7.0], [0, 1, 2]).value
    array([1, 2])
    >>> histogram([-3.0, 0.5, 1.0, 2.0, 7.0], [0, 1, 2], outside="end_bins").value
    array([2, 3])
    """
    records = arrays.as_records(x, "x")
    cuts = increasing(edges, "edges", at_least=2, finite=False)
    choice(outside, "outside", ("drop", "end_bins"))
    if outside == "end_bins":
        cuts[0], cuts[-1] = -np.inf, np.inf
    bins = len(cuts) - 1
    if bins == 1 and np.isinf(cuts).all():
        raise ValueError(
            "a single bin that contains all numbers counts every record: give more edges"
        )
    sensitivity = _one_cell_each(arrays.n_columns(records, "x"), bins, neighbours)
    if isinstance(records, np.ndarray):
        cells = np.searchsorted(cuts, records, side="right") - 1
        cells = np.where(records == cuts[-1], bins - 1, np.where(cells < 0, bins, cells))
        return Statistic(_tabulate(cells, bins), sensitivity, arrays.n_records(records))
    left, right = cuts[:-1], cuts[1:]
    last = np.arange(bins) == bins - 1
    spread = records[..., None]
    inside = (spread >= left) & ((spread < right) | ((spread <= right) & last))
    return Statistic(inside.sum(axis=0), sensitivity, arrays.n_records(records))


def counts_around(x: Array, points: np.ndarray) -> Array:
    """Count the numbers below the first of m points, at it, between it and the next, and so on.

    Points increase; the result has shape (2 m + 1,).
    """
    # At a point or above it, and above it: the next number that a float can be.
    return counts_between(x, np.stack([points, np.nextafter(points, np.inf)], axis=1).reshape(-1))


def counts_between(x: Array, cuts: np.ndarray) -> Array:
    """Count the numbers below the first of k cuts, from it to below the next, and so on.

    Cuts increase; the result has shape (k + 1,).
    """
    if isinstance(x, np.ndarray):
        return _tabulate(np.searchsorted(cuts, x, side="right"), len(cuts) + 1)
    return _count_categories(Elemwise(CellOf(cuts))(x.astype("float64")), len(cuts) + 1)


def _count_categories(x: TensorVariable, k: int) -> TensorVariable:
    """Count records of a model; values that aren't categories aren't counted."""
    if x.type.ndim > 1 or k <= FEW_CATEGORIES:
        return pt.eq(x[..., None], np.arange(k)).sum(axis=0)
    # With many categories, take one step for each record instead of comparing it with all of them.
    counted = pt.ge(x, 0) & pt.lt(x, k)
    cell = pt.switch(counted, x, 0).astype("int64")
    return pt.inc_subtensor(pt.zeros(k, dtype="int64")[cell], counted.astype("int64"))


def _tabulate(cells: np.ndarray, k: int) -> np.ndarray:
    """Count data in cells 0, ..., k - 1, for each column; cell k means none.

    An array of records by cells would be large, so none is made.
    """
    columns = cells.reshape(len(cells), math.prod(cells.shape[1:])).T.astype(np.int64)
    tables = [np.bincount(column, minlength=k + 1)[:k] for column in columns]
    return np.array(tables, dtype=np.int64).reshape(*cells.shape[1:], k)


def _one_cell_each(
    columns: int | None, cells: int, neighbours: Neighbours | None, *, exact: bool = True
) -> Sensitivities:
    """Sensitivity of one table per column: a record is in one cell of each, or in none.

    Replacing a record takes 1 from a cell and adds 1 to another, if there is another.
    """

    def of(which: Neighbours) -> Sensitivities:
        table = (2, 2, 1) if which == "replace" and cells > 1 else (1, 1, 1)
        tables = [table] * (1 if columns is None else columns)
        return column_sensitivities(tables, which, exact=exact)

    return for_either(neighbours, of)
