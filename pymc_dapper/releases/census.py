"""Noisy measurement files of the 2020 US Census."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pymc_dapper.budget import Budget
from pymc_dapper.checks import as_array, names, real_numbers, shown, whole_number
from pymc_dapper.mechanisms import DiscreteGaussianMechanism
from pymc_dapper.releases.arrays import noisy_counts
from pymc_dapper.releases.frames import column, columns_of
from pymc_dapper.releases.labels import Coords, as_coords, check_used, told
from pymc_dapper.releases.query import Query
from pymc_dapper.releases.release import Release

ATTRIBUTES = ("hhgq", "votingage", "hispanic", "cenrace")
"""Attributes of persons in the redistricting data, in the order of the axes of all queries."""

COLUMNS = ("geocode", "query_name", "query_shape", "value", "variance")


def read_census(
    rows: Any,
    *,
    levels: Mapping[str, int],
    queries: Sequence[str] | None = None,
    attributes: Sequence[str] = ATTRIBUTES,
    columns: Sequence[str] = COLUMNS,
    coords: Coords | None = None,
    budget: Budget | None = None,
) -> Release:
    """Read noisy measurements of the 2020 US Census.

    Parameters
    ----------
    rows : path, DataFrame or table
        A row for each query of each geography, as in the Parquet files of the redistricting data:
        its geocode, the query's name and shape, the noisy counts, the variance of their noise.
    levels : mapping of str to int
        Levels of geography to read, and the length of their geocodes: ``{"state": 2, "county": 5,
        "tract": 11}``. They become dims.
    queries : sequence of str, optional
        Queries to read, such as ``["total", "hispanic * cenrace"]``; default all. A name that ends
        in ``_dpq`` means the same without the suffix.
    attributes : sequence of str
        Attributes in the order of the axes of a query's shape. An attribute that the query sums
        over has length 1 there.
    columns : sequence of str
        Names of the five columns, in the order given above.
    coords : mapping of str to sequence, optional
        Labels of attributes, by default numbers from 0; or geocodes of a level in the wanted order,
        by default sorted.
    budget : PureDP, ZCDP or ApproxDP, optional
        What the release spends.

    Returns
    -------
    Release
        A query ``"county: hispanic * cenrace"`` for each level and query, with the dims
        ``("county", "hispanic", "cenrace")`` and discrete Gaussian noise. `Release.margins`
        computes the statistics from one latent table. Exactly published numbers
        (`pymc_dapper.invariant`) aren't among the rows.

    Raises
    ------
    TypeError, ValueError
        If a row is missing, is there twice or has values of another kind; the message begins with
        the query's name.
    ImportError
        If pyarrow, which reads Parquet files, isn't installed.

    Notes
    -----
    The variance is taken as sigma^2. For discrete Gaussian noise this is exact to 1e-6 if the
    standard deviation is 1, and more exact with more noise. A variance below 0.25 is refused.

    References
    ----------
    Abowd, J. et al. (2022). The 2020 Census disclosure avoidance system TopDown algorithm. Harvard
    Data Science Review, Special Issue 2.
    """
    table = columns_of(rows, "rows")
    axes, wanted_columns = names(attributes, "attributes"), names(columns, "columns")
    if len(wanted_columns) != len(COLUMNS):
        raise ValueError(f"columns must be five names, of {', '.join(COLUMNS)}, got {columns}")
    geocodes, query_names, shapes, values, variances = (
        column(table, name, "columns") for name in wanted_columns
    )
    wanted = None if queries is None else [_plain(each) for each in names(queries, "queries")]
    of_length = _levels(levels)
    labels = as_coords("the", coords)
    found: dict[tuple[str, str], dict[str, int]] = {}
    for k, (code, query) in enumerate(zip(geocodes, query_names, strict=True)):
        if not isinstance(code, str) or not isinstance(query, str):
            raise TypeError(
                f"rows: geocodes and names of queries must be strings, got {shown(code)} and "
                f"{shown(query)}"
            )
        level, plain = of_length.get(len(code)), _plain(query)
        if level is None or (wanted is not None and plain not in wanted):
            continue
        at = found.setdefault((level, plain), {})
        if code in at:
            raise ValueError(f"'{level}: {plain}': there are two rows of geocode {code!r}")
        at[code] = k
    _check_found(found, of_length, wanted)
    of_level: dict[str, tuple[Any, ...]] = {
        level: labels.get(
            level, tuple(sorted({c for (of, _), at in found.items() if of == level for c in at}))
        )
        for level in of_length.values()
    }
    made = []
    for (level, query), at in found.items():
        name = f"{level}: {query}"
        codes = of_level[level]
        if missing := [code for code in codes if code not in at]:
            raise ValueError(f"'{name}': there is no row of geocode {told(missing)}")
        if extra := [code for code in at if code not in codes]:
            raise ValueError(f"'{name}': geocode {told(extra)} isn't among the coords of '{level}'")
        picked = [at[str(code)] for code in codes]
        shape, dims = _shape(name, query, [shapes[k] for k in picked], axes)
        has = f"'{name}': a row must have"
        counts = np.stack([noisy_counts(has, values[k], shape) for k in picked])
        sigma = np.sqrt([_variance(name, variances[k]) for k in picked])
        if np.all(sigma == sigma[0]):
            scale: Any = float(sigma[0])
        else:
            scale = np.broadcast_to(sigma.reshape(-1, *(1,) * len(shape)), counts.shape)
        own = {dim: labels.get(dim, tuple(range(n))) for dim, n in zip(dims, shape, strict=True)}
        noise = DiscreteGaussianMechanism(scale)
        made.append(Query(name, counts, noise, (level, *dims), {level: codes, **own}))
    check_used(labels, [dim for query in made for dim in query.dims], "is a dim of no query")
    return Release(made, budget)


def _plain(query: str) -> str:
    """Return a query's name without the suffix and with uniform spacing."""
    factors = re.split(r"\s*\*\s*", query.removesuffix("_dpq").strip())
    return " * ".join(factors)


def _levels(levels: Any) -> dict[int, str]:
    if not isinstance(levels, Mapping) or not levels:
        raise TypeError(
            f"levels must be a dict of lengths of geocodes by name, got {shown(levels)}"
        )
    lengths = {
        whole_number(length, f"levels: the length of '{level}'", at_least=0): level
        for level, length in levels.items()
    }
    if len(lengths) != len(levels):
        raise ValueError("levels must have geocodes of different lengths")
    return dict(zip(lengths, names(list(levels), "levels"), strict=True))


def _check_found(found: Any, of_length: Mapping[int, str], wanted: Sequence[str] | None) -> None:
    for level in of_length.values():
        there = [query for of, query in found if of == level]
        missing = [query for query in wanted or [] if query not in there]
        if missing or not there:
            raise ValueError(
                f"rows: there is no query {missing[0]!r} of level '{level}'"
                if missing
                else f"rows: there is no geocode of level '{level}', by its length"
            )


def _shape(
    name: str, query: str, shapes: Sequence[Any], axes: Sequence[str]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the lengths and names of the axes that a query doesn't sum over."""
    first = as_array(shapes[0])
    if first.dtype.kind not in "iu" or first.ndim != 1 or np.any(first < 1):
        raise ValueError(f"'{name}': its shape must be whole numbers, got {shapes[0]!r}")
    if any(not np.array_equal(as_array(each), first) for each in shapes):
        raise ValueError(f"'{name}': its shape isn't the same in all rows")
    lengths = [int(n) for n in first]
    factors = [] if query in ("total", "detailed") else query.split(" * ")
    if len(lengths) != len(axes):
        raise ValueError(
            f"'{name}': its shape must have a length for each of {', '.join(axes)}, got {lengths}"
        )
    recodes = [factor for factor in factors if factor not in axes]
    dims = []
    for axis, length in zip(axes, lengths, strict=True):
        if length == 1:
            continue
        if axis in factors or query == "detailed":
            dims.append(axis)
        elif recodes:
            # Coarser classes of an attribute, such as hhinstlevels of hhgq, have their own names.
            dims.append(recodes.pop(0))
        else:
            raise ValueError(
                f"'{name}': its shape {lengths} tells '{axis}' apart, and its name not"
            )
    if query != "detailed" and len(dims) != len(factors):
        raise ValueError(f"'{name}': its shape {lengths} lacks some of the attributes in its name")
    return tuple(n for n in lengths if n > 1), tuple(dims)


def _variance(name: str, variance: Any) -> float:
    number = real_numbers(variance, f"'{name}': variance")
    if number.ndim or not 0.25 <= number < np.inf:
        raise ValueError(
            f"'{name}': variance must be a finite number of 0.25 or more, got {shown(variance)}"
        )
    return float(number)
