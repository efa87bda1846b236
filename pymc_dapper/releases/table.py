"""A release shown as a table, in text and in HTML."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_dapper.html import aligned, table
from pymc_dapper.releases.query import Query

HEADER = ("query", "dims", "shape", "values", "mechanism")

MOST_VALUES = 6
"""Up to this number of values, each is shown."""


def as_text(queries: Sequence[Query], budget: Any) -> str:
    """Show queries in lines, with columns aligned."""
    return "\n".join([_title(queries, budget), *aligned([HEADER, *map(_row, queries)])])


def as_html(queries: Sequence[Query], budget: Any) -> str:
    """Show queries in a table of HTML."""
    return table(_title(queries, budget), HEADER, map(_row, queries))


def _title(queries: Sequence[Query], budget: Any) -> str:
    count = f"{len(queries)} {'query' if len(queries) == 1 else 'queries'}"
    return f"Release of {count}" + ("" if budget is None else f", {budget}")


def _row(query: Query) -> tuple[str, ...]:
    shape = np.shape(query.values)
    return (
        query.name,
        ", ".join(dim or "-" for dim in query.dims) or "-",
        " x ".join(map(str, shape)) or "-",
        _shown(query.values),
        repr(query.mechanism),
    )


def _shown(values: Any) -> str:
    hidden = np.ma.getmaskarray(values)
    if values.size <= MOST_VALUES:
        cells = zip(np.ma.getdata(values).flat, hidden.flat, strict=True)
        return ", ".join("suppressed" if is_hidden else f"{x:.6g}" for x, is_hidden in cells)
    told = f"{np.min(values):.6g} to {np.max(values):.6g}"
    return told + (f", {np.count_nonzero(hidden)} suppressed" if hidden.any() else "")
