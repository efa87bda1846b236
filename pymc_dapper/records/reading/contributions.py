"""How records' contributions to the sums are computed: in rows with one number for each entry."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import pytensor.tensor as pt
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.rebuild import frontier
from pymc_dapper.records.reading.factors import RecordSum
from pymc_dapper.records.reading.rows_by_cell import RowsByCell
from pymc_dapper.records.reading.rows_of_others import rows_of_others

RECORDS_IN_BLOCK = 2048
"""With this number of records, contributions to a dozen sums fit into a core's cache."""


@dataclass(frozen=True)
class RowsByBlock:
    """Rows are computed within the sweep, for a block of records at a time."""

    inputs: tuple[Variable, ...]
    """Variables for a block of records and of covariates, then for the context."""
    contributions: TensorVariable
    """Shape (length of the block, d): a function of these."""
    covariates: tuple[TensorVariable, ...]
    """Arrays with a row for each record, beside the records themselves."""
    context: tuple[TensorVariable, ...]
    """Further inputs."""
    records_in_block: int = RECORDS_IN_BLOCK
    """Number of records in a block."""


@dataclass(frozen=True)
class RowsAtOnce:
    """Rows of all records are computed before the sweep."""


RowMaker = RowsByCell | RowsByBlock | RowsAtOnce


def read_rows(records: Sequence[TensorVariable], sums: Sequence[RecordSum]) -> RowMaker:
    """Choose how to compute rows: by block if that is known to be right, and there are several."""
    if records[0].type.shape[0] <= RECORDS_IN_BLOCK:
        return RowsAtOnce()
    return by_block(records, sums) or RowsAtOnce()


def by_block(records: Sequence[TensorVariable], sums: Sequence[RecordSum]) -> RowsByBlock | None:
    """Write the contributions of a block of records as a function of it; None if not possible."""
    of_block = {x: of_any_length(x) for x in records}
    covariates: dict[tuple[TensorVariable, int], TensorVariable] = {}

    def covariate(x: TensorVariable, axis: int) -> TensorVariable:
        """Move the record axis to the front, so that a block is a slice."""
        if (x, axis) not in covariates:
            covariates[x, axis] = of_any_length(pt.moveaxis(x, axis, 0))
        return pt.moveaxis(covariates[x, axis], 0, axis)

    found = [rows_of_others(each.contributions, of_block, covariate) for each in sums]
    rows = [x for x in found if x is not None and None not in x.type.shape[1:]]
    if len(rows) < len(sums):
        return None
    contributions = side_by_side(rows)
    arrays: list[Variable] = [*of_block.values(), *covariates.values()]
    context = frontier(arrays, contributions)
    return RowsByBlock(
        inputs=(*arrays, *context),
        contributions=contributions,
        covariates=tuple(pt.moveaxis(x, axis, 0) for x, axis in covariates),
        context=tuple(context),
    )


def of_any_length(x: TensorVariable) -> TensorVariable:
    """Return a variable for some rows of an array."""
    return x.type.clone(shape=(None, *x.type.shape[1:]))()


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
