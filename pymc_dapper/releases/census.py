"""Noisy measurement files of the 2020 US Census."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pymc_dapper.budget import Budget
from pymc_dapper.checks import known, names, options, whole_number
from pymc_dapper.mechanisms import DiscreteGaussianMechanism
from pymc_dapper.releases.census_codes import PRODUCTS, classes_of, sizes_of
from pymc_dapper.releases.census_files import Wanted, numbers_of, plain_name, rows_of
from pymc_dapper.releases.labels import Coords, as_coords, check_used, listed
from pymc_dapper.releases.query import Query
from pymc_dapper.releases.release import Release

_LEAST, _MOST = "hhgq_total_lb_con", "hhgq_total_ub_con"


def read_census(
    rows: Any,
    *,
    levels: Mapping[str, int] | Sequence[str],
    queries: Sequence[str] | None = None,
    geocodes: Sequence[str] | None = None,
    attributes: str | Sequence[str] | Mapping[str, int] = "redistricting",
    coords: Coords | None = None,
    budget: Budget | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Release:
    """Read noisy measurements of the 2020 US Census.

    Parameters
    ----------
    rows : path, DataFrame or table
        A row for each query of each geography, as in the Parquet files of the redistricting data,
        with the columns geocode, query_name, query_shape, value (the noisy counts) and variance (of
        their noise). A path may be a Parquet file, a directory of such files, or that of an object
        store that fsspec knows, such as ``s3://...``.
    levels : mapping of str to int, or sequence of str
        Levels of geography to read, and the length of their geocodes: ``{"state": 2, "county": 5,
        "tract": 11}``. They become dims. Names are enough if the directory has one of each level,
        as those of the Census Bureau: ``["State", "County"]`` for ``State.parquet/...``.
    queries : sequence of str, optional
        Queries to read, such as ``["total", "hispanic * cenrace"]``; default all. A name that ends
        in ``_dpq`` means the same without the suffix.
    geocodes : sequence of str, optional
        Read areas only whose geocodes begin with one of these. Wyoming is ``["056", "156"]`` in the
        Bureau's directories: the first digit tells tribal areas from others. The last 16 digits of
        a block's are those published.
    attributes : str, sequence of str or mapping of str to int
        Attributes in the order of the axes of a query's shape, maybe with how many values each has;
        or a product, whose attributes are known: "redistricting", or "dhc" for the people of the
        demographic and housing characteristics. An attribute that the query sums over has length 1
        in the shape. Columns with the names of attributes tell which classes a query has; without
        them, its name does.
    coords : mapping of str to sequence, optional
        Labels of attributes, by default numbers from 0; or geocodes of a level in the wanted order,
        by default sorted.
    budget : PureDP, ZCDP or ApproxDP, optional
        What the release spends.
    storage_options : mapping, optional
        Options of fsspec for an object store: ``{"anon": True}`` for public files.

    Returns
    -------
    Release
        A query ``"county: hispanic * cenrace"`` for each level and query, with the dims
        ``("county", "hispanic", "cenrace")`` and discrete Gaussian noise. `Release.margins`
        computes the statistics from one latent table. What is published exactly
        (`pymc_dapper.invariant`) isn't among the queries.

    Raises
    ------
    TypeError, ValueError
        If a row is missing, is there twice or has values of another kind; the message begins with
        the query's name.
    ImportError
        If pyarrow, which reads Parquet files, isn't installed, or fsspec for an object store.

    Notes
    -----
    The variance is taken as sigma^2. For discrete Gaussian noise this is exact to 1e-6 if the
    standard deviation is 1, and more exact with more noise. A variance below 0.25 is refused.

    References
    ----------
    Abowd, J. et al. (2022). The 2020 Census disclosure avoidance system TopDown algorithm. Harvard
    Data Science Review, Special Issue 2.
    """
    axes = sizes_of(attributes)
    wanted = None if queries is None else tuple(map(plain_name, names(queries, "queries")))
    lengths = _levels(levels)
    labels = as_coords("the", coords)
    begins = None if geocodes is None else names(geocodes, "geocodes")
    wanted_rows = Wanted(lengths, tuple(axes), begins, "DPQuery", wanted)
    made = []
    found = rows_of(rows, wanted_rows, options(storage_options, "storage_options"))
    for level, frame in found.items():
        if frame.empty and wanted is None:
            raise ValueError(f"rows: there's no geocode of level '{level}', by length or directory")
        known(wanted or [], frame["query_name"].unique(), f"rows: level '{level}' has no query")
        codes = pd.Index(labels.get(level) or sorted(frame["geocode"].unique()), dtype=object)
        for query, part in frame.groupby("query_name", sort=False):
            made.append(_query(level, query, part, codes, axes, labels))
    check_used(labels, [dim for query in made for dim in query.dims], "is a dim of no query")
    return Release(made, budget)


def census_totals(
    rows: Any,
    *,
    levels: Mapping[str, int] | Sequence[str],
    geocodes: Sequence[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> dict[str, int]:
    """Read which totals of areas are known exactly, from constraints of the redistricting data.

    Parameters
    ----------
    rows, levels, geocodes, storage_options
        As of `read_census`. Of the Census Bureau's directories, those of people of the
        redistricting data of 2020: constraints of the demographic and housing characteristics tell
        nothing of housing units.

    Returns
    -------
    dict of str to int
        Exact totals by geocode, for `census_tables`. An area with neither housing units nor group
        quarters has 0 people; many blocks are such areas. Totals of states are published elsewhere.

    Raises
    ------
    ValueError
        If rows aren't constraints on people, or contradict each other.
    """
    found: dict[str, int] = {}
    signs = {"total_con": "=", _MOST: "<="}
    for name, code, row in _constraints(rows, levels, geocodes, storage_options, signs):
        total = int(row.sum())
        if (name != _MOST or not row.any()) and found.setdefault(code, total) != total:
            raise ValueError(f"rows: geocode {code!r} has both {found[code]} and {total} people")
    return found


def census_bounds(
    rows: Any,
    *,
    levels: Mapping[str, int] | Sequence[str],
    geocodes: Sequence[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> dict[str, np.ndarray]:
    """Read how many people areas have at least and at most in households and group quarters.

    Parameters
    ----------
    rows, levels, geocodes, storage_options
        As of `census_totals`.

    Returns
    -------
    dict of str to ndarray
        By geocode, for `census_tables`: an array of shape (2, 8), the least and the most people of
        each kind. The least are as many as facilities, and 0 for households. The most are 0 if
        there is no facility or housing unit.

    Raises
    ------
    ValueError
        If rows aren't constraints on people, or an area has only one of the two bounds.
    """
    found: dict[str, np.ndarray] = {}
    signs = {_LEAST: ">=", _MOST: "<="}
    for name, code, row in _constraints(rows, levels, geocodes, storage_options, signs):
        found.setdefault(code, np.full((2, row.size), -1))[int(name == _MOST)] = row
    if half := [code for code, bounds in found.items() if bounds.min() < 0]:
        raise ValueError(f"rows: geocode {listed(half)} must have both {_LEAST} and {_MOST}")
    return found


def _constraints(
    rows: Any, levels: Any, geocodes: Any, storage_options: Any, signs: Mapping[str, str]
) -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield constraints on people with these signs by name: name, geocode and numbers."""
    n_kinds = PRODUCTS["redistricting"]["hhgq"]
    begins = None if geocodes is None else names(geocodes, "geocodes")
    wanted = Wanted(_levels(levels), ("h1", "sign"), begins, "Constraint")
    for frame in rows_of(rows, wanted, options(storage_options, "storage_options")).values():
        if (frame["sign"] == "").any() or (frame["h1"] != "").any():
            raise ValueError("rows: constraints on people have a column 'sign', and none 'h1'")
        for name, sign in signs.items():
            part = frame[(frame["query_name"] == name) & (frame["sign"] == sign)]
            if part.empty:
                continue
            values = numbers_of(part["value"])
            if values is None or (sign != "=" and values.shape[1] != n_kinds):
                raise ValueError(
                    f"rows: {name} must have {n_kinds} numbers in each row, of housing units and "
                    "kinds of group quarters. Constraints of other products leave households out"
                    if sign != "="
                    else f"rows: {name} must have as many numbers in each row"
                )
            for code, row in zip(part["geocode"], values, strict=True):
                yield name, code, row


def _query(
    level: str,
    query: str,
    part: pd.DataFrame,
    codes: pd.Index,
    axes: Mapping[str, int | None],
    labels: Coords,
) -> Query:
    """Make a query of its rows at one level."""
    name, shapes = f"{level}: {query}", numbers_of(part["query_shape"])
    if shapes is None or shapes.dtype.kind not in "iu" or np.any(shapes < 1):
        raise ValueError(f"'{name}': shapes must be as many whole numbers in each row")
    if np.any(shapes != shapes[0]):
        raise ValueError(f"'{name}': its shape isn't the same in all rows")
    # A file may lack a column: its rows tell nothing of that attribute.
    classes = {axis: [each for each in part[axis].unique() if each] for axis in axes}
    if any(len(each) > 1 for each in classes.values()):
        raise ValueError(f"'{name}': the classes of an attribute aren't the same in all rows")
    told_by_file = {axis: each[0] for axis, each in classes.items() if each}
    shape, dims = _shape(name, query, shapes[0].tolist(), axes, told_by_file)
    part = _arranged(name, part.set_index(pd.Index(part["geocode"], dtype=object)), codes)
    n, counts = int(np.prod(shape)), numbers_of(part["value"])
    if counts is None or counts.shape[1] != n:
        sizes = {code: numbers_of([each]) for code, each in part["value"].items()}
        bad = next(code for code, each in sizes.items() if each is None or each.size != n)
        raise ValueError(
            f"'{name}': a row must have {n} noisy counts, but not that of geocode {bad!r}"
        )
    variance = part["variance"].infer_objects().to_numpy()
    if variance.dtype.kind not in "iuf":
        variance = np.full(1, np.nan)
    fine = (variance >= 0.25) & (variance < np.inf)
    if not fine.all():
        raise ValueError(
            f"'{name}': variance must be a finite number of 0.25 or more, got {variance[~fine][0]}"
        )
    sigma: Any = np.sqrt(variance.reshape(-1, *(1,) * len(dims)))
    counts = counts.reshape(-1, *shape)
    if np.all(sigma == sigma[0]):
        sigma = float(sigma.flat[0])
    else:
        sigma = np.broadcast_to(sigma, counts.shape)
    own = {dim: labels.get(dim, tuple(range(n))) for dim, n in zip(dims, shape, strict=True)}
    noise = DiscreteGaussianMechanism(sigma)
    return Query(name, counts, noise, (level, *dims), {level: codes.tolist(), **own})


def _arranged(name: str, part: pd.DataFrame, codes: pd.Index) -> pd.DataFrame:
    """Return rows in the order of the geocodes, once each is there once."""
    if part.index.has_duplicates:
        again = part.index[part.index.duplicated()][0]
        raise ValueError(f"'{name}': there are two rows of geocode {again!r}")
    if missing := sorted(set(codes) - set(part.index), key=str):
        raise ValueError(f"'{name}': there is no row of geocode {listed(missing)}")
    if extra := sorted(set(part.index) - set(codes)):
        raise ValueError(
            f"'{name}': geocode {listed(extra)} isn't among the coords of '{name.split(':')[0]}'"
        )
    return part.loc[codes, ["value", "variance"]]


def _levels(levels: Any) -> dict[str, int | None]:
    """Return the levels with the lengths of their geocodes; None if files tell levels apart."""
    if not isinstance(levels, Mapping):
        return dict.fromkeys(names(levels, "levels"))
    lengths = {
        level: whole_number(length, f"levels: the length of '{level}'", at_least=0)
        for level, length in levels.items()
    }
    if len(set(lengths.values())) != len(lengths):
        raise ValueError("levels must have geocodes of different lengths")
    return dict(zip(names(list(levels), "levels"), lengths.values(), strict=True))


def _shape(
    name: str,
    query: str,
    lengths: Sequence[int],
    axes: Mapping[str, int | None],
    classes: Mapping[str, str],
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the lengths and names of the axes that a query doesn't sum over."""
    if len(lengths) != len(axes):
        raise ValueError(
            f"'{name}': its shape must have a length for each of {', '.join(axes)}, got {lengths}"
        )
    factors = [] if query in ("total", "detailed") else query.split(" * ")
    of = {f: x for x, n in axes.items() for f in factors if classes_of(x, f, n) is not None}
    unknown = [factor for factor in factors if factor not in of]
    dims = []
    for (axis, n), length in zip(axes.items(), lengths, strict=True):
        if length == 1:
            continue
        # Classes that nobody knows are those of the one attribute that is left.
        own = [axis] if query == "detailed" else [f for f in factors if of.get(f) == axis]
        own, by_file = own or unknown, classes.get(axis, "")
        if by_file not in ("", "*"):
            own = [axis if by_file == "detailed" else by_file]
        if by_file == "*" or not own:
            raise ValueError(
                f"'{name}': its shape {lengths} distinguishes '{axis}', but its name doesn't"
            )
        if len(own) > 1:
            raise ValueError(
                f"'{name}': it isn't known which attributes {listed(own)} are classes of. A column "
                "with the attribute's name can say so"
            )
        factor = own[0]
        known = classes_of(axis, factor, n)
        if known is not None and known.size and known.max() + 1 != length:
            raise ValueError(
                f"'{name}': '{factor}' has {known.max() + 1} classes, and its shape is {lengths}"
            )
        dims.append(factor)
    if query != "detailed" and sorted(dims) != sorted(factors):
        raise ValueError(f"'{name}': its shape {lengths} lacks some of the attributes in its name")
    return tuple(n for n in lengths if n > 1), tuple(dims)
