"""The record sweep as a PyTensor operation.

As an operation with its own numba dispatch and cache key, the sweep is compiled together with the
model's log-density, and PyTensor's disk cache serves both: a key holds the model's graph and what
the kernel is compiled from, so that no model can be served another one's code.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op

from pymc_dapper.backend.internals import FrozenFunctionGraph, to_fixed_tuple
from pymc_dapper.backend.numba_ops import compiles, from_source, function_of, numba_njit
from pymc_dapper.records.compiled.rows import RowsOfBlock
from pymc_dapper.records.kernels.block_sweep import sweep_by_blocks
from pymc_dapper.records.kernels.entry_sweep import go_on_by_rows, sweep_by_entries
from pymc_dapper.records.kernels.full_sweep import sweep_by_full_evaluation
from pymc_dapper.records.kernels.record_sweep import go_on_with_records, sweep_records
from pymc_dapper.records.kernels.rows import Changes, check_rows


class RecordSweep(Op):
    """Record-wise Metropolis updates against a log-density of sums over records.

    Parameters
    ----------
    log_density : FrozenFunctionGraph
        The log-density: inputs are the state (a flat vector of all sums) and then the context,
        what else it depends on; its output is a scalar. Rewritten already for the numba backend.
    """

    __props__ = ("log_density",)

    def __init__(self, log_density: FrozenFunctionGraph):
        self.log_density = log_density

    @property
    def kernel(self) -> Any:
        """The loop over the records."""
        return sweep_records

    def make_node(self, *inputs: Variable) -> Apply:
        """Apply to the parts of Changes, log_removed, log_added, log_uniforms, and context.

        See the kernel for what they are. The outputs are which proposals were accepted, a vector of
        bool, and the log-density of the sums after the sweep, a scalar.
        """
        outputs = [pt.vector("accepted", dtype="bool"), pt.scalar("log_density", dtype="float64")]
        return Apply(self, list(inputs), outputs)

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Not available: the sweep exists as a numba kernel only."""
        raise NotImplementedError("the record sweep runs in PyTensor's numba mode only")


class FullSweep(RecordSweep):
    """Record-wise Metropolis updates against a log-density that is evaluated from all records.

    The state is the matrix of all records, flattened and in float64; ``removed`` and ``added`` are
    this matrix as it is and as it is proposed.
    """

    @property
    def kernel(self) -> Any:
        """The loop over the records."""
        return sweep_by_full_evaluation


class EntrySweep(Op):
    """Record-wise Metropolis updates against a log-density with one term per entry of a sum.

    Parameters
    ----------
    log_term : FrozenFunctionGraph
        The term: inputs are an entry of the sum and then its values of the context, scalars; its
        output is a scalar. Rewritten already for the numba backend.
    """

    __props__ = ("log_term",)

    def __init__(self, log_term: FrozenFunctionGraph):
        self.log_term = log_term

    def make_node(self, *inputs: Variable) -> Apply:
        """Apply to the parts of Changes, log_removed, log_added, log_uniforms, and context.

        Outputs are as for :class:`RecordSweep`.
        """
        outputs = [pt.vector("accepted", dtype="bool"), pt.scalar("log_density", dtype="float64")]
        return Apply(self, list(inputs), outputs)

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Not available: the sweep exists as a numba kernel only."""
        raise NotImplementedError("the record sweep runs in PyTensor's numba mode only")


class BlockSweep(Op):
    """Another of these sweeps, with contributions that are computed for some records at a time.

    Parameters
    ----------
    sweep : EntrySweep or RecordSweep
        The sweep.
    rows : RowsOfBlock
        What a block of records contributes.
    n_variables : int
        Number of record variables.
    records_in_block : int
        Records in a block.
    """

    __props__ = (
        "sweep",
        "graph",
        "places",
        "n_columns",
        "n_variables",
        "n_covariates",
        "records_in_block",
    )

    def __init__(
        self,
        sweep: EntrySweep | RecordSweep,
        rows: RowsOfBlock,
        n_variables: int,
        records_in_block: int,
    ):
        self.sweep = sweep
        self.graph, self.places, self.n_columns = rows.graph, rows.places, rows.n_columns
        self.n_variables = n_variables
        self.n_covariates = len(rows.covariates)
        self.n_arrays = 2 * n_variables + len(rows.covariates) + len(rows.context)
        self.records_in_block = records_in_block

    def make_node(self, *inputs: Variable) -> Apply:
        """Apply to log_removed, log_added, log_uniforms, arrays, and the context of the sweep.

        Arrays are all present records, all proposed ones, all covariates, and what else ``rows``
        takes. Outputs are as for :class:`RecordSweep`.
        """
        outputs = [pt.vector("accepted", dtype="bool"), pt.scalar("log_density", dtype="float64")]
        return Apply(self, list(inputs), outputs)

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Not available: the sweep exists as a numba kernel only."""
        raise NotImplementedError("the record sweep runs in PyTensor's numba mode only")


@compiles(EntrySweep)
def _entry_sweep(op: EntrySweep) -> Callable:
    log_term = _log_term(op)

    @numba_njit
    def entry_sweep(  # type: ignore[no-untyped-def]
        removed, added, present, proposed, differing, log_removed, log_added, log_uniforms, context
    ):
        changes = Changes(removed, added, present, proposed, differing)
        check_rows(changes)
        accepted, final = sweep_by_entries(
            log_term, context, changes, log_removed, log_added, log_uniforms
        )
        return accepted, np.asarray(final)

    return entry_sweep


@compiles(RecordSweep)
def _record_sweep(op: RecordSweep) -> Callable:
    kernel = op.kernel
    log_density = _log_density(op)

    @numba_njit
    def record_sweep(  # type: ignore[no-untyped-def]
        removed, added, present, proposed, differing, log_removed, log_added, log_uniforms, *context
    ):
        changes = Changes(removed, added, present, proposed, differing)
        check_rows(changes)
        accepted, final = kernel(
            log_density, context, changes, log_removed, log_added, log_uniforms
        )
        return accepted, np.asarray(final)

    return record_sweep


@compiles(BlockSweep)
def _block_sweep(op: BlockSweep) -> Callable:
    rows = function_of(op.graph, "rows_of_block")
    make_rows = _rows_by_array if op.places is None else _rows_by_entry
    present_rows, proposed_rows = (make_rows(op, rows, first) for first in (0, op.n_variables))
    n_arrays, n_sums = op.n_arrays, op.n_columns
    records_in_block = op.records_in_block

    go_on: Callable
    log_density: Callable
    if isinstance(op.sweep, EntrySweep):
        go_on = go_on_by_rows
        log_density = _log_term(op.sweep)

        @numba_njit
        def context_of(inputs):  # type: ignore[no-untyped-def]
            return inputs[n_arrays]
    else:
        go_on = go_on_with_records
        log_density = _log_density(op.sweep)

        @numba_njit
        def context_of(inputs):  # type: ignore[no-untyped-def]
            return inputs[n_arrays:]

    @numba_njit
    def block_sweep(log_removed, log_added, log_uniforms, *inputs):  # type: ignore[no-untyped-def]
        accepted, final = sweep_by_blocks(
            go_on,
            log_density,
            context_of(inputs),
            present_rows,
            proposed_rows,
            inputs[:n_arrays],
            n_sums,
            records_in_block,
            log_removed,
            log_added,
            log_uniforms,
        )
        return accepted, np.asarray(final)

    return block_sweep


def _rows_by_array(op: BlockSweep, rows: Callable, first: int) -> Callable:
    """Compile the rows of a block of records, of which the variables from ``first`` on are."""
    sliced, fixed = _arrays_of_block(op, first)
    arguments = [f"arrays[{k}][start:stop]" for k in sliced] + [f"arrays[{k}]" for k in fixed]
    return _compiled_rows(f"    return rows({', '.join(arguments)})", rows)


def _rows_by_entry(op: BlockSweep, rows: Callable, first: int) -> Callable:
    """Compile the rows of a block of records one by one, as :func:`_rows_by_array` does at once."""
    sliced, fixed = _arrays_of_block(op, first)
    places = [(sliced[k], ", ".join(map(str, ("i", *index)))) for k, index in op.places or ()]
    arguments = [f"arrays[{k}][{index}]" for k, index in places] + [f"fixed_{k}" for k in fixed]
    entries = [f"block[i - start, {j}]" for j in range(op.n_columns)]
    lines = [
        *(f"fixed_{k} = arrays[{k}].item()" for k in fixed),
        f"block = np.empty((stop - start, {op.n_columns}))",
        "for i in range(start, stop):",
        f"    {', '.join(entries)} = rows({', '.join(arguments)})",
        "return block",
    ]
    return _compiled_rows("\n".join(f"    {line}" for line in lines), rows)


def _arrays_of_block(op: BlockSweep, first: int) -> tuple[list[int], range]:
    """Tell the arrays that have a row for each record from those that haven't."""
    n, covariates = op.n_variables, op.n_covariates
    sliced = [*range(first, first + n), *range(2 * n, 2 * n + covariates)]
    return sliced, range(2 * n + covariates, op.n_arrays)


def _compiled_rows(body: str, rows: Callable) -> Callable:
    source = f"def rows_of_block(arrays, start, stop):\n{body}"
    return numba_njit(from_source(source, "rows_of_block", rows=rows, np=np))


def _log_term(op: EntrySweep) -> Callable:
    """Compile the term of an entry."""
    model_log_term = function_of(op.log_term, "entry_log_density")
    n_values = len(op.log_term.inputs) - 1

    if n_values == 0:

        @numba_njit
        def log_term(entry, values):  # type: ignore[no-untyped-def]
            return model_log_term(entry)
    else:

        @numba_njit
        def log_term(entry, values):  # type: ignore[no-untyped-def]
            return model_log_term(entry, *to_fixed_tuple(values, n_values))  # type: ignore[call-arg]

    return log_term


def _log_density(op: RecordSweep) -> Callable:
    """Compile the log-density."""
    model_log_density = function_of(op.log_density, "record_log_density")

    @numba_njit
    def log_density(state, context):  # type: ignore[no-untyped-def]
        return model_log_density(state, *context).item()

    return log_density
