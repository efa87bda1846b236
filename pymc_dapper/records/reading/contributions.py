"""How records' contributions to the sums are computed: in rows with one number for each entry."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.rebuild import frontier
from pymc_dapper.graphs.scalars import read_entries
from pymc_dapper.records.reading.factors import RecordSum
from pymc_dapper.records.reading.rows_by_cell import RowsByCell
from pymc_dapper.records.reading.rows_by_value import rows_by_value
from pymc_dapper.records.reading.rows_of_others import rows_of_others

RECORDS_IN_BLOCK = 2048
"""With this number of records, contributions to a dozen sums fit into a core's cache."""


@dataclass(frozen=True)
class RowsByValue:
    """Records have few values, and equal records contribute equally."""

    table: TensorVariable
    """Shape (k, d): the contribution of a record at each of its values."""
    values: np.ndarray
    """Ints, shape (k, number of record variables): the values."""


@dataclass(frozen=True)
class RowsByBlock:
    """Rows are computed within the sweep, for a block of records at a time."""

    places: tuple[tuple[int, tuple[int, ...]], ...] | None
    """For a graph of one record's scalars: the array, and the index in its row, of each scalar
    input before ``context``. None for a graph of arrays."""
    inputs: tuple[Variable, ...]
    """Inputs of the graph: variables for records and covariates, then for the context."""
    outputs: tuple[Variable, ...]
    """One record's contributions, or a matrix with those of a block."""
    covariates: tuple[TensorVariable, ...]
    """Arrays with a row for each record, beside the records themselves."""
    context: tuple[TensorVariable, ...]
    """Further inputs of the graph."""
    n_columns: int
    """Number of contributions of a record."""
    records_in_block: int = RECORDS_IN_BLOCK
    """Number of records in a block."""


@dataclass(frozen=True)
class RowsAtOnce:
    """Rows of all records are computed before the sweep."""


RowMaker = RowsByValue | RowsByCell | RowsByBlock | RowsAtOnce


def read_rows(
    records: Sequence[TensorVariable],
    sums: Sequence[RecordSum],
    possible_values: np.ndarray | None,
) -> RowMaker:
    """Choose the fastest way to compute rows of contributions that is known to be right.

    By value if records have few values, shape (k, number of record variables); otherwise by block,
    if possible with scalars instead of arrays. If there are no more records than in a block,
    operations on arrays make all rows at once.
    """
    rows: RowMaker | None = None
    if possible_values is not None:
        rows = _by_value(records, sums, possible_values)
    rows = rows or by_entry(records, sums)
    if rows is None and records[0].type.shape[0] > RECORDS_IN_BLOCK:
        rows = by_array(records, sums)
    return rows or RowsAtOnce()


def _by_value(
    records: Sequence[TensorVariable], sums: Sequence[RecordSum], values: np.ndarray
) -> RowsByValue | None:
    found = [rows_by_value(sum_.contributions, records, values) for sum_ in sums]
    tables = [rows for rows in found if rows is not None]
    return RowsByValue(side_by_side(tables), values) if len(tables) == len(sums) else None


def by_entry(records: Sequence[TensorVariable], sums: Sequence[RecordSum]) -> RowsByBlock | None:
    """Write each entry of a record's contributions as a function of its values.

    None if there are many entries, or if their origin isn't known.
    """
    block = _block(records, sums, 1)
    if block is None:
        return None
    arrays = [*block.records, *block.covariates.values()]
    found = read_entries(block.contributions, arrays)
    if found is None:
        return None
    # In the array of one record, an index begins with 0.
    places = tuple((arrays.index(x), index[1:]) for x, index in found.scalars)
    return RowsByBlock(
        places,
        inputs=(*found.scalars.values(), *found.context.values()),
        outputs=tuple(pt.scalar_from_tensor(entry) for entry in found.entries),
        covariates=block.covariates_rows_first(),
        context=tuple(found.context),
        n_columns=len(found.entries),
    )


def by_array(records: Sequence[TensorVariable], sums: Sequence[RecordSum]) -> RowsByBlock | None:
    """Write the contributions of a block of records as a function of it; None if not possible."""
    block = _block(records, sums, None)
    if block is None:
        return None
    arrays: list[Variable] = [*block.records, *block.covariates.values()]
    context = frontier(arrays, block.contributions)
    return RowsByBlock(
        None,
        inputs=(*arrays, *context),
        outputs=(block.contributions,),
        covariates=block.covariates_rows_first(),
        context=tuple(context),
        n_columns=block.contributions.type.shape[1],
    )


@dataclass(frozen=True)
class _Block:
    """A block of records with its contributions."""

    records: list[TensorVariable]
    covariates: dict[tuple[TensorVariable, int], TensorVariable]
    contributions: TensorVariable

    def covariates_rows_first(self) -> tuple[TensorVariable, ...]:
        return tuple(pt.moveaxis(x, axis, 0) for x, axis in self.covariates)


def _block(
    of_all: Sequence[TensorVariable], sums: Sequence[RecordSum], length: int | None
) -> _Block | None:
    records = {x: _of_length(x, length) for x in of_all}
    covariates: dict[tuple[TensorVariable, int], TensorVariable] = {}

    def covariate(x: TensorVariable, axis: int) -> TensorVariable:
        """Move the record axis to the front, so that a block is a slice."""
        if (x, axis) not in covariates:
            covariates[x, axis] = _of_length(pt.moveaxis(x, axis, 0), length)
        return pt.moveaxis(covariates[x, axis], 0, axis)

    tables = []
    for sum_ in sums:
        rows = rows_of_others(sum_.contributions, records, covariate)
        if rows is None or None in rows.type.shape[1:]:
            return None
        tables.append(rows)
    contributions = side_by_side(tables)
    if contributions.type.shape[1] is None:
        return None
    return _Block(list(records.values()), covariates, contributions)


def _of_length(x: TensorVariable, length: int | None) -> TensorVariable:
    """Return a variable for some rows of an array."""
    return x.type.clone(shape=(length, *x.type.shape[1:]))()


def side_by_side(rows: Sequence[TensorVariable]) -> TensorVariable:
    """Flatten each row, and join the rows of several arrays."""
    return pt.concatenate([_with_columns(x) for x in rows], axis=1).astype("float64")


def _with_columns(rows: TensorVariable) -> TensorVariable:
    if rows.type.ndim <= 2:
        return rows if rows.type.ndim == 2 else rows[:, None]
    n_rows, *lengths = shape_of(rows)
    # The number of columns is given: without rows it couldn't be derived.
    return rows.reshape((n_rows, prod(lengths)))


def shape_of(x: TensorVariable) -> list[Any]:
    """Return the shape, with numbers for known lengths."""
    return [x.shape[k] if size is None else size for k, size in enumerate(x.type.shape)]
