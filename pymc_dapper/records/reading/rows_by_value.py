"""Contributions at each of few values, if they depend on nothing else of a record."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable

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
