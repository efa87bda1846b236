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

from pymc_dapper.backend.accelerate import passing
from pymc_dapper.backend.in_python import KernelOp
from pymc_dapper.backend.internals import FrozenFunctionGraph
from pymc_dapper.backend.numba_ops import compiles, from_source, function_of, numba_njit
from pymc_dapper.records.kernels.cell_sweep import sweep_by_cell
from pymc_dapper.records.kernels.entry_sweep import decide_by_entries
from pymc_dapper.records.kernels.full_sweep import sweep_by_full_evaluation
from pymc_dapper.records.kernels.order_sweep import decide_by_order, orders_of
from pymc_dapper.records.kernels.rank_sweep import sweep_by_rank
from pymc_dapper.records.kernels.sums_sweep import decide_by_sums, sweep_by_blocks


@dataclass(frozen=True)
class LogDensity:
    """A log-density, already rewritten for the numba backend."""

    graphs: tuple[FrozenFunctionGraph, ...]
    """Inputs are the state (a flat vector of all sums, or a matrix of all records), then the
    context (its other inputs); the output is a scalar."""
    by_entry: bool
    """Whether it is a sum of terms, each of one entry of the sums. The graphs are then terms, one
    for each sum or one for all sums with the same term. Their inputs are scalars: an entry and its
    values of the context, which begins with the number of the entry's graph.
    """


@dataclass(frozen=True)
class MatrixRows:
    """Precomputed contributions, present and proposed: matrices with a row for each record."""

    n_columns: int
    """0 if it isn't known beforehand."""
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
    n_variables: int
    n_covariates: int
    n_context: int
    """Number of arrays of each kind."""

    @property
    def n_arrays(self) -> int:
        """Number of all arrays."""
        return 2 * self.n_variables + self.n_covariates + self.n_context


Rows = MatrixRows | ComputedRows


class Sweep(KernelOp):
    """Record-wise Metropolis updates.

    Inputs are the thresholds of proposals, the arrays of a kernel, and the context of the
    log-density. The outputs are a vector of bool, which proposals were accepted, and a scalar, the
    log-density after the sweep.
    """

    __props__: ClassVar[tuple[str, ...]] = ("density",)
    density: LogDensity | None
    results = (pt.TensorType("bool", shape=(None,)), pt.dscalar)
    n_arrays: ClassVar[int] = 2


class CellSweep(Sweep):
    """Updates of records that are each counted in one cell of each of several tables.

    The arrays are the parts of :class:`~pymc_dapper.records.kernels.cell_sweep.Cells`.
    """

    n_arrays = 7


class RankSweep(Sweep):
    """Updates of records of which quantiles were released.

    The arrays are the intervals of the records, present and proposed. The context is that of
    :class:`~pymc_dapper.records.kernels.rank_sweep.Releases`.
    """


class FullSweep(Sweep):
    """Updates against a log-density that is evaluated from all records.

    The arrays are the matrix of all records in float64, present and proposed.
    """


class RecordSweep(Sweep):
    """Updates against a log-density of sums over records, with a row for each record.

    The arrays are those from which rows are made.
    """

    __props__ = ("density", "rows")
    rows: Rows


class OrderSweep(RecordSweep):
    """Updates against a log-density of sums over records, then of order statistics.

    Further arrays are those of :func:`~pymc_dapper.records.kernels.order_sweep.orders_of`.
    """


@compiles(Sweep)
def _sweep(op: Sweep) -> Callable:
    # Looked up here, so that tests can put a kernel with a fault in its place.
    kernels: dict[type[Sweep], Callable] = {
        CellSweep: sweep_by_cell,
        RankSweep: sweep_by_rank,
        FullSweep: sweep_by_full_evaluation,
    }
    n_arrays = op.n_arrays
    log_density = None if op.density is None else compiled_density(op.density)
    kernel, log_density = passing(kernels[type(op)], log_density)
    context_of = _context_of(op.density, n_arrays)

    @numba_njit
    def sweep(thresholds, *inputs):  # type: ignore[no-untyped-def]
        accepted, final = kernel(log_density, context_of(inputs), inputs[:n_arrays], thresholds)
        return accepted, np.asarray(final)

    return sweep


@compiles(RecordSweep)
def _record_sweep(op: RecordSweep) -> Callable:
    assert op.density is not None
    log_density, rows = compiled_density(op.density), op.rows
    present_rows, proposed_rows = _row_makers(rows)
    n_arrays, n_columns, in_block = rows.n_arrays, rows.n_columns, rows.records_in_block
    decide = decide_by_entries if op.density.by_entry else decide_by_sums
    context_of = _context_of(op.density, n_arrays)
    if isinstance(op, OrderSweep):
        decide, context_of = decide_by_order, _context_of_orders(n_arrays)
    kernel, decide, log_density, present, proposed = passing(
        sweep_by_blocks, decide, log_density, present_rows, proposed_rows
    )

    @numba_njit
    def record_sweep(thresholds, *inputs):  # type: ignore[no-untyped-def]
        accepted, final = kernel(
            decide,
            log_density,
            context_of(inputs),
            present,
            proposed,
            inputs[:n_arrays],
            n_columns or present_rows(inputs, 0, 1).shape[1],
            in_block,
            thresholds,
        )
        return accepted, np.asarray(final)

    return record_sweep


def _context_of(density: LogDensity | None, first: int) -> Callable:
    """Compile a function that takes the context of a log-density from the last inputs."""
    at = first if density is not None and density.by_entry else f"{first}:"
    return numba_njit(from_source(f"def context_of(inputs): return inputs[{at}]", "context_of"))


def _context_of_orders(first: int) -> Callable:
    """Compile a function that adds order statistics, which come first, to the context."""
    arrays = ", ".join(f"inputs[{k}]" for k in range(first, first + 3))
    source = f"def context_of(inputs): return inputs[{first + 3}:], orders_of({arrays})"
    return numba_njit(from_source(source, "context_of", orders_of=orders_of))


def _row_makers(rows: Rows) -> list[Callable]:
    """Compile functions that make the rows of a block of records, present and proposed.

    They are called as ``rows(arrays, start, stop)``.
    """
    match rows:
        case MatrixRows():
            graph, made = None, [f"arrays[{which}][start:stop]" for which in range(2)]
        case ComputedRows(n_variables=n):
            graph, first_fixed = function_of(rows.graph, "rows_of_block"), 2 * n + rows.n_covariates
            fixed = [f"arrays[{k}]" for k in range(first_fixed, rows.n_arrays)]
            made = []
            for first in (0, n):
                of_block = (*range(first, first + n), *range(2 * n, first_fixed))
                sliced = [f"arrays[{k}][start:stop]" for k in of_block]
                made.append(f"rows({', '.join(sliced + fixed)})")
    sources = [f"def rows_of_block(arrays, start, stop): return {each}" for each in made]
    return [numba_njit(from_source(x, "rows_of_block", rows=graph)) for x in sources]


def compiled_density(density: LogDensity) -> Callable:
    """Compile a log-density, or one term of it."""
    if not density.by_entry:
        [graph] = density.graphs
        model_log_density = function_of(graph, "record_log_density")

        @numba_njit
        def log_density(state, context):  # type: ignore[no-untyped-def]
            return model_log_density(state, *context).item()

        return log_density

    names, lines = {}, ["def log_term(entry, values):"]
    for number, graph in enumerate(density.graphs):
        names[f"term_{number}"] = function_of(graph, "entry_log_density")
        own = [f"values[{k}]" for k in range(1, len(graph.inputs))]
        only_if = f"if values[0] == {number}: " if graph is not density.graphs[-1] else ""
        lines.append(f"    {only_if}return term_{number}({', '.join(['entry', *own])})")
    return numba_njit(from_source("\n".join(lines), "log_term", **names))
