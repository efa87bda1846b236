"""The record sweep as a PyTensor operation.

The operation has its own numba dispatch and cache key. So the sweep is compiled together with the
model's log-density, and PyTensor's disk cache holds both. The key contains the model's graph and
the kernel's sources, so that no model gets another model's code.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytensor.tensor as pt

from pymc_dapper.backend.in_python import KernelOp
from pymc_dapper.backend.internals import FrozenFunctionGraph
from pymc_dapper.backend.numba_ops import compiles, from_source, function_of, numba_njit
from pymc_dapper.records.kernels.block_sweep import sweep_by_blocks
from pymc_dapper.records.kernels.cell_sweep import Cells, check_cells, sweep_by_cell
from pymc_dapper.records.kernels.entry_sweep import decide_by_entries
from pymc_dapper.records.kernels.full_sweep import sweep_by_full_evaluation
from pymc_dapper.records.kernels.order_sweep import decide_by_order, orders_of
from pymc_dapper.records.kernels.rank_sweep import Releases, sweep_by_rank
from pymc_dapper.records.kernels.record_sweep import decide_by_sums
from pymc_dapper.records.kernels.value_sweep import (
    Values,
    check_values,
    sweep_by_value,
)


@dataclass(frozen=True)
class LogDensity:
    """A log-density, already rewritten for the numba backend."""

    graphs: tuple[FrozenFunctionGraph, ...]
    """Inputs are the state (a flat vector of all sums, or a matrix of all records), then the
    context (its other inputs); the output is a scalar."""
    by_entry: bool
    """Whether it is a sum of terms, each of one entry of the sums. The graphs are then terms, one
    for each sum or one for all sums with the same term. Their inputs are scalars: an entry and its
    values of the context. With several graphs, an entry's context begins with the number of its
    graph.
    """


@dataclass(frozen=True)
class MatrixRows:
    """Precomputed contributions, present and proposed: matrices with a row for each record."""

    n_columns: int | None
    records_in_block: ClassVar[int] = 2**62
    """Number of records in a block: all of them."""
    n_arrays: ClassVar[int] = 2


@dataclass(frozen=True)
class ComputedRows:
    """Contributions that are computed for a block of records at a time.

    Their inputs are all present records, all proposed ones, all covariates, and the context.
    """

    n_columns: int
    records_in_block: int
    graph: FrozenFunctionGraph
    """The contributions, already rewritten for the numba backend."""
    places: tuple[tuple[int, tuple[int, ...]], ...] | None
    """As in :class:`~pymc_dapper.records.reading.contributions.RowsByBlock`."""
    n_variables: int
    n_covariates: int
    n_context: int
    """Number of arrays of each kind."""

    @property
    def n_arrays(self) -> int:
        """Number of all arrays."""
        return 2 * self.n_variables + self.n_covariates + self.n_context


Rows = MatrixRows | ComputedRows


class _Sweep(KernelOp):
    """Record-wise Metropolis updates.

    The outputs are a vector of bool, which proposals were accepted, and a scalar, the log-density
    after the sweep.
    """

    __props__: ClassVar[tuple[str, ...]] = ("density",)
    density: LogDensity
    results = (pt.TensorType("bool", shape=(None,)), pt.dscalar)


class RecordSweep(_Sweep):
    """Updates against a log-density of sums over records, with a row for each record.

    Inputs are log_removed, log_added, log_uniforms, the arrays from which rows are made, and the
    context of the log-density.
    """

    __props__ = ("density", "rows")
    rows: Rows


class OrderSweep(RecordSweep):
    """Updates against a log-density of sums over records, then of order statistics.

    Further inputs, before the context, are those of
    :func:`~pymc_dapper.records.kernels.order_sweep.orders_of`.
    """


class ValueSweep(_Sweep):
    """Updates of records with few values.

    Inputs are the parts of :class:`~pymc_dapper.records.kernels.value_sweep.Values`, log_removed,
    log_added, log_uniforms, and the context of the log-density.
    """


class CellSweep(_Sweep):
    """Updates of records that are each counted in one cell of each of several tables.

    Inputs are the numbers of values of each variable, the parts of
    :class:`~pymc_dapper.records.kernels.cell_sweep.Cells`, log_removed, log_added, log_uniforms,
    and the context of the log-density.
    """


class RankSweep(_Sweep):
    """Updates of records of which quantiles were released.

    Inputs are the intervals of the records, present and proposed, log_removed, log_added,
    log_uniforms, and the parts of :class:`~pymc_dapper.records.kernels.rank_sweep.Releases`.
    """

    __props__ = ()


class FullSweep(_Sweep):
    """Updates against a log-density that is evaluated from all records.

    Inputs are the matrix of all records in float64, present and proposed, log_removed, log_added,
    log_uniforms, and the context of the log-density.
    """


@compiles(RecordSweep)
def _record_sweep(op: RecordSweep) -> Callable:
    log_density, rows = compiled_density(op.density), op.rows
    present_rows, proposed_rows = _row_makers(rows)
    n_arrays, n_columns, in_block = rows.n_arrays, rows.n_columns, rows.records_in_block
    if n_columns is None:

        @numba_njit
        def columns_of(arrays):  # type: ignore[no-untyped-def]
            return arrays[0].shape[1]
    else:

        @numba_njit
        def columns_of(arrays):  # type: ignore[no-untyped-def]
            return n_columns

    decide = decide_by_entries if op.density.by_entry else decide_by_sums
    context_of = _context_of(op.density, n_arrays)
    if isinstance(op, OrderSweep):
        decide, context_of = decide_by_order, _context_of_orders(n_arrays)

    @numba_njit
    def record_sweep(log_removed, log_added, log_uniforms, *inputs):  # type: ignore[no-untyped-def]
        arrays = inputs[:n_arrays]
        accepted, final = sweep_by_blocks(
            decide,
            log_density,
            context_of(inputs),
            present_rows,
            proposed_rows,
            arrays,
            columns_of(arrays),
            in_block,
            log_removed,
            log_added,
            log_uniforms,
        )
        return accepted, np.asarray(final)

    return record_sweep


@compiles(ValueSweep)
def _value_sweep(op: ValueSweep) -> Callable:
    log_term = compiled_density(op.density)

    @numba_njit
    def value_sweep(  # type: ignore[no-untyped-def]
        table, present, proposed, differing, log_removed, log_added, log_uniforms, context
    ):
        check_values(table, present, proposed)
        values = Values(table, present, proposed, differing)
        accepted, final = sweep_by_value(
            log_term, context, values, log_removed, log_added, log_uniforms
        )
        return accepted, np.asarray(final)

    return value_sweep


@compiles(CellSweep)
def _cell_sweep(op: CellSweep) -> Callable:
    log_term = compiled_density(op.density)

    @numba_njit
    def cell_sweep(  # type: ignore[no-untyped-def]
        sizes, cells, starts, columns, strides, present, proposed,
        log_removed, log_added, log_uniforms, context,
    ):  # fmt: skip
        check_cells(sizes, present, proposed)
        values = Cells(cells, starts, columns, strides, present, proposed)
        accepted, final = sweep_by_cell(
            log_term, context, values, log_removed, log_added, log_uniforms
        )
        return accepted, np.asarray(final)

    return cell_sweep


@compiles(RankSweep)
def _rank_sweep(op: RankSweep) -> Callable:
    @numba_njit
    def rank_sweep(present, proposed, log_removed, log_added, log_uniforms, *releases):  # type: ignore[no-untyped-def]
        accepted, final = sweep_by_rank(
            Releases(*releases), present, proposed, log_removed, log_added, log_uniforms
        )
        return accepted, np.asarray(final)

    return rank_sweep


@compiles(FullSweep)
def _full_sweep(op: FullSweep) -> Callable:
    log_density = compiled_density(op.density)

    @numba_njit
    def full_sweep(  # type: ignore[no-untyped-def]
        records, proposals, log_removed, log_added, log_uniforms, *context
    ):
        accepted, final = sweep_by_full_evaluation(
            log_density, context, records, proposals, log_removed, log_added, log_uniforms
        )
        return accepted, np.asarray(final)

    return full_sweep


def _context_of(density: LogDensity, first: int) -> Callable:
    """Compile a function that takes the context of a log-density from the last inputs."""
    if density.by_entry:

        @numba_njit
        def context_of(inputs):  # type: ignore[no-untyped-def]
            return inputs[first]
    else:

        @numba_njit
        def context_of(inputs):  # type: ignore[no-untyped-def]
            return inputs[first:]

    return context_of


def _context_of_orders(first: int) -> Callable:
    """Compile a function that adds order statistics, which come first, to the context."""
    second, third, rest = first + 1, first + 2, first + 3

    @numba_njit
    def context_of(inputs):  # type: ignore[no-untyped-def]
        return inputs[rest:], orders_of(inputs[first], inputs[second], inputs[third])

    return context_of


def _row_makers(rows: Rows) -> tuple[Callable, Callable]:
    """Compile functions that make the rows of a block of records, present and proposed.

    They are called as ``rows(arrays, start, stop)``.
    """
    match rows:
        case ComputedRows():
            graph = function_of(rows.graph, "rows_of_block")
            make = _rows_by_array if rows.places is None else _rows_by_entry
            return make(rows, graph, 0), make(rows, graph, rows.n_variables)
        case MatrixRows():

            def maker(which: int) -> Callable:
                @numba_njit
                def rows_of_block(arrays, start, stop):  # type: ignore[no-untyped-def]
                    return arrays[which][start:stop]

                return rows_of_block

            return maker(0), maker(1)


def _rows_by_array(rows: ComputedRows, graph: Callable, first: int) -> Callable:
    """Compile the rows of a block of records; the records are the variables from ``first`` on."""
    sliced, fixed = _arrays_of_block(rows, first)
    arguments = [f"arrays[{k}][start:stop]" for k in sliced] + [f"arrays[{k}]" for k in fixed]
    return _compiled_rows(f"    return rows({', '.join(arguments)})", graph)


def _rows_by_entry(rows: ComputedRows, graph: Callable, first: int) -> Callable:
    """Compile the rows of a block one by one; :func:`_rows_by_array` makes them together."""
    sliced, fixed = _arrays_of_block(rows, first)
    places = [(sliced[k], ", ".join(map(str, ("i", *index)))) for k, index in rows.places or ()]
    arguments = [f"arrays[{k}][{index}]" for k, index in places] + [f"fixed_{k}" for k in fixed]
    entries = [f"block[i - start, {j}]" for j in range(rows.n_columns)]
    lines = [
        *(f"fixed_{k} = arrays[{k}].item()" for k in fixed),
        f"block = np.empty((stop - start, {rows.n_columns}))",
        "for i in range(start, stop):",
        f"    {', '.join(entries)} = rows({', '.join(arguments)})",
        "return block",
    ]
    return _compiled_rows("\n".join(f"    {line}" for line in lines), graph)


def _arrays_of_block(rows: ComputedRows, first: int) -> tuple[list[int], range]:
    """Separate the arrays that have a row for each record from the others."""
    n, covariates = rows.n_variables, rows.n_covariates
    sliced = [*range(first, first + n), *range(2 * n, 2 * n + covariates)]
    return sliced, range(2 * n + covariates, rows.n_arrays)


def _compiled_rows(body: str, rows: Callable) -> Callable:
    source = f"def rows_of_block(arrays, start, stop):\n{body}"
    return numba_njit(from_source(source, "rows_of_block", rows=rows, np=np))


def compiled_density(density: LogDensity) -> Callable:
    """Compile a log-density, or one term of it."""
    if not density.by_entry:
        [graph] = density.graphs
        model_log_density = function_of(graph, "record_log_density")

        @numba_njit
        def log_density(state, context):  # type: ignore[no-untyped-def]
            return model_log_density(state, *context).item()

        return log_density

    several = len(density.graphs) > 1
    names, lines = {}, ["def log_term(entry, values):"]
    for number, graph in enumerate(density.graphs):
        names[f"term_{number}"] = function_of(graph, "entry_log_density")
        own = [f"values[{k + several}]" for k in range(len(graph.inputs) - 1)]
        if several:
            lines.append(f"    if values[0] == {number}:")
        lines.append(f"    {'    ' * several}return term_{number}({', '.join(['entry', *own])})")
    if several:
        lines.append("    return np.nan")
    return numba_njit(from_source("\n".join(lines), "log_term", np=np, **names))
