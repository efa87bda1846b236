"""A census as a tree of tables: areas by what they are parts of, queries by classes of cells."""

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pymc_dapper.checks import has_shape, is_a, options, real_numbers, shown, text, whole_number
from pymc_dapper.mechanisms import DiscreteGaussianMechanism
from pymc_dapper.releases.census_codes import ZEROS, classes_of, sizes_of
from pymc_dapper.releases.labels import listed
from pymc_dapper.releases.query import Query
from pymc_dapper.releases.release import Release
from pymc_dapper.table_trees.given import MOST_CELLS, TableQuery


class CensusTables(NamedTuple):
    """What `TableTree` takes."""

    geocodes: tuple[str, ...]
    """Of each area."""
    parent: np.ndarray
    """Int, shape (areas,): the area that each is a part of, -1 for none."""
    queries: dict[str, TableQuery]
    impossible: np.ndarray
    """Bool, shape (cells,): structural zeros; with bounds (areas, cells)."""
    values: dict[str, np.ndarray]
    """By attribute, the class of each of its values, of those that some query tells apart. Cells
    are the combinations of the attributes' classes, the last attribute's changing fastest."""


def census_tables(
    release: Release,
    *,
    attributes: str | Mapping[str, int] = "redistricting",
    exact: Mapping[str, int] | None = None,
    parents: Mapping[str, str] | None = None,
    bounds: Mapping[str, Any] | None = None,
) -> CensusTables:
    """Arrange what `read_census` read for `TableTree`: a table of people of each area.

    Values of attributes that no query tells apart are merged. Of the 2,016 cells of the
    redistricting data, 252 are left if no query is by group quarters.

    Parameters
    ----------
    release : Release
        What `read_census` returned.
    attributes : str or mapping of str to int
        The product, "redistricting" or "dhc", or attributes with their numbers of values.
    exact : mapping of str to int, optional
        Totals that are known exactly, by geocode: ``{"56": 576851}``. A geocode that has no row
        becomes an area; "" is all that was read.
    parents : mapping of str to str, optional
        For an area, the area that it is a part of, by their geocodes. By default, the one whose
        geocode is the longest beginning of its own: ``{"056": "56", "156": "56"}`` puts the two
        parts of Wyoming, without and with tribal areas, together.
    bounds : mapping of str to array_like, shape (2, kinds), optional
        The least and the most people of an area in each value of "hhgq", as `census_bounds` reads
        them. Where the most are 0, cells are impossible. `TableTree` then needs ``shared=``: the
        depth of the areas with bounds, or a deeper one. An area of which all are 0 is left as it
        is: its exact total of 0 says the same. All other bounds are left out.

    Returns
    -------
    CensusTables

    Raises
    ------
    TypeError, ValueError
        If classes of a query aren't known; if the noise isn't discrete Gaussian, or not the same
        for all counts of an area; if an area has no part at the finest level; or if bounds are of
        kinds that no query tells apart.

    Warns
    -----
    UserWarning
        If some area has at least some people of a kind: draws may have fewer.

    Examples
    --------
    >>> tables = releases.census_tables(release, exact={"56": 576851})
    >>> tree = pmd.TableTree(
    ...     tables.parent,
    ...     tables.queries,
    ...     impossible=tables.impossible,
    ...     names=tables.geocodes,
    ...     prior=stats.nbinom(0.5, 0.02),
    ... )
    """
    is_a(release, Release, "release must be what read_census returns")
    sizes = sizes_of(attributes)
    given = options(exact, "exact").items()
    totals = {code: whole_number(n, f"exact[{code!r}]", at_least=0) for code, n in given}
    above = {code: text(to, "parents") for code, to in options(parents, "parents").items()}
    by_query = {query.name: _classes(query, sizes) for query in release}
    values = {}
    for name in sizes:
        used = [one for each in by_query.values() for of, one in each if of == name]
        if used:
            values[name] = np.unique(np.stack(used), axis=1, return_inverse=True)[1].ravel()
    n = [int(each.max()) + 1 for each in values.values()]
    n_cells = np.prod(n, dtype=int)
    if n_cells > MOST_CELLS:
        raise ValueError(
            f"release: its queries distinguish {n_cells:,} cells, and {MOST_CELLS:,} at most are "
            "allowed. Read fewer with queries="
        )
    cell = dict(zip(values, np.indices(n).reshape(len(n), n_cells), strict=True))
    geocodes, parent = _areas(release, totals, above)
    place = {code: k for k, code in enumerate(geocodes)}
    queries: dict[str, TableQuery] = {}
    for query in release:
        classes = np.zeros(n_cells, dtype=np.int64)
        for of, one in by_query[query.name]:
            representative = np.unique(values[of], return_index=True)[1]
            classes = classes * (one.max() + 1) + one[representative][cell[of]]
        name = query.name.partition(": ")[2]
        at = [place[str(code)] for code in query.coords[str(query.dims[0])]]
        counts = np.ma.filled(query.values.astype(float), np.nan).reshape(len(at), -1)
        if name not in queries:
            empty = np.full((len(geocodes), counts.shape[1]), np.nan)
            queries[name] = TableQuery(classes, empty, np.ones(len(geocodes)))
        if not np.array_equal(queries[name].classes, classes):
            raise ValueError(f"'{query.name}': its classes are others than at another level")
        np.asarray(queries[name].released)[at] = counts
        np.asarray(queries[name].scale)[at] = _scale(query, counts.shape)
    if totals:
        known = np.full((len(geocodes), 1), np.nan)
        known[[place[code] for code in totals], 0] = list(totals.values())
        queries["exact"] = TableQuery(np.zeros(n_cells, np.int64), known, np.zeros(len(geocodes)))
    impossible = np.zeros(n_cells, dtype=bool)
    for zero in ZEROS.get(attributes, []) if isinstance(attributes, str) else []:
        impossible |= _is_zero(zero, values, cell)
    if bounds is not None:
        impossible = _impossible(bounds, impossible, parent, place, values, cell)
    return CensusTables(geocodes, parent, queries, impossible, values)


def _is_zero(
    zero: Mapping[str, int], values: Mapping[str, np.ndarray], cell: Mapping[str, np.ndarray]
) -> Any:
    """Return which cells are of these values alone."""
    if not zero.keys() <= values.keys():
        return False
    alone = [np.bincount(values[a])[values[a][v]] == 1 for a, v in zero.items()]
    return np.logical_and.reduce([cell[a] == values[a][v] for a, v in zero.items()]) & all(alone)


def _impossible(
    bounds: Any, everywhere: np.ndarray, parent: np.ndarray, place: Mapping[str, int],
    values: Mapping[str, np.ndarray], cell: Mapping[str, np.ndarray],
) -> np.ndarray:  # fmt: skip
    """Return which cells are impossible in which areas: everywhere, and without a facility."""
    given = options(bounds, "bounds")
    if "hhgq" not in values:
        raise ValueError("bounds: no query tells kinds of group quarters apart, such as 'hhgq'")
    if unknown := [code for code in given if code not in place]:
        raise ValueError(f"bounds: there is no row of geocode {listed(unknown)}")
    kind, needed = values["hhgq"], 0
    found = np.zeros((parent.size, everywhere.size), dtype=bool)
    found[parent < 0] = everywhere
    for code, each in given.items():
        numbers = real_numbers(each, f"bounds[{code!r}]", finite=True)
        has_shape(numbers, f"bounds[{code!r}]", (2, kind.size), why=": least and most")
        least, most = numbers
        needed += least.any()
        if most.any():
            found[place[code]] |= (np.bincount(kind, most) == 0)[cell["hhgq"]]
    if needed:
        warnings.warn(
            f"bounds: {needed} areas have at least some people in group quarters, which TableTree "
            "can't take into account: draws may have fewer",
            stacklevel=3,
        )
    return found


def _classes(query: Query, sizes: Mapping[str, int | None]) -> list[tuple[str, np.ndarray]]:
    """Return, for each dim after the first, its attribute and the class of each value of it."""
    if query.dims[:1] != (query.name.partition(": ")[0],) or query.dims[0] not in query.coords:
        raise ValueError(
            f"'{query.name}': read_census calls queries 'county: total', with a first dim 'county' "
            "and its geocodes as labels"
        )
    found = []
    for factor, length in zip(query.dims[1:], np.shape(query.values)[1:], strict=True):
        own = [(axis, classes_of(axis, str(factor), n)) for axis, n in sizes.items()]
        known = [
            (axis, one)
            for axis, one in own
            if one is not None and one.size and one.max() + 1 == length
        ]
        if len(known) != 1:
            raise ValueError(
                f"'{query.name}': '{factor}', with {length} classes, isn't known to be of the "
                f"attributes {', '.join(sizes)}"
            )
        found += known
    return found


def _scale(query: Query, shape: tuple[int, ...]) -> np.ndarray:
    """Return sigma of each area."""
    if not isinstance(query.mechanism, DiscreteGaussianMechanism):
        raise TypeError(
            f"'{query.name}': noise must be discrete Gaussian, got {shown(query.mechanism)}"
        )
    sigma = np.broadcast_to(query.mechanism.sigma, np.shape(query.values)).reshape(shape)
    if np.any(sigma != sigma[:, :1]):
        raise ValueError(f"'{query.name}': the noise of an area must be the same in all classes")
    return sigma[:, 0]


def _areas(
    release: Release, exact: Mapping[str, int], parents: Mapping[str, str]
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the geocodes of all areas, those of large ones first, and of which each is a part."""
    level_of: dict[str, str | None] = {}
    for level, code in ((q.dims[0], str(c)) for q in release for c in q.coords[str(q.dims[0])]):
        if level_of.setdefault(code, level) != level:
            raise ValueError(f"geocode {code!r} is of '{level_of[code]}' and of '{level}'")
    if unknown := [code for code in parents if code not in level_of]:
        raise ValueError(f"parents: there is no row of geocode {listed(unknown)}")
    geocodes = tuple(sorted({*level_of, *exact, *parents.values()}, key=lambda c: (len(c), c)))
    place = {code: k for k, code in enumerate(geocodes)}
    lengths = sorted({len(code) for code in geocodes}, reverse=True)
    parent = np.full(len(geocodes), -1)
    for k, code in enumerate(geocodes):
        beginnings = (code[:n] for n in lengths if n < len(code))
        above = parents.get(code) or next((c for c in beginnings if c in place), None)
        parent[k] = -1 if above is None else place[above]
    finest = level_of[max(level_of, key=len)]
    leaves = np.setdiff1d(np.arange(len(geocodes)), parent)
    if bare := [geocodes[k] for k in leaves if level_of.get(geocodes[k]) != finest]:
        raise ValueError(f"geocode {listed(bare)} has no part of the finest level, '{finest}'")
    return geocodes, parent
