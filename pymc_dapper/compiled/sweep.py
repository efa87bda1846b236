"""The compiled record sweep of a model: draw proposals, then decide on them one by one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from inspect import signature
from math import prod
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc.pytensorf import compile as pymc_compile
from pytensor.compile.aliasing import add_supervisor_to_fgraph
from pytensor.compile.io import In
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph
from pytensor.graph.op import Op
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.compiled.functions import JitFunction, numba_mode, with_parameter_checks
from pymc_dapper.compiled.sweep_op import EntrySweep, FullSweep, RecordSweep
from pymc_dapper.reading.entrywise import EntrywiseDensity, read_entrywise
from pymc_dapper.reading.graphs import frontier, rebuild
from pymc_dapper.reading.model import ModelReading
from pymc_dapper.reading.proposals import all_entries, as_rows
from pymc_dapper.reading.randomness import Randomness
from pymc_dapper.reading.rows_by_value import differing_columns, rows_by_value, value_index


@dataclass(frozen=True)
class CompiledSweep:
    """The two compiled halves of a sweep.

    Attributes
    ----------
    propose : callable
        ``propose(rng, *parameters, *data) -> proposals``: new records from their prior.
    decide : JitFunction
        ``decide(*records, *proposals, log_uniforms, *parameters, *data) -> (*records, accepted,
        mechanism_logp)``: the records after the sweep, which proposals were accepted (shape (n,)),
        and the log-density of all factors that the records enter except their prior.
    as_written : JitFunction or None
        ``as_written(*records, *parameters, *data) -> (log_density,)``: the same log-density as the
        model has it, where the sweep's may have lost digits; None where it can't.
    """

    propose: Callable[..., tuple[np.ndarray, ...]]
    decide: JitFunction
    as_written: JitFunction | None


def compile_sweep(
    reading: ModelReading,
    *,
    compile_kwargs: dict[str, Any] | None = None,
    sweep_op: type[RecordSweep | EntrySweep] | None = None,
) -> CompiledSweep:
    """Compile the sweep of a model.

    Parameters
    ----------
    reading : ModelReading
        How the model sees its records.
    compile_kwargs : dict, optional
        Passed on to PyMC's ``compile``. The mode must be one of numba's.
    sweep_op : type, optional
        The operation that decides on the proposals, with its kernel: :class:`EntrySweep` or
        :class:`RecordSweep`. If not given, the first where the log-density has a term for each
        entry of a sum, else the second.

    Returns
    -------
    CompiledSweep
        The compiled functions.
    """
    compile_kwargs = compile_kwargs or {}
    _check_options(compile_kwargs)
    data = {shared: shared.type(name=shared.name) for shared in reading.data}
    given = [*reading.parameters, *data.values()]

    proposed = [x.type(name=f"{x.name}_proposed") for x in reading.records]
    log_uniforms = pt.vector("log_uniforms", dtype="float64")
    mode = with_parameter_checks(numba_mode(compile_kwargs.get("mode")), reading.model)
    possible, candidates = _possible(reading, proposed)
    accepted, logp = _decide(reading, candidates, log_uniforms, mode, sweep_op)
    updated = _choose(accepted, candidates, reading.records)
    if possible is not None:
        accepted = accepted & possible

    options: dict[str, Any] = {"model": reading.model, "compile_kwargs": compile_kwargs}
    return CompiledSweep(
        propose=_Propose(
            reading.randomness,
            JitFunction(
                [*reading.randomness.inputs, *given], rebuild(reading.proposals, data), **options
            ),
        ),
        decide=JitFunction(
            [*reading.records, *proposed, log_uniforms, *given],
            rebuild([*updated, accepted, logp], data),
            **options,
        ),
        as_written=JitFunction(
            [*reading.records, *given],
            rebuild([_at([factor.as_written for factor in reading.factors], {})], data),
            **options,
        )
        if any(factor.expanded for factor in reading.additive_factors)
        else None,
    )


def _check_options(options: Mapping[str, Any]) -> None:
    """Check that PyMC's ``compile`` takes options.

    Raises
    ------
    TypeError
        If it doesn't; the message names the option.
    """
    known = {*signature(pymc_compile).parameters, *signature(pytensor.function).parameters}
    known -= {"inputs", "outputs", "on_unused_input", "kwargs"}
    for name in options:
        if name not in known:
            raise TypeError(
                f"compile_kwargs: PyMC's compile has no option '{name}' to pass on. It has "
                + ", ".join(sorted(known))
            )


@dataclass(frozen=True)
class _Propose:
    """Draw noise, and make proposals of it."""

    randomness: Randomness
    from_noise: JitFunction

    def __call__(self, rng: np.random.Generator, *given: np.ndarray) -> tuple[np.ndarray, ...]:
        return self.from_noise(*self.randomness.draw(rng), *given)


def _possible(
    reading: ModelReading, proposed: list[TensorVariable]
) -> tuple[TensorVariable | None, list[TensorVariable]]:
    """Which proposals have a value in the space of the value variables; None if all do.

    Records for which there is none are proposed to stay as they are.
    """
    pairs = zip(reading.records, proposed, strict=True)
    finite = [all_entries(pt.isfinite(new)) for x, new in pairs if x in reading.transformed]
    if not finite:
        return None, proposed
    possible = reduce(pt.and_, finite)
    return possible, _choose(possible, proposed, reading.records)


def _choose(
    chosen: TensorVariable, new: Sequence[TensorVariable], old: Sequence[TensorVariable]
) -> list[TensorVariable]:
    """Take the new values of the records chosen, and the old ones of the others."""
    return [
        pt.switch(as_rows(chosen, b), b, a).astype(a.dtype) for a, b in zip(old, new, strict=True)
    ]


def _decide(
    reading: ModelReading,
    proposed: list[TensorVariable],
    log_uniforms: TensorVariable,
    mode: Mode,
    sweep_op: type[RecordSweep | EntrySweep] | None,
) -> tuple[TensorVariable, TensorVariable]:
    """Which proposals are accepted, and the factors' total log-density after the sweep."""
    to_proposed = dict(zip(reading.records, proposed, strict=True))

    def before_and_after(graph: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
        return graph, rebuild([graph], to_proposed)[0]

    log_removed, log_added = before_and_after(_separable(reading))
    deciding = (log_removed, log_added)
    if reading.proposes_conditionally:
        deciding = (_nothing(), _nothing())

    entrywise = None
    if sweep_op is None or issubclass(sweep_op, EntrySweep):
        entrywise = read_entrywise(reading.additive_factors)
    if reading.full_factors:
        state: TensorVariable = pt.matrix("records", dtype="float64")
        log_density = _log_density_of_records(reading, state)
        changes = _row_by_row(*before_and_after(_flat_records(reading)))
        accepted, logp = _apply(
            FullSweep, state, log_density, changes, deciding, log_uniforms, mode
        )
    elif reading.additive_factors:
        by_value = _changes_by_value(reading, before_and_after)
        changes = by_value or _row_by_row(*before_and_after(_contributions(reading)))
        if entrywise is not None:
            op = sweep_op or EntrySweep
            accepted, logp = _apply_to_entries(op, entrywise, changes, deciding, log_uniforms, mode)
        else:
            op = sweep_op or RecordSweep
            state = pt.vector("sums", dtype="float64")
            log_density = _log_density_of_sums(reading, state)
            accepted, logp = _apply(op, state, log_density, changes, deciding, log_uniforms, mode)
    elif reading.proposes_conditionally:
        accepted, logp = pt.ones(reading.n_records, dtype="bool"), pt.zeros(())
    else:
        # Records don't interact: all are decided on at once.
        accepted, logp = log_uniforms < _log_gain(*deciding), pt.zeros(())
    if reading.separable_factors:
        logp = logp + pt.switch(accepted, log_added, log_removed).sum()
    return accepted, logp


def _apply(
    sweep_op: type[Op],
    state: TensorVariable,
    log_density: TensorVariable,
    changes: Sequence[TensorVariable],
    log_removed_and_added: tuple[TensorVariable, TensorVariable],
    log_uniforms: TensorVariable,
    mode: Mode,
) -> tuple[TensorVariable, TensorVariable]:
    """Sweep over the records, against a log-density of ``state``."""
    context = frontier([state], log_density)
    op = sweep_op(rewritten([state, *context], log_density, mode))
    accepted, logp = op(*changes, *log_removed_and_added, log_uniforms, *context)
    return accepted, logp


def _apply_to_entries(
    sweep_op: type[Op],
    density: EntrywiseDensity,
    changes: Sequence[TensorVariable],
    log_removed_and_added: tuple[TensorVariable, TensorVariable],
    log_uniforms: TensorVariable,
    mode: Mode,
) -> tuple[TensorVariable, TensorVariable]:
    """Sweep over the records, against a log-density with a term for each entry of a sum."""
    op = sweep_op(rewritten([density.entry, *density.values], density.term, mode))
    columns = [x.astype("float64") for x in density.context]
    n_entries = prod(density.sum.total.type.shape)
    context = pt.stack(columns, axis=1) if columns else _nothing(n_entries)
    accepted, logp = op(*changes, *log_removed_and_added, log_uniforms, context)
    return accepted, logp + density.offset


def _nothing(*lengths: int) -> TensorVariable:
    """Return an empty array, of shape (*lengths, 0).

    A slice, since the cache's key holds the strides of a constant, and those of `np.zeros(0)`
    change when it is pickled: a worker wouldn't find what was compiled.
    """
    return pt.constant(np.zeros((*lengths, 1))[..., :0])


def _log_gain(present: TensorVariable, proposed: TensorVariable) -> TensorVariable:
    """Apply the kernel's rule for impossible values to all records at once."""
    gain = pt.switch(pt.isfinite(proposed), proposed - present, -np.inf)
    return pt.switch(pt.isfinite(present), gain, 0.0)


def _separable(reading: ModelReading) -> TensorVariable:
    """Each record's separable log-density; empty where there is none."""
    terms = [factor.log_densities for factor in reading.separable_factors]
    return pt.add(*terms).astype("float64") if terms else _nothing()


def _contributions(reading: ModelReading) -> TensorVariable:
    """Put what each record adds to all sums into a matrix with a row per record."""
    return _side_by_side([sum_.contributions for sum_ in reading.sums])


def _changes_by_value(
    reading: ModelReading,
    before_and_after: Callable[[TensorVariable], tuple[TensorVariable, TensorVariable]],
) -> list[TensorVariable] | None:
    """Make changes of a table with a row for each value that a record can take (see `Changes`).

    None if they aren't few, or don't say all.
    """
    values = reading.possible_values
    if values is None:
        return None
    tables = []
    for sum_ in reading.sums:
        rows = rows_by_value(sum_.contributions, reading.records, values)
        if rows is None:
            return None
        tables.append(rows)
    table = _side_by_side(tables)
    index = before_and_after(value_index(reading.records, values))
    return [table, table, *index, differing_columns(table)]


def _row_by_row(removed: TensorVariable, added: TensorVariable) -> list[TensorVariable]:
    """Make changes of matrices with a row per record (see `Changes`)."""
    n_records, n_columns = removed.shape
    row = pt.arange(n_records).astype("uint32")
    all_columns = pt.concatenate([n_columns[None], pt.arange(n_columns)])[None].astype("uint32")
    return [removed, added, row, row, all_columns]


def _side_by_side(rows: Sequence[TensorVariable]) -> TensorVariable:
    """Flatten each row, and put those of several arrays into one."""
    return pt.concatenate([_with_columns(x) for x in rows], axis=1).astype("float64")


def _with_columns(rows: TensorVariable) -> TensorVariable:
    return rows.flatten(2) if rows.type.ndim > 1 else rows[:, None]


def _log_density_of_sums(reading: ModelReading, flat: TensorVariable) -> TensorVariable:
    """All additive factors' log-density as a function of one flat vector of sums."""
    totals: dict[Variable, Variable] = {}
    start: Any = 0
    for sum_ in reading.sums:
        _, *shape = _shape(sum_.contributions)
        stop = start + prod(shape)
        totals[sum_.total] = flat[start:stop].reshape(shape).astype(sum_.total.dtype)
        start = stop
    return _at([factor.log_density for factor in reading.additive_factors], totals)


def _flat_records(reading: ModelReading) -> TensorVariable:
    """Put all records into a matrix with a row per record."""
    return _side_by_side([record.astype("float64") for record in reading.records])


def _log_density_of_records(reading: ModelReading, flat: TensorVariable) -> TensorVariable:
    """Log-density of all factors but the separable ones, from one matrix of all records."""
    values: dict[Variable, Variable] = {}
    start = 0
    for record in reading.records:
        stop = start + prod(record.type.shape[1:])
        part = flat[:, start:stop].reshape(record.type.shape)
        values[record] = part.astype(record.dtype)
        start = stop
    whole = [*reading.additive_factors, *reading.full_factors]
    return _at([factor.as_written for factor in whole], values)


def _at(
    log_densities: Sequence[TensorVariable], values: Mapping[Variable, Variable]
) -> TensorVariable:
    [total] = rebuild([pt.add(*log_densities)], values)
    return total.astype("float64")


def _shape(x: TensorVariable) -> list[Any]:
    """Return the shape, as numbers where they are known."""
    return [x.shape[k] if size is None else size for k, size in enumerate(x.type.shape)]


def rewritten(inputs: list[Variable], output: TensorVariable, mode: Mode) -> FrozenFunctionGraph:
    """Optimise a graph for the backend; its inputs stay untouched when it is evaluated."""
    graph = FunctionGraph(inputs, [output], clone=True)
    specs = [In(x, borrow=True, mutable=False) for x in graph.inputs]
    add_supervisor_to_fgraph(graph, specs, accept_inplace=True)
    mode.optimizer.rewrite(graph)
    return graph.freeze()
