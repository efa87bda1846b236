"""Records that are each counted in one cell of a table, for several tables of few variables.

Contributions are evaluated at each of few values, if they depend on nothing else of a record.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Constant, Variable, ancestors
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.records.reading.factors import RecordSum
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
        record: pt.constant(column.astype(record.dtype).reshape(-1, *(1,) * (record.ndim - 1)))
        for record, column in zip(records, values.T, strict=True)
    }
    rows = rows_of_others(contributions, at, lambda x, axis: None)
    return rows if rows is not None and None not in rows.type.shape else None


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


LARGEST_TABLE = 10_000_000
"""Contributions at all values of a table's variables that are looked at."""


@dataclass(frozen=True)
class RowsByCell:
    """A record adds one to one cell of each sum, or to none.

    Which cell follows from some of its variables, or of a matrix' columns: it is looked up by
    their joint value.
    """

    low: np.ndarray
    sizes: np.ndarray
    """Ints, shape (number of records' columns,): the lowest value of each, and how many it has."""
    strides: np.ndarray
    """Ints, shape (number of sums, number of records' columns): by how much a step of a column
    changes the place of a joint value; 0 if the sum doesn't depend on the column."""
    starts: np.ndarray
    """Ints, shape (number of sums,): where the places of each sum start."""
    cells: np.ndarray
    """Ints: the cell at each place, numbered through all sums; -1 for none."""


def rows_by_cell(
    records: Sequence[TensorVariable], supports: Sequence[range | None], sums: Sequence[RecordSum]
) -> RowsByCell | None:
    """Find in which cell of each sum records are counted; None if some contribute otherwise."""
    if not supports or any(x.type.ndim > 2 for x in records):
        return None
    columns = [_columns(x) for x in records]
    all_columns = [x for each in columns for x in each]
    matrices = [x for x in records if x.type.ndim == 2]
    known = [x for x, each in zip(supports, columns, strict=True) if x is not None for _ in each]
    if len(known) < len(all_columns):
        return None
    strides = np.zeros((len(sums), len(all_columns)), dtype=np.int64)
    starts, cells, n_cells = [], [np.zeros(0, dtype=np.int64)], 0
    for k, sum_ in enumerate(sums):
        contributions = _of_columns(sum_.contributions, records, columns)
        seen = set(ancestors([contributions]))
        if not seen.isdisjoint(matrices):
            return None
        own = [j for j, column in enumerate(all_columns) if column in seen]
        size, n_values = prod(contributions.type.shape[1:]), prod(len(known[j]) for j in own)
        if size * n_values > LARGEST_TABLE:
            return None
        values = np.array(list(product(*(known[j] for j in own)))).reshape(n_values, len(own))
        rows = rows_by_value(contributions, [all_columns[j] for j in own], values)
        table = None if rows is None else known_value(rows)
        if table is None:
            return None
        table = table.reshape(n_values, size)
        if not np.isin(table, (0, 1)).all() or np.any(table.sum(axis=1) > 1):
            return None
        for place, j in enumerate(own):
            strides[k, j] = prod(len(known[i]) for i in own[place + 1 :])
        starts.append(sum(map(len, cells)))
        cells.append(np.where(table.any(axis=1), n_cells + table.argmax(axis=1), -1))
        n_cells += size
    return RowsByCell(
        low=np.array([values[0] for values in known]),
        sizes=np.array([len(values) for values in known]),
        strides=strides,
        starts=np.array(starts),
        cells=np.concatenate(cells),
    )


def _columns(record: TensorVariable) -> list[TensorVariable]:
    """Return variables for the columns of a matrix of records; a vector is its own column."""
    if record.type.ndim == 1:
        return [record]
    n, n_columns = record.type.shape
    return [pt.vector(dtype=record.dtype, shape=(n,)) for _ in range(n_columns)]


def _of_columns(
    graph: TensorVariable,
    records: Sequence[TensorVariable],
    columns: Sequence[Sequence[TensorVariable]],
) -> TensorVariable:
    """Put single columns of matrices of records, ``x[:, j]``, in terms of their variables."""
    new: dict[Variable, Variable] = {}
    matrices = [x for x in records if x.type.ndim == 2]
    for node in io_toposort(matrices, [graph]) if matrices else ():
        if isinstance(node.op, Subtensor) and node.inputs[0] in matrices:
            match indices_from_subtensor(node.inputs[1:], node.op.idx_list):
                case [slice(start=None, stop=None, step=None), Constant(data=place)]:
                    new[node.outputs[0]] = columns[records.index(node.inputs[0])][int(place)]
    return rebuild([graph], new)[0]


def indices(records: Sequence[TensorVariable], low: np.ndarray) -> TensorVariable:
    """Put the values of all records' columns below each other, from 0 on; int32, shape (k, n)."""
    rows = [x.T if x.type.ndim == 2 else x[None] for x in records]
    values = pt.concatenate([x.astype("int32") for x in rows])
    return values - low[:, None].astype("int32") if low.any() else values


def seen_columns(strides: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Say how many variables each sum sees, and which; and the strides of these."""
    seen = strides > 0
    width = seen.sum(axis=1).max()
    columns = np.argsort(~seen, axis=1, kind="stable")[:, :width]
    counted = np.column_stack([seen.sum(axis=1), columns])
    return counted, np.take_along_axis(strides, columns, axis=1)
