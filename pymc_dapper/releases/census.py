"""Noisy measurement files of the 2020 US Census."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pymc_dapper.budget import Budget
from pymc_dapper.checks import known, names, options, whole_number
from pymc_dapper.mechanisms import DiscreteGaussianMechanism
from pymc_dapper.releases.census_codes import PRODUCTS, classes_of, sizes_of
from pymc_dapper.releases.census_files import Rows, Wanted, rows_of
from pymc_dapper.releases.labels import Coords, Label, as_coords, check_used, told
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
    wanted = None if queries is None else [_plain(each) for each in names(queries, "queries")]
    lengths = _levels(levels)
    labels = as_coords("the", coords)
    begins = None if geocodes is None else names(geocodes, "geocodes")
    wanted_rows = Wanted(tuple(lengths), tuple(axes), begins, "DPQuery")
    batches = rows_of(rows, wanted_rows, options(storage_options, "storage_options"))
    found = _found(batches, lengths, wanted, axes)
    _check_found(found, lengths, wanted)
    of_level: dict[str, Sequence[Label]] = {}
    for level in lengths:
        there = [part.geocode for (of, _), parts in found.items() if of == level for part in parts]
        of_level[level] = labels.get(level) or np.unique(np.concatenate(there)).tolist()
    made, order = [], {level: k for k, level in enumerate(lengths)}
    for (level, query), parts in sorted(found.items(), key=lambda each: order[each[0][0]]):
        name, dims, codes = f"{level}: {query}", parts[0].dims, of_level[level]
        counts, variance = _arranged(name, parts, codes)
        sigma = np.sqrt(variance)
        if np.all(sigma == sigma[0]):
            scale: Any = float(sigma[0])
        else:
            scale = np.broadcast_to(sigma.reshape(-1, *(1,) * len(dims)), counts.shape)
        shape = counts.shape[1:]
        own = {dim: labels.get(dim, tuple(range(n))) for dim, n in zip(dims, shape, strict=True)}
        noise = DiscreteGaussianMechanism(scale)
        made.append(Query(name, counts, noise, (level, *dims), {level: codes, **own}))
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
        Exact totals by geocode, for `census_tables`. An area has 0 people if it has neither housing
        units nor group quarters, as many blocks. Totals of states are published elsewhere.

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
            raise ValueError(f"rows: geocode {code!r} has {found[code]} and {total} people")
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
        If rows aren't constraints on people, or an area has but one of both bounds.
    """
    found: dict[str, np.ndarray] = {}
    signs = {_LEAST: ">=", _MOST: "<="}
    for name, code, row in _constraints(rows, levels, geocodes, storage_options, signs):
        found.setdefault(code, np.full((2, row.size), -1))[int(name == _MOST)] = row
    if half := [code for code, bounds in found.items() if bounds.min() < 0]:
        raise ValueError(f"rows: geocode {told(half)} must have both {_LEAST} and {_MOST}")
    return found


def _constraints(
    rows: Any, levels: Any, geocodes: Any, storage_options: Any, signs: Mapping[str, str]
) -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield constraints on people with these signs by name: name, geocode and numbers."""
    lengths, n_kinds = _levels(levels), PRODUCTS["redistricting"]["hhgq"]
    begins = None if geocodes is None else names(geocodes, "geocodes")
    wanted = Wanted(tuple(lengths), ("h1",), begins, "Constraint")
    for batch in rows_of(rows, wanted, options(storage_options, "storage_options")):
        sign = batch.texts.get("sign", np.array([""]))
        if np.any(sign == "") or np.any(batch.texts.get("h1", sign[:0]) != ""):
            raise ValueError("rows: constraints on people have a column 'sign', and none 'h1'")
        inside = np.logical_or.reduce(list(_inside(batch, lengths).values()))
        for name, kind in signs.items():
            at = np.flatnonzero(inside & (batch.query == name) & (sign == kind))
            values = batch.value.take(at) if at.size else np.zeros((0, 1))
            if values is None or (kind != "=" and at.size and values.shape[1] != n_kinds):
                raise ValueError(
                    f"rows: {name} must have {n_kinds} numbers in each row, of housing units and "
                    "kinds of group quarters. Constraints of other products leave households out"
                    if kind != "="
                    else f"rows: {name} must have as many numbers in each row"
                )
            for code, row in zip(batch.geocode[at].tolist(), values, strict=True):
                yield name, code, row


class _Part(NamedTuple):
    """Rows of one query at one level."""

    geocode: np.ndarray
    dims: tuple[str, ...]
    counts: np.ndarray
    variance: np.ndarray


def _found(
    batches: Iterable[Rows],
    lengths: Mapping[str, int | None],
    wanted: Sequence[str] | None,
    axes: Mapping[str, int | None],
) -> dict[tuple[str, str], list[_Part]]:
    """Return the wanted rows by level and query."""
    found: dict[tuple[str, str], list[_Part]] = {}
    for batch in batches:
        inside = _inside(batch, lengths)
        raw, first, which = np.unique(batch.query, return_index=True, return_inverse=True)
        for k in np.argsort(first):
            query = _plain(str(raw[k]))
            if query.endswith("_con") or (wanted is not None and query not in wanted):
                continue
            for level, own in inside.items():
                at = np.flatnonzero(own & (which == k))
                if at.size:
                    part = _part(f"{level}: {query}", query, batch, at, axes)
                    found.setdefault((level, query), []).append(part)
    return found


def _inside(batch: Rows, lengths: Mapping[str, int | None]) -> dict[str, np.ndarray]:
    """Return which rows are of each level."""
    size, found = np.char.str_len(batch.geocode), {}
    for level, length in lengths.items():
        if batch.level is None and length is None:
            raise ValueError(
                f"levels: the files have no directory {level}.parquet. Give the lengths of "
                'geocodes, as in levels={"county": 5}'
            )
        if batch.level in (None, level):
            found[level] = size >= 0 if length is None else size == length
    return found


def _part(
    name: str, query: str, batch: Rows, at: np.ndarray, axes: Mapping[str, int | None]
) -> _Part:
    shapes = batch.shape.take(at)
    if shapes is None or shapes.dtype.kind not in "iu" or np.any(shapes < 1):
        raise ValueError(f"'{name}': shapes must be as many whole numbers in each row")
    if np.any(shapes != shapes[0]):
        raise ValueError(f"'{name}': its shape isn't the same in all rows")
    classes = {axis: np.unique(batch.texts[axis][at]) for axis in axes if axis in batch.texts}
    if any(each.size > 1 for each in classes.values()):
        raise ValueError(f"'{name}': the classes of an attribute aren't the same in all rows")
    told_by_file = {axis: str(each[0]) for axis, each in classes.items() if each[0]}
    shape, dims = _shape(name, query, shapes[0].tolist(), axes, told_by_file)
    n, counts = int(np.prod(shape)), batch.value.take(at)
    if counts is None or counts.shape[1] != n:
        bad = at[np.argmax(batch.value.length[at] != n)]
        raise ValueError(
            f"'{name}': a row must have {n} noisy counts, got {batch.value.length[bad]} of geocode "
            f"{batch.geocode[bad]!s}"
        )
    variance = batch.variance[at]
    fine = (variance >= 0.25) & (variance < np.inf)
    if not fine.all():
        raise ValueError(
            f"'{name}': variance must be a finite number of 0.25 or more, got {variance[~fine][0]}"
        )
    return _Part(batch.geocode[at], dims, counts.reshape(at.size, *shape), variance)


def _arranged(
    name: str, parts: Sequence[_Part], codes: Sequence[Label]
) -> tuple[np.ndarray, np.ndarray]:
    """Return counts and variances in the order of the geocodes."""
    if any(
        (p.dims, p.counts.shape[1:]) != (parts[0].dims, parts[0].counts.shape[1:]) for p in parts
    ):
        raise ValueError(f"'{name}': its shape isn't the same in all rows")
    own, times = np.unique(np.concatenate([part.geocode for part in parts]), return_counts=True)
    if np.any(times > 1):
        again = str(own[np.argmax(times)])
        raise ValueError(f"'{name}': there are two rows of geocode {again!r}")
    place = {code: k for k, code in enumerate(codes)}
    if missing := sorted(set(place) - set(own.tolist()), key=str):
        raise ValueError(f"'{name}': there is no row of geocode {told(missing)}")
    if extra := [str(code) for code in own if code not in place]:
        raise ValueError(
            f"'{name}': geocode {told(extra)} isn't among the coords of '{name.split(':')[0]}'"
        )
    counts = np.empty(
        (len(codes), *parts[0].counts.shape[1:]), np.result_type(*(part.counts for part in parts))
    )
    variance = np.empty(len(codes))
    for part in parts:
        at = [place[code] for code in part.geocode.tolist()]
        counts[at], variance[at] = part.counts, part.variance
    return counts, variance


def _plain(query: str) -> str:
    """Return a query's name without the suffix and with uniform spacing."""
    factors = re.split(r"\s*\*\s*", query.removesuffix("_dpq").strip())
    return " * ".join(factors)


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


def _check_found(found: Any, levels: Iterable[str], wanted: Sequence[str] | None) -> None:
    for level in levels:
        there = [query for of, query in found if of == level]
        known(wanted or [], there, f"rows: level '{level}' has no query")
        if not there:
            raise ValueError(f"rows: there's no geocode of level '{level}', by length or directory")


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
    of = {
        f: axis for axis, n in axes.items() for f in factors if classes_of(axis, f, n) is not None
    }
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
                f"'{name}': it isn't known which attributes {told(own)} are classes of. A column "
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
