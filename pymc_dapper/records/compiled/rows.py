"""What a block of records contributes to the sums, as a graph to be compiled into the sweep."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import FrozenFunctionGraph
from pymc_dapper.backend.rewrites import rewritten
from pymc_dapper.graphs.rebuild import frontier
from pymc_dapper.graphs.scalars import read_entries
from pymc_dapper.records.reading.model import ModelReading
from pymc_dapper.records.reading.rows_of_others import rows_of_others


class RowsOfBlock(NamedTuple):
    """What a block of records contributes (see `BlockSweep`).

    Attributes
    ----------
    graph : FrozenFunctionGraph
        The contributions.
    places : tuple of (int, tuple of int), or None
        If the graph is of one record's entries: the array and the index in its row, of each of the
        scalars that it takes before ``context``. None if it is of arrays.
    covariates : list of TensorVariable
        Arrays with a row for each record, beside the records themselves.
    context : list of TensorVariable
        What else the graph takes.
    n_columns : int
        Contributions of a record.
    """

    graph: FrozenFunctionGraph
    places: tuple[tuple[int, tuple[int, ...]], ...] | None
    covariates: list[TensorVariable]
    context: list[TensorVariable]
    n_columns: int


class _Block(NamedTuple):
    """A block of records, and what they contribute."""

    records: list[TensorVariable]
    covariates: dict[tuple[TensorVariable, int], TensorVariable]
    contributions: TensorVariable


def rows_by_entry(reading: ModelReading, mode: Mode) -> RowsOfBlock | None:
    """Write each entry of what a record contributes as a function of its values.

    None if there are many entries, or if it isn't known what they are.
    """
    block = _block(reading, 1)
    if block is None:
        return None
    arrays = [*block.records, *block.covariates.values()]
    found = read_entries(block.contributions, arrays)
    if found is None:
        return None
    # An index in the array of one record begins with the 0 of that record.
    places = tuple((arrays.index(x), index[1:]) for x, index in found.scalars)
    inputs = [*found.scalars.values(), *found.context.values()]
    entries = [pt.scalar_from_tensor(entry) for entry in found.entries]
    return RowsOfBlock(
        graph=rewritten(inputs, entries, mode),
        places=places,
        covariates=_rows_first(block),
        context=list(found.context),
        n_columns=len(entries),
    )


def rows_by_array(reading: ModelReading, mode: Mode) -> RowsOfBlock | None:
    """Write what a block of records contributes as a function of it; None if that isn't known."""
    block = _block(reading, None)
    if block is None or None in block.contributions.type.shape[1:]:
        return None
    inputs: list[Variable] = [*block.records, *block.covariates.values()]
    context = frontier(inputs, block.contributions)
    return RowsOfBlock(
        graph=rewritten([*inputs, *context], [block.contributions], mode),
        places=None,
        covariates=_rows_first(block),
        context=context,
        n_columns=block.contributions.type.shape[1],
    )


def _block(reading: ModelReading, length: int | None) -> _Block | None:
    records = {x: _of_length(x, length) for x in reading.records}
    covariates: dict[tuple[TensorVariable, int], TensorVariable] = {}

    def covariate(x: TensorVariable, axis: int) -> TensorVariable:
        """Keep the records first, so that a block is a slice."""
        if (x, axis) not in covariates:
            covariates[x, axis] = _of_length(pt.moveaxis(x, axis, 0), length)
        return pt.moveaxis(covariates[x, axis], 0, axis)

    tables = []
    for sum_ in reading.sums:
        rows = rows_of_others(sum_.contributions, records, covariate)
        if rows is None or None in rows.type.shape[1:]:
            return None
        tables.append(rows)
    return _Block(list(records.values()), covariates, side_by_side(tables))


def _of_length(x: TensorVariable, length: int | None) -> TensorVariable:
    """Return what stands for some rows of an array."""
    return x.type.clone(shape=(length, *x.type.shape[1:]))()


def _rows_first(block: _Block) -> list[TensorVariable]:
    return [pt.moveaxis(x, axis, 0) for x, axis in block.covariates]


def side_by_side(rows: Sequence[TensorVariable]) -> TensorVariable:
    """Flatten each row, and put those of several arrays into one."""
    return pt.concatenate([_with_columns(x) for x in rows], axis=1).astype("float64")


def _with_columns(rows: TensorVariable) -> TensorVariable:
    if rows.type.ndim <= 2:
        return rows if rows.type.ndim == 2 else rows[:, None]
    n_rows, *lengths = shape_of(rows)
    # The number of columns is given, since it can't be found out where there is no row.
    return rows.reshape((n_rows, prod(lengths)))


def shape_of(x: TensorVariable) -> list[Any]:
    """Return the shape, as numbers where they are known."""
    return [x.shape[k] if size is None else size for k, size in enumerate(x.type.shape)]
