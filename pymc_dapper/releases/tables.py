"""Read a release from a plain table and a description of its noise."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pymc_dapper.budget import Budget
from pymc_dapper.checks import about, as_array, choice, known, names, shown
from pymc_dapper.mechanisms import Mechanism
from pymc_dapper.releases.arrays import Cells, first_empty
from pymc_dapper.releases.frames import Columns, column, columns_of
from pymc_dapper.releases.labels import Coords, as_coords, check_used
from pymc_dapper.releases.noise import NOISE
from pymc_dapper.releases.query import Query
from pymc_dapper.releases.release import Release


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
    if hasattr(frame, "dims") and hasattr(frame, "coords"):
        if not hasattr(frame, "data_vars"):
            frame = frame.to_dataset(name=frame.name or wanted[0])
        taken = _of_xarray(frame, dims, labels)
    else:
        check_used(labels, keys, "isn't among dims")
        taken = _of_columns(columns_of(frame, text_columns=keys), keys, labels)
    queries = []
    for name in wanted:
        array, own_dims, own_coords, look_up, empty = taken(name)
        mechanism = _mechanism(name, wanted, noise, scale, look_up)
        if not mechanism.suppresses and (missing := empty(array)) is not None:
            raise ValueError(
                f"'{name}': there is no value of {missing}. If low values were suppressed, say so "
                "by LaplaceMechanism(2).published_if('>=', 10), in a shell by --published-from 10"
            )
        queries.append(Query(name, array, mechanism, own_dims, own_coords))
    return Release(queries, budget)


def _of_columns(columns: Columns, keys: Sequence[str], labels: Mapping[str, Any]) -> Any:
    def taken(name: str) -> Any:
        found = column(columns, name, "values")
        if not keys:
            cells = Cells(name, {"row": range(len(found))})
            dims: Any = (None,)
            coords: dict[str, Any] = {}
        else:
            cells = Cells(name, {key: column(columns, key, "dims") for key in keys}, labels)
            dims, coords = keys, cells.coords
        array = cells.fill(found)

        def look_up(at: str) -> np.ndarray:
            return cells.fill(column(columns, at, "scale"))

        return array, dims, coords, look_up, lambda _: cells.missing() or cells.empty(array)

    return taken


def _of_xarray(frame: Any, dims: Any, labels: Mapping[str, Any]) -> Any:
    if dims is not None or labels:
        raise ValueError("dims and coords are those of the xarray: leave them out")

    def variable(name: str, what: str) -> Any:
        known([name], frame.data_vars, f"{what}: there is no variable")
        return frame[name]

    def taken(name: str) -> Any:
        array = variable(name, "values")
        coords = {dim: array.coords[dim].values for dim in array.dims if dim in array.coords}

        def look_up(at: str) -> np.ndarray:
            scales = variable(at, "scale")
            if not set(scales.dims) <= set(array.dims):
                raise ValueError(
                    f"scale: '{at}' has the dims {scales.dims}, where '{name}' has {array.dims}"
                )
            return scales.broadcast_like(array).transpose(*array.dims).values

        def empty(values: np.ndarray) -> str | None:
            at = first_empty(values)
            return None if at is None else f"index {at}"

        return np.asarray(array.values), tuple(array.dims), coords, look_up, empty

    return taken


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
