"""Arguments for a tree of tables: checked, and brought into the kernels' form."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pymc_dapper import checks
from pymc_dapper.checks import real_numbers, shown
from pymc_dapper.counts.trees import compiled
from pymc_dapper.counts.trees.priors import Prior, read_prior
from pymc_dapper.counts.trees.tree import read_parents
from pymc_dapper.counts.trees.weights import ENDLESS
from pymc_dapper.table_trees.layout import Fixed

FINEST = 2.0**20
"""Released values are multiples of 1 / FINEST, so that residuals have no rounding errors."""
NOISES = ("discrete_gaussian", "gaussian")
LARGEST_CLASS = 16
"""People change cells within classes of so many cells."""
MOST_CELLS = 2**15


class TableQuery(NamedTuple):
    """Noisy counts of the same classes of cells, at some areas or all.

    Examples
    --------
    >>> adults = pmd.TableQuery([0, 0, 1, 1], released, scale=10.0)
    """

    classes: ArrayLike
    """Int, shape (cells,): the class of each cell; -1 for cells that aren't counted."""
    released: ArrayLike
    """Float, shape (areas, classes): noisy counts; nan for none."""
    scale: ArrayLike
    """Sigma of the noise, one for all or for each area. With 0, counts are exact: only for a query
    with one class, of all cells."""
    noise: str = "discrete_gaussian"
    """Or "gaussian"."""


class Geography(NamedTuple):
    """The areas, by their numbers; blocks in an order in which an area's are a run."""

    parent: np.ndarray
    depth: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    leaf: np.ndarray


class AreaTotals(NamedTuple):
    """The total of each area, as all released totals together say it."""

    value: np.ndarray
    variance: np.ndarray
    """0 if exact; nan if not released."""


def read_geography(parent: ArrayLike) -> Geography:
    """Read which area is a part of which."""
    parents = read_parents(parent)
    origin = compiled.in_post_order(parents)[2]
    order = origin[origin >= 0]
    n = parents.size
    if order.size < n:
        raise ValueError("parent: the parents run in a circle")
    is_leaf = np.bincount(parents + 1, minlength=n + 1)[1:] == 0
    leaf = order[is_leaf[order]]
    depth, above = np.zeros(n, dtype=np.int64), parents
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parents[above], -1)
    begin, end = np.full(n, n), np.zeros(n, dtype=np.int64)
    begin[leaf] = np.arange(leaf.size)
    end[leaf] = begin[leaf] + 1
    for level in range(int(depth.max()), 0, -1):
        those = np.flatnonzero(depth == level)
        np.minimum.at(begin, parents[those], begin[those])
        np.maximum.at(end, parents[those], end[those])
    return Geography(parents, depth, begin, end, leaf)


def read_query(name: str, query: Any, n_areas: int, n_cells: int | None) -> TableQuery:
    """Check a query: its arrays are copies, with a scale for each area."""
    try:
        classes, released, scale, noise = TableQuery(*query)
    except TypeError:
        raise TypeError(
            f"queries[{name!r}] must be a pmd.TableQuery(classes, released, scale), got "
            f"{shown(query)}"
        ) from None
    with checks.about(f"queries[{name!r}]"):
        noise = checks.choice(noise, "noise", NOISES)
        values = real_numbers(released, "released")
        why = ": a row for each area, of nan if there is no release, and a column for each class"
        checks.has_shape(values, "released", (n_areas, None), why=why)
        k = values.shape[1]
        of = checks.whole_numbers(classes, "classes", at_least=-1, at_most=k - 1)
        checks.has_shape(of, "classes", (n_cells,), why=", one for each cell")
        empty = np.setdiff1d(np.arange(k), of)
        if empty.size:
            raise ValueError(f"class {empty[0]} has no cell, but a column of released")
        known = ~np.isnan(values)
        scales = real_numbers(scale, "scale")
        checks.has_shape(scales, "scale", (), (n_areas,), why=", one for each area")
        scales = np.broadcast_to(scales, n_areas)
        measured = known.any(axis=1)
        if not np.all((scales >= 0) & (scales < np.inf) | ~measured):
            raise ValueError("scale must be from 0 on, and finite, for all areas with a release")
        if np.any(np.abs(values[known]) > 2.0**32):
            raise ValueError("released must be between -2**32 and 2**32, or nan")
        exact = measured & (scales == 0)
        whole = exact[:, None] | (noise == "discrete_gaussian")
        if np.any(known & whole & (values != np.round(values))):
            raise ValueError(
                "released has a value that isn't whole, though its noise is discrete or none"
            )
        if exact.any() and (k > 1 or of.min() < 0):
            raise ValueError(
                "only totals of all cells may be exact, with scale 0; cells that must be empty are "
                "told by impossible="
            )
        if np.any(values[exact] < 0):
            raise ValueError("released has a negative exact total")
        return TableQuery(of, np.round(values * FINEST) / FINEST, scales, noise)


def read_queries(queries: Any, n_areas: int) -> dict[str, TableQuery]:
    """Check all queries."""
    if not isinstance(queries, Mapping) or not queries:
        raise TypeError(f"queries must be a dict of pmd.TableQuery by name, got {shown(queries)}")
    found: dict[str, TableQuery] = {}
    for name, query in queries.items():
        cells = np.size(next(iter(found.values())).classes) if found else None
        found[str(name)] = read_query(str(name), query, n_areas, cells)
    if np.size(next(iter(found.values())).classes) > MOST_CELLS:
        raise ValueError(f"queries: more than {MOST_CELLS} cells")
    return found


def released_totals(queries: dict[str, TableQuery], n_areas: int) -> AreaTotals:
    """Average the totals of queries that count all cells, weighted by their precision."""
    weight, total = np.zeros(n_areas), np.zeros(n_areas)
    exact = np.full(n_areas, np.nan)
    for name, (classes, released, scale, _) in queries.items():
        if np.asarray(classes).min() < 0:
            continue
        sums = np.asarray(released).sum(axis=1)
        known = ~np.isnan(sums)
        is_exact = known & (np.asarray(scale) == 0)
        wrong = np.flatnonzero(is_exact & ~np.isnan(exact) & (sums != exact))
        if wrong.size:
            raise ValueError(
                f"queries[{name!r}]: the exact total of area {wrong[0]} is {sums[wrong[0]]:.0f}, "
                f"and {exact[wrong[0]]:.0f} in another query"
            )
        exact[is_exact] = sums[is_exact]
        noisy = known & ~is_exact
        precision = 1 / (np.asarray(scale)[noisy] ** 2 * np.shape(released)[1])
        weight[noisy] += precision
        total[noisy] += precision * sums[noisy]
    with np.errstate(invalid="ignore", divide="ignore"):
        noisy_totals, variance = total / weight, 1 / weight
    is_exact = ~np.isnan(exact)
    return AreaTotals(np.where(is_exact, exact, noisy_totals), np.where(is_exact, 0.0, variance))


def read_shared(shared: Any, areas: Geography) -> tuple[np.ndarray, np.ndarray]:
    """Return the group of each block, and the area of each group."""
    deepest = int(areas.depth.max())
    level = max(deepest - 1, 0)
    if shared is not None:
        level = checks.whole_number(shared, "shared", at_least=0, at_most=deepest)
    area = areas.leaf.copy()
    while (areas.depth[area] > level).any():
        area = np.where(areas.depth[area] > level, areas.parent[area], area)
    together, group = np.unique(area, return_inverse=True)
    return group.astype(np.int64), together


def read_alpha(
    concentration: Any, impossible: Any, areas: Geography, together: np.ndarray, n_cells: int
) -> np.ndarray:
    """Return the Dirichlet prior of each group: 0 for impossible cells."""
    alpha = np.full(n_cells, 1 / n_cells)
    if concentration is not None:
        alpha = real_numbers(concentration, "concentration", positive=True)
    checks.has_shape(alpha, "concentration", (), (n_cells,), why=", one for each cell")
    found = np.broadcast_to(alpha, (together.size, n_cells)).copy()
    if impossible is None:
        return found
    mask, n = checks.as_array(impossible), areas.parent.size
    if mask.dtype != bool or mask.shape not in ((n_cells,), (n, n_cells)):
        raise ValueError(
            f"impossible must be an array of bool, of shape ({n_cells},), or ({n}, {n_cells}) "
            f"with a row for each area; got {shown(impossible)}"
        )
    if mask.ndim == 1:
        found[:, mask] = 0
    else:
        area, seen = together, np.zeros(n, dtype=bool)
        while (area >= 0).any():
            inside = area >= 0
            seen[area[inside]] = True
            found[inside] = np.where(mask[area[inside]], 0, found[inside])
            area = np.where(inside, areas.parent[area], -1)
        below = mask.any(axis=1) & ~seen
        if below.any():
            raise ValueError(
                f"impossible: area {np.flatnonzero(below)[0]} has impossible cells of its own, but "
                "shares proportions with others. Mark these cells in the area whose blocks share "
                "proportions, or let shared= be a deeper level"
            )
    if not found.any(axis=1).all():
        area = together[np.flatnonzero(~found.any(axis=1))[0]]
        raise ValueError(f"impossible: no cell is left for area {area}")
    return found


def to_kernels(
    areas: Geography,
    queries: dict[str, TableQuery],
    totals: AreaTotals,
    of_groups: tuple[np.ndarray, np.ndarray, np.ndarray],
    prior: Any,
) -> tuple[Fixed, np.ndarray]:
    """Return what the kernels take, and the released values: the residuals of an empty tree."""
    (group, together, alpha), n = of_groups, areas.parent.size
    base = np.full((n, len(queries)), -1)
    weight = np.zeros((n, len(queries)))
    at = np.zeros(n, dtype=np.int64)
    for q, (_, released, scale, _) in enumerate(queries.values()):
        noisy = ~np.isnan(released).all(axis=1) & (np.asarray(scale) > 0)
        base[noisy, q] = at[noisy]
        weight[noisy, q] = 0.5 / np.asarray(scale)[noisy] ** 2
        at[noisy] += np.shape(released)[1]
    starts = np.cumsum(at) - at
    base = np.where(base >= 0, base + starts[:, None], -1)
    residual = np.empty(at.sum())
    for q, (_, released, _, _) in enumerate(queries.values()):
        noisy = base[:, q] >= 0
        places = base[noisy, q][:, None] + np.arange(np.shape(released)[1])
        residual[places] = np.asarray(released)[noisy]
    classes = np.stack([np.asarray(query.classes) for query in queries.values()])
    kin = _kin(classes)
    law = read_prior(prior, areas.leaf.size, np.full(areas.leaf.size, ENDLESS))
    rank = np.argsort(np.argsort(areas.leaf))
    ordered = Prior(law.kind[rank], law.first[rank], law.second[rank], law.tables)
    middle, variance = (np.nan_to_num(x[areas.leaf]) for x in totals)
    precision = np.divide(0.5, variance, out=np.zeros(variance.size), where=variance > 0)
    fixed = Fixed(
        areas.parent, areas.depth, areas.begin, areas.end, totals.variance == 0, base, weight,
        np.ascontiguousarray(classes.T), *kin, areas.leaf, group, together, alpha,
        np.cumsum(alpha, axis=1), *ordered[:3], *ordered.tables, middle, precision,
    )  # fmt: skip
    return fixed, residual


def _kin(classes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the cells of each class, of queries with small classes, and where each cell's are."""
    fine = [of for of in classes if np.bincount(of + 1)[1:].max() <= LARGEST_CLASS]
    kin, begin, end = np.zeros((3, len(fine), classes.shape[1]), dtype=np.int64)
    for q, of in enumerate(fine):
        sizes = np.bincount(of + 1)
        ends = np.cumsum(sizes)
        kin[q] = np.argsort(of, kind="stable")
        begin[q], end[q] = np.where(of >= 0, ((ends - sizes)[of + 1], ends[of + 1]), 0)
    return kin, begin, end
