"""The record sweep as a PyTensor operation.

As an operation with its own numba dispatch and cache key, the sweep is compiled together with the
model's log-density, and PyTensor's disk cache serves both: a key holds the model's graph and the
kernel's source, so that no model can be served another one's code.
"""

import inspect
import sys
from collections.abc import Callable
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np
import pytensor.tensor as pt
from numba.np.unsafe.ndarray import to_fixed_tuple
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FrozenFunctionGraph
from pytensor.graph.op import Op
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import (
    numba_funcify_and_cache_key,
    numba_njit,
    register_funcify_and_cache_key,
)

from pymc_dapper.kernels.fast_math import is_finite
from pymc_dapper.records.compiled.rows import RowsOfBlock
from pymc_dapper.records.kernels.block_sweep import sweep_by_blocks
from pymc_dapper.records.kernels.entry_sweep import go_on_by_rows, sweep_by_entries
from pymc_dapper.records.kernels.full_sweep import sweep_by_full_evaluation
from pymc_dapper.records.kernels.record_sweep import go_on_with_records, log_gain, sweep_records
from pymc_dapper.records.kernels.rows import Changes, check_rows
from pymc_dapper.records.kernels.sums import end_run


class RecordSweep(Op):
    """Record-wise Metropolis updates against a log-density of sums over records.

    Parameters
    ----------
    log_density : FrozenFunctionGraph
        The log-density: inputs are the state (a flat vector of all sums) and then the context,
        what else it depends on; its output is a scalar. Rewritten already for the numba backend.
    """

    __props__ = ("log_density",)
    kernel: ClassVar[Any] = staticmethod(sweep_records)

    def __init__(self, log_density: FrozenFunctionGraph):
        self.log_density = log_density

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

    kernel: ClassVar[Any] = staticmethod(sweep_by_full_evaluation)


class EntrySweep(Op):
    """Record-wise Metropolis updates against a log-density with one term per entry of a sum.

    Parameters
    ----------
    log_term : FrozenFunctionGraph
        The term: inputs are an entry of the sum and then its values of the context, scalars; its
        output is a scalar. Rewritten already for the numba backend.
    """

    __props__ = ("log_term",)
    kernel: ClassVar[Any] = staticmethod(sweep_by_entries)

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
    kernel: ClassVar[Any] = staticmethod(sweep_by_blocks)

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


@register_funcify_and_cache_key(EntrySweep)
def _funcify_entries(op: EntrySweep, node: Apply, **kwargs: Any) -> tuple[Callable, str | None]:
    kernel = op.kernel
    log_term, model_key = _log_term(op)

    @numba_njit
    def entry_sweep(  # type: ignore[no-untyped-def]
        removed, added, present, proposed, differing, log_removed, log_added, log_uniforms, context
    ):
        changes = Changes(removed, added, present, proposed, differing)
        check_rows(changes)
        accepted, final = kernel(log_term, context, changes, log_removed, log_added, log_uniforms)
        return accepted, np.asarray(final)

    return entry_sweep, _cache_key(op, model_key)


@register_funcify_and_cache_key(RecordSweep)
def _funcify(op: RecordSweep, node: Apply, **kwargs: Any) -> tuple[Callable, str | None]:
    kernel = op.kernel
    log_density, model_key = _log_density(op)

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

    return record_sweep, _cache_key(op, model_key)


@register_funcify_and_cache_key(BlockSweep)
def _funcify_blocks(op: BlockSweep, node: Apply, **kwargs: Any) -> tuple[Callable, str | None]:
    rows, rows_key = numba_funcify_and_cache_key(
        op.graph, squeeze_output=True, fgraph_name="rows_of_block"
    )
    make_rows = _rows_by_array if op.places is None else _rows_by_entry
    present_rows, proposed_rows = (make_rows(op, rows, first) for first in (0, op.n_variables))
    n_arrays, n_sums = op.n_arrays, op.n_columns
    records_in_block, kernel = op.records_in_block, op.kernel

    go_on: Callable
    log_density: Callable
    if isinstance(op.sweep, EntrySweep):
        go_on = go_on_by_rows
        log_density, model_key = _log_term(op.sweep)

        @numba_njit
        def context_of(inputs):  # type: ignore[no-untyped-def]
            return inputs[n_arrays]
    else:
        go_on = go_on_with_records
        log_density, model_key = _log_density(op.sweep)

        @numba_njit
        def context_of(inputs):  # type: ignore[no-untyped-def]
            return inputs[n_arrays:]

    @numba_njit
    def block_sweep(log_removed, log_added, log_uniforms, *inputs):  # type: ignore[no-untyped-def]
        accepted, final = kernel(
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

    if rows_key is None or model_key is None:
        return block_sweep, None
    sweep_key = _cache_key(op.sweep, model_key)
    layout = (op.places, op.n_columns, op.n_variables, op.n_covariates, records_in_block)
    return block_sweep, _cache_key(op, f"{rows_key} {sweep_key} {layout}")


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
    function = compile_numba_function_src(
        f"def rows_of_block(arrays, start, stop):\n{body}",
        "rows_of_block",
        globals() | {"rows": rows},
    )
    return numba_njit(function)


def _log_term(op: EntrySweep) -> tuple[Callable, str | None]:
    """Compile the term of an entry; return the key of its code, too."""
    model_log_term, model_key = numba_funcify_and_cache_key(
        op.log_term, squeeze_output=True, fgraph_name="entry_log_density"
    )
    n_values = len(op.log_term.inputs) - 1

    if n_values == 0:

        @numba_njit
        def log_term(entry, values):  # type: ignore[no-untyped-def]
            return model_log_term(entry)
    else:

        @numba_njit
        def log_term(entry, values):  # type: ignore[no-untyped-def]
            return model_log_term(entry, *to_fixed_tuple(values, n_values))  # type: ignore[call-arg]

    return log_term, model_key


def _log_density(op: RecordSweep) -> tuple[Callable, str | None]:
    """Compile the log-density; return the key of its code, too."""
    model_log_density, model_key = numba_funcify_and_cache_key(
        op.log_density, squeeze_output=True, fgraph_name="record_log_density"
    )

    @numba_njit
    def log_density(state, context):  # type: ignore[no-untyped-def]
        return model_log_density(state, *context).item()

    return log_density, model_key


def _cache_key(op: Op, model_key: str | None) -> str | None:
    """Key of the compiled kernel: by its source, and by what it was compiled with."""
    if model_key is None:
        return None
    parts = (op.kernel, sweep_by_entries, log_gain, check_rows, end_run, is_finite)
    modules = {__name__, *(part.__module__ for part in parts)}
    sources = [inspect.getsource(sys.modules[name]) for name in sorted(modules)]
    key = (type(op).__module__, type(op).__qualname__, *sources, model_key)
    return sha256(repr(key).encode()).hexdigest()
