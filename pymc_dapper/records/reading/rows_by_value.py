"""Contributions at each of few values, if they depend on nothing else of a record."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.known import known_value
from pymc_dapper.records.reading.rows_of_others import rows_of_others


def rows_by_value(
    contributions: TensorVariable, records: Sequence[TensorVariable], values: np.ndarray
) -> TensorVariable | None:
    """Evaluate contributions with one record at each value, in place of all records.

    Contributions to a sum have shape (n, ...), and the value variables of the records (n,) or (n,
    1, ...); ``values`` are all values of a record, shape (k, number of variables). The result has
    shape (k, ...). None if equal records may contribute differently, as with a covariate.
    """
    at: dict[Variable, Variable] = {
        record: pt.constant(_as_rows(column, record))
        for record, column in zip(records, values.T, strict=True)
    }
    rows = rows_of_others(contributions, at, lambda x, axis: None)
    return rows if rows is not None and None not in rows.type.shape else None


def _as_rows(column: np.ndarray, like: TensorVariable) -> np.ndarray:
    return column.astype(like.dtype).reshape(-1, *(1,) * (like.type.ndim - 1))


def value_index(records: Sequence[TensorVariable], values: np.ndarray) -> TensorVariable:
    """Return the index of each record's value: uint8, shape (n,); k for other values.

    ``values``, shape (k, number of variables), are a product of ranges, the last running fastest.
    """
    index: TensorVariable = pt.constant(0)
    outside: list[TensorVariable] = []
    for record, low, high in zip(records, values[0], values[-1], strict=True):
        index = index * (high - low + 1) + (record - low)
        outside += [pt.lt(record, low), pt.gt(record, high)]
    return pt.switch(reduce(pt.or_, outside), len(values), index).astype("uint8")


def differing_columns(table: TensorVariable) -> TensorVariable:
    """Return the columns in which each row of a table may differ from each other row.

    The table has shape (k, d). If it isn't constant, all columns of different rows may differ. The
    result is in the form of :class:`pymc_dapper.records.kernels.value_sweep.Values`.
    """
    n_rows, n_columns = table.type.shape
    known = known_value(table)
    if known is None:
        differ = np.repeat(~np.eye(n_rows, dtype=bool)[:, :, None], n_columns, axis=2)
    else:
        differ = known[:, None] != known[None]
    pairs, which = np.nonzero(differ.reshape(n_rows**2, n_columns))
    lengths = np.bincount(pairs, minlength=n_rows**2)
    columns = np.zeros((n_rows**2, 1 + lengths.max()), dtype="uint32")
    columns[:, 0] = lengths
    columns[pairs, 1 + np.arange(len(pairs)) - (np.cumsum(lengths) - lengths)[pairs]] = which
    return pt.constant(columns)
