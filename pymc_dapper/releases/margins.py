"""Margins of a table: sums over the dims that a query doesn't have."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Variable

from pymc_dapper.backend.named_dims import as_plain, has_named_dims
from pymc_dapper.checks import is_a, names, options, shown
from pymc_dapper.releases.query import Query

Within = Mapping[str, tuple[str, Sequence[Any]]]
"""For a dim that groups another: the other dim, and the group of each of its entries."""


def margin(query: Query, table: Any, dims: Sequence[str], within: Within | None) -> Any:
    """Sum a table over all dims that a query doesn't have.

    Parameters
    ----------
    query : Query
        The query; all of its axes have names.
    table : tensor or ndarray
        The table.
    dims : sequence of str
        Its dims.
    within : mapping, optional
        As of `Release.margins`.

    Returns
    -------
    tensor or ndarray
        The margin, its axes in the order of the query's dims.

    Raises
    ------
    TypeError, ValueError
        If the query has a dim that the table doesn't have, and that groups none of the table's.
    """
    left = list(names(dims, "dims"))
    is_a(table, Variable | np.ndarray, "table must be a tensor or an array")
    if len(left) != table.ndim or len(set(left)) != len(left):
        raise ValueError(
            f"dims must name each axis of the table, which has {table.ndim}, got {left}"
        )
    named: Any = table
    if has_named_dims(named):
        if set(named.type.dims) != set(left):
            raise ValueError(f"dims must be those of the table, {named.type.dims}, got {left}")
        table = as_plain(named.transpose(*left))
    within = options(within, "within", "(dim, labels) by dim")
    for dim in query.dims:
        if dim is None:
            raise ValueError(f"'{query.name}': margins need a name for each axis of the query")
        if dim in left:
            continue
        if dim not in within:
            raise ValueError(
                f"'{query.name}': the table has no dim '{dim}', but {', '.join(left)}. If it "
                f"groups one of these, say how: within={{'{dim}': (dim, labels)}}"
            )
        table = _grouped(query, table, left, dim, within[dim])
    over = tuple(k for k, dim in enumerate(left) if dim not in query.dims)
    summed = table.sum(axis=over) if over else table
    kept = [dim for dim in left if dim in query.dims]
    order = [kept.index(dim) for dim in query.dims if dim is not None]
    return summed if order == sorted(order) else summed.transpose(*order)


def _grouped(query: Query, table: Any, left: list[str], dim: str, given: Any) -> Any:
    """Sum the entries of a dim by group; in ``left`` the groups' dim replaces it."""
    if not isinstance(given, tuple) or len(given) != 2 or isinstance(given[1], str):
        raise TypeError(f"within: '{dim}' must have a pair (dim, labels), got {shown(given)}")
    fine, groups = given[0], list(given[1])
    if fine not in left:
        raise ValueError(f"'{query.name}': within: '{dim}' groups {fine!r}, which isn't a dim")
    axis, labels = left.index(fine), query.coords.get(dim, ())
    unknown = next((group for group in groups if group not in labels), None)
    if unknown is not None:
        raise ValueError(f"'{query.name}': within: {unknown!r} is no label of dim '{dim}'")
    length = table.type.shape[axis] if isinstance(table, Variable) else table.shape[axis]
    if length not in (None, len(groups)):
        raise ValueError(
            f"'{query.name}': within: there must be a group for each of the {length} entries of "
            f"'{fine}', got {len(groups)}"
        )
    left[axis] = dim
    sums = []
    for label in labels:
        members = np.flatnonzero([group == label for group in groups])
        if not members.size:
            raise ValueError(f"'{query.name}': within: no entry of '{fine}' is in {label!r}")
        sums.append(table[(slice(None),) * axis + (members,)].sum(axis=axis))
    return (pt if isinstance(table, Variable) else np).stack(sums, axis=axis)
