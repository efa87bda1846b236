"""Read a release from a plain table and a description of its noise."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from pymc_dapper.budget import Budget
from pymc_dapper.checks import about, as_array, choice, known, names, shown
from pymc_dapper.mechanisms import Mechanism
from pymc_dapper.releases.frames import Columns, column, columns_of
from pymc_dapper.releases.labels import Coords, as_coords, as_label, check_used, listed
from pymc_dapper.releases.noise import NOISE
from pymc_dapper.releases.query import Query
from pymc_dapper.releases.release import Release

WRITTEN = "Leave suppressed values empty, or nan, and write decimals with a point"

NO_NUMBER = (str, bytes, bool, np.bool_, np.complexfloating, np.datetime64, np.timedelta64)


def read_release(
    frame: Any,
    *,
    values: str | Sequence[str],
    noise: str | Mechanism | Mapping[str, str | Mechanism],
    scale: Any = None,
    dims: str | Sequence[str] | None = None,
    coords: Coords | None = None,
    budget: Budget | None = None,
) -> Release:
    """Read a release from a table of released values.

    Parameters
    ----------
    frame : path, DataFrame, xarray or mapping
        The path of a CSV or Parquet file; a pandas or Polars data frame; a table of pyarrow; a dict
        of columns; or an xarray DataArray or Dataset, whose dims and coords are used.
    values : str or sequence of str
        Columns of released values. Each becomes a query with the column's name.
    noise : str, Mechanism or mapping
        "laplace", "gaussian", "discrete laplace" or "discrete gaussian"; or a mechanism, with its
        publication rules: ``LaplaceMechanism(2).rounded(5)``. If queries differ, a dict by their
        names.
    scale : float, str or mapping
        Scale of Laplace noise, or standard deviation of Gaussian noise. A number, or the name of a
        column; if queries differ, a dict by their names. Leave it out if ``noise`` is a mechanism.
    dims : str or sequence of str, optional
        Columns of labels. Each becomes an axis of the released values. Without dims, the rows are
        one axis without a name.
    coords : mapping of str to sequence, optional
        All labels of a dim, in the wanted order. By default, the order of their first rows.
    budget : PureDP, ZCDP or ApproxDP, optional
        What the release spends.

    Returns
    -------
    Release

    Raises
    ------
    TypeError, ValueError
        If a column isn't there; if a label or a value is missing or there twice; if noise or scale
        is missing, or can't have led to the values. The message begins with the query's name.
    ImportError
        If a file can't be read without another package.

    Notes
    -----
    A missing row or value is an error, unless the mechanism says that entries may be suppressed
    (``published_if``).

    Examples
    --------
    >>> table = {"sex": ["m", "f"], "people": [110, 131]}
    >>> read_release(table, values="people", noise="laplace", scale=6, dims="sex")
    Release of 1 query
    query   dims  shape  values    mechanism
    people  sex   2      110, 131  LaplaceMechanism(scale=6)
    """
    wanted = [values] if isinstance(values, str) and values else list(names(values, "values"))
    labels = as_coords("the", coords)
    keys = () if dims is None else ((dims,) if isinstance(dims, str) else names(dims, "dims"))
    if len(set(keys)) != len(keys) or "" in keys:
        raise ValueError(f"dims must be different names of columns, got {keys}")
    of_xarray = hasattr(frame, "dims") and hasattr(frame, "coords")
    if of_xarray and (dims is not None or labels):
        raise ValueError("dims and coords are those of the xarray: leave them out")
    if of_xarray:
        there = frame if hasattr(frame, "data_vars") else {frame.name or wanted[0]: frame}
        array_of = there.__getitem__
    else:
        check_used(labels, keys, "isn't among dims")
        there = columns_of(frame, text_columns=keys)
        array_of = _arranged(wanted[0], there, keys, labels)
    queries = []
    for name in wanted:
        known([name], there, "values: there is no column")
        array = array_of(name)
        released = _numbers(name, array)
        look_up = partial(_scales, name, array, there, array_of)
        mechanism = _mechanism(name, wanted, noise, scale, look_up)
        empty = np.argwhere(np.isnan(released)).tolist()
        if empty and not mechanism.suppresses:
            raise ValueError(
                f"'{name}': there is no value of {_place(array, empty[0])}. If low values were "
                "suppressed, say so by LaplaceMechanism(2).published_if('>=', 10), in a shell by "
                "--published-from 10"
            )
        own = {dim: array.coords[dim].values for dim in array.dims if dim in array.coords}
        named = (array.dims, own) if of_xarray or keys else ()
        queries.append(Query(name, released, mechanism, *named))
    return Release(queries, budget)


def _arranged(
    name: str, columns: Columns, keys: Sequence[str], given: Coords
) -> Callable[[str], xr.DataArray]:
    """Return how to make an array of a column, with an axis for each key; nan without a row."""
    found = {}
    for key in keys:
        what = f"'{name}': labels of '{key}'"
        found[key] = [as_label(what, each) for each in column(columns, key, "dims")]
    found = found or {"row": list(range(len(next(iter(columns.values())))))}
    coords = {key: tuple(given.get(key, dict.fromkeys(own))) for key, own in found.items()}
    places = []
    for key, own in found.items():
        place = {label: k for k, label in enumerate(coords[key])}
        if unknown := [label for label in own if label not in place]:
            raise ValueError(
                f"'{name}': {unknown[0]!r} isn't among the coords of '{key}': {listed(coords[key])}"
            )
        places.append([place[label] for label in own])
    shape = tuple(map(len, coords.values()))
    empty = xr.DataArray(
        np.full(shape, np.nan, dtype=object),
        {key: pd.Index(own, dtype=object) for key, own in coords.items()},
        list(coords),
    )
    at = pd.Index(np.ravel_multi_index(places, shape))
    if at.has_duplicates:
        again = np.unravel_index(at[at.duplicated()][0], shape)
        raise ValueError(
            f"'{name}': there are two rows of {_place(empty, again)}. Name the columns that tell "
            "them apart among dims"
        )

    def array_of(each: str) -> xr.DataArray:
        array = empty.copy()
        array.values.flat[at] = np.fromiter(columns[each], dtype=object)
        return array

    return array_of


def _place(array: xr.DataArray, at: Sequence[int]) -> str:
    """Tell the labels of an entry; without labels its number."""
    labels = ((dim, array[dim].to_index()[k]) for dim, k in zip(array.dims, at, strict=True))
    return ", ".join(f"{dim} {as_label('coords', label)!r}" for dim, label in labels)


def _numbers(name: str, array: xr.DataArray) -> np.ndarray:
    """Check that an array holds numbers; missing ones are nan."""
    if array.dtype.kind in "iuf":
        return array.values
    whole = all(isinstance(each, int | np.integer) for each in array.values.flat)
    numbers = np.zeros(array.shape, dtype=np.int64 if whole else np.float64)
    for at, value in np.ndenumerate(array.values):
        try:
            # NumPy converts some of what isn't a number.
            if isinstance(value, NO_NUMBER):
                raise TypeError
            numbers[at] = np.nan if value is None else value
        except (TypeError, ValueError):
            raise TypeError(
                f"'{name}': values must be numbers, got {value!r} at {_place(array, at)}"
                + (f". {WRITTEN}" if isinstance(value, str) else "")
            ) from None
        except OverflowError:
            raise ValueError(
                f"'{name}': values must fit into 64 bits, got {value} at {_place(array, at)}"
            ) from None
    return numbers


def _scales(name: str, array: xr.DataArray, there: Any, array_of: Any, at: str) -> np.ndarray:
    """Return a column of scales, in the shape of the released values."""
    known([at], there, "scale: there is no column")
    scales = array_of(at)
    if not set(scales.dims) <= set(array.dims):
        raise ValueError(
            f"scale: '{at}' has the dims {scales.dims}, where '{name}' has {array.dims}"
        )
    scales = scales.copy(data=_numbers(name, scales))
    return scales.broadcast_like(array).transpose(*array.dims).values


def _mechanism(name: str, wanted: Sequence[str], noise: Any, scale: Any, look_up: Any) -> Mechanism:
    """Make the mechanism of a query from the given noise and scale."""
    kind = _of_query(name, wanted, noise, "noise")
    size = _of_query(name, wanted, scale, "scale")
    if isinstance(kind, Mechanism):
        if size is not None:
            raise ValueError(f"'{name}': leave out scale, as noise is a mechanism that has its own")
        return kind
    mechanism = NOISE[choice(kind, f"'{name}': noise", NOISE)]
    if size is None:
        raise ValueError(f"'{name}': scale is missing, that of the {kind} noise")
    if isinstance(size, str):
        if size in wanted:
            raise ValueError(f"'{name}': scale is '{size}', a column of released values")
        size = look_up(size)
    elif as_array(size).ndim:
        raise TypeError(f"'{name}': scale must be a number or a column's name, got {shown(size)}")
    with about(f"'{name}': scale of the {kind} noise"):
        return mechanism(size)


def _of_query(name: str, wanted: Sequence[str], told: Any, what: str) -> Any:
    if not isinstance(told, Mapping):
        return told
    known(told, wanted, f"{what}: there is no column of values")
    if name not in told:
        raise ValueError(f"'{name}': {what} is missing")
    return told[name]
