"""The compiled record sweep of a model: draw proposals, then decide on them one by one.

All is one compiled function, because a call from Python takes as long as a hundred records.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
from pymc import compile as pymc_compile
from pytensor.compile.mode import Mode
from pytensor.graph import Op, Variable, graph_inputs
from pytensor.tensor.random.type import random_generator_type
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.generators import NOISE, Drawn, drawn_noise
from pymc_dapper.backend.jit import JitFunction, numba_mode, with_parameter_checks
from pymc_dapper.backend.rewrites import rewritten
from pymc_dapper.graphs.data_arrays import DataArrays, of_data_alone
from pymc_dapper.graphs.flat import split
from pymc_dapper.graphs.prior import choose
from pymc_dapper.graphs.rebuild import Graph, frontier, rebuild, same_function
from pymc_dapper.records.compiled import products, truncated_counts  # noqa: F401  (their draws)
from pymc_dapper.records.compiled.op import (
    CellSweep,
    ComputedRows,
    FullSweep,
    LogDensity,
    MatrixRows,
    OrderSweep,
    RankSweep,
    RecordSweep,
    Rows,
    Sweep,
)
from pymc_dapper.records.kernels.rank_sweep import Releases
from pymc_dapper.records.reading.contributions import RowMaker, RowsByBlock, shape_of, side_by_side
from pymc_dapper.records.reading.entrywise import EntryTerm, EntrywiseDensity
from pymc_dapper.records.reading.factors import RecordSum
from pymc_dapper.records.reading.model import ModelReading
from pymc_dapper.records.reading.orders import ByOrder
from pymc_dapper.records.reading.plan import (
    ByEntries,
    ByFullEvaluation,
    BySums,
    EachByItself,
    NothingToDecide,
)
from pymc_dapper.records.reading.ranks import ByRanks
from pymc_dapper.records.reading.rows_by_cell import RowsByCell, indices, seen_columns

AS_DRAWN, NEVER = 1.0, -np.inf
"""Factors of the exponential variates. With ``NEVER``, thresholds are infinite or nan, and no
proposal is accepted."""


@dataclass(frozen=True)
class CompiledSweep:
    """A sweep as compiled functions."""

    function: JitFunction
    """``function(rng, n_present, by, *records, *arguments) -> (*records, outcome, *accepted)``. See
    :meth:`update` and :meth:`arguments`."""
    as_written: JitFunction | None
    """``as_written(*records, *parameters, *data) -> (log_density,)``: the log-density of all
    factors as the model computes it, to detect lost digits; None if the sweep's can't lose
    digits."""
    n_records: Any
    """Number of records, of the type that ``n_present`` has."""
    takes: list[int]
    """Which parameters and data the function takes itself, by their position."""
    data_arrays: DataArrays
    """What it takes besides."""

    def arguments(self, given: Sequence[Any]) -> list[Any]:
        """Return what the function takes, given parameters (or their names) and data."""
        return [*(given[k] for k in self.takes), *self.data_arrays(given)]

    def update(
        self,
        rng: np.random.Generator,
        records: Sequence[np.ndarray],
        given: Sequence[np.ndarray],
        n_present: np.ndarray | None = None,
        by: float = AS_DRAWN,
    ) -> tuple[np.ndarray, ...]:
        """Propose all records, then decide on them one by one.

        ``given`` are parameters and data, in the order of the reading. If only the first
        ``n_present`` records exist, and the others add nothing to any sum, the others become their
        proposals without a decision. ``by`` multiplies exponential variates: with ``NEVER``, all
        proposals that can be refused are.

        Returns the records after the sweep; its outcome, shape (2,); and, if the sweep was compiled
        to tell, a bool for each record: whether its proposal was accepted. The outcome has the
        share of accepted proposals among the present records, and the log-density, after the sweep,
        of all factors that depend on the records except their prior.
        """
        n = self.n_records if n_present is None else n_present
        return self.function(rng, n, by, *records, *self.arguments(given))


class SweepGraph(NamedTuple):
    """A sweep, as graphs in terms of the reading's records, parameters and data."""

    proposed: list[TensorVariable]
    """Variables for the proposals."""
    exponentials: TensorVariable
    """Shape (m,): standard exponential variates. A proposal is accepted if its gain in log-density
    is above minus the variate. The first m records are present, usually all n."""
    updated: list[TensorVariable]
    """The records after the sweep."""
    accepted: TensorVariable
    """Bool, shape (n,): accepted proposals."""
    log_density: TensorVariable
    """Log-density of all factors after the sweep."""


def compile_sweep(
    reading: ModelReading, options: dict[str, Any], *, tell_accepted: bool = False
) -> CompiledSweep:
    """Compile the sweep of a model; ``tell_accepted`` adds which proposals were accepted.

    The options are passed on to PyMC's ``compile``. The mode must be one of numba's.
    """
    _check_options(options)
    sweep = sweep_graph(reading, numba_mode(options.get("mode")))
    outcome = pt.stack([_share(sweep, reading), sweep.log_density])
    outputs = [*sweep.updated, outcome, *([sweep.accepted] if tell_accepted else [])]

    rng, n_present, by = random_generator_type("rng"), ps.int64("n_present"), ps.float64("by")
    n_records: Any = reading.n_records
    n_decided = n_present
    if reading.number is not None:  # as it is in a point
        n_present, n_records = reading.number.type(), np.array(n_records, reading.number.dtype)
        n_decided = pt.clip(n_present, 0, reading.n_records)
    after_noise, values = rng, {}
    for noise in reading.randomness.noise:
        after_noise, values[noise.variable] = drawn_noise(noise.kind, noise.shape, after_noise)
    if not isinstance(reading.plan, NothingToDecide):
        # The negative logarithm of a uniform variate is exponential.
        after_noise, exponentials = Drawn(NOISE["standard_exponential"])(after_noise, n_decided)
        values[sweep.exponentials] = exponentials * by
    if reading.randomness.rng is not None:
        values[reading.randomness.rng] = after_noise
    from_proposals = dict(zip(sweep.proposed, reading.proposals, strict=True))
    given = [*reading.parameters, *reading.data.values()]
    of_data = of_data_alone(outputs, reading.data.values(), Sweep)
    known = {x: x.type() for x in of_data}
    outputs = rebuild(rebuild(rebuild(outputs, known), from_proposals), values)
    used = {*graph_inputs(outputs)}
    takes = [k for k, x in enumerate(given) if x in used]
    inputs = [rng, n_present, by, *reading.records, *(given[k] for k in takes), *known.values()]
    function = JitFunction(inputs, outputs, reading.model, options)
    as_written = None
    if any(factor.expanded for factor in reading.additive_factors):
        graph = _at([factor.as_written for factor in reading.factors], {})
        as_written = JitFunction([*reading.records, *given], [graph], reading.model, options)
    return CompiledSweep(function, as_written, n_records, takes, DataArrays(reading, of_data))


def sweep_graph(reading: ModelReading, mode: Mode) -> SweepGraph:
    """Build the graph of a sweep."""
    proposed = [x.type(name=f"{x.name}_proposed") for x in reading.records]
    exponentials = pt.vector("exponentials", dtype="float64")
    possible, candidates = _possible(reading, proposed)
    mode = with_parameter_checks(mode, reading.model)
    accepted, log_density = _decide(reading, candidates, -exponentials, mode)
    updated = choose(accepted, candidates, reading.records)
    if possible is not None:
        accepted = accepted & possible
    return SweepGraph(proposed, exponentials, updated, accepted, log_density)


def _share(sweep: SweepGraph, reading: ModelReading) -> TensorVariable:
    """Return the share of accepted proposals among the present records."""
    accepted = sweep.accepted.sum(dtype="float64")
    if isinstance(reading.plan, NothingToDecide):
        return accepted / reading.n_records
    n_present = sweep.exponentials.shape[0]
    return (accepted - (reading.n_records - n_present)) / pt.maximum(n_present, 1)


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that PyMC's ``compile`` doesn't take."""
    known = {*signature(pymc_compile).parameters, *signature(pytensor.function).parameters}
    known -= {"inputs", "outputs", "on_unused_input", "kwargs"}
    for name in options:
        if name not in known:
            raise TypeError(
                f"compile_kwargs: PyMC's compile has no option '{name}' to pass on. It has "
                + ", ".join(sorted(known))
            )


def _possible(
    reading: ModelReading, proposed: list[TensorVariable]
) -> tuple[TensorVariable | None, list[TensorVariable]]:
    """Return which proposals are possible; None if all are.

    A record with an impossible proposal keeps its value.
    """
    if reading.possible is None:
        return None, proposed
    [possible] = rebuild([reading.possible], dict(zip(reading.records, proposed, strict=True)))
    return possible, choose(possible, proposed, reading.records)


def _decide(
    reading: ModelReading, proposed: list[TensorVariable], log_uniforms: TensorVariable, mode: Mode
) -> tuple[TensorVariable, TensorVariable]:
    """Return which proposals are accepted, and the factors' total log-density after the sweep."""
    to_proposed = dict(zip(reading.records, proposed, strict=True))

    def before_and_after(graph: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
        return graph, rebuild([graph], to_proposed)[0]

    log_removed, log_added = before_and_after(separable(reading))
    thresholds = log_uniforms
    if reading.separable_factors and not reading.proposes_conditionally:
        thresholds = lowered(log_uniforms, log_removed, log_added)

    match reading.plan:
        case NothingToDecide():
            accepted, logp = pt.ones(reading.n_records, dtype="bool"), pt.zeros(())
        case EachByItself():
            accepted, logp = thresholds < 0.0, pt.zeros(())
        case ByFullEvaluation():
            state: TensorVariable = pt.matrix("records", dtype="float64")
            density = density_of(state, log_density_of_records(reading, state), mode)
            changes = before_and_after(flat_records(reading))
            accepted, logp = density.decide(FullSweep(density.graph), thresholds, *changes)
        case ByRanks() as ranks:
            index = before_and_after(ranks.index)
            accepted, logp = RankSweep(None)(thresholds, *index, *_releases(ranks))
        case ByEntries(rows=RowsByCell() as rows):
            density = density_of_sums(reading, mode)
            changes = before_and_after(indices(reading.records, rows.low))
            places = (rows.sizes, rows.cells, rows.starts, *seen_columns(rows.strides))
            accepted, logp = density.decide(
                CellSweep(density.graph), thresholds, *map(pt.constant, places), *changes
            )
        case ByOrder() as orders:
            density = _density_of_orders(orders, mode)
            arrays, made = _arrays_of_rows(reading, orders.rows, orders.sums, proposed, mode)
            arrays += [*before_and_after(pt.stack(orders.columns)), pt.constant(orders.ranks)]
            accepted, logp = density.decide(OrderSweep(density.graph, made), thresholds, *arrays)
        case ByEntries(rows=rows) | BySums(rows=rows):
            density = density_of_sums(reading, mode)
            arrays, made = _arrays_of_rows(reading, rows, reading.sums, proposed, mode)
            accepted, logp = density.decide(RecordSweep(density.graph, made), thresholds, *arrays)
    if reading.separable_factors:
        logp = logp + pt.switch(accepted, log_added, log_removed).sum()
    return accepted, logp


def _arrays_of_rows(
    reading: ModelReading,
    rows: RowMaker,
    sums: Sequence[RecordSum],
    proposed: list[TensorVariable],
    mode: Mode,
) -> tuple[list[TensorVariable], Rows]:
    """Return the arrays from which rows of contributions are made, and how."""
    if isinstance(rows, RowsByBlock):
        arrays = [*reading.records, *proposed, *rows.covariates, *rows.context]
        return arrays, ComputedRows(
            n_columns=rows.contributions.type.shape[1],
            records_in_block=rows.records_in_block,
            graph=rewritten(rows.inputs, [rows.contributions], mode),
            n_variables=len(proposed),
            n_covariates=len(rows.covariates),
            n_context=len(rows.context),
        )
    present = contributions(sums) if sums else nothing(reading.n_records)
    to_proposed = dict(zip(reading.records, proposed, strict=True))
    return [present, *rebuild([present], to_proposed)], MatrixRows(present.type.shape[1] or 0)


def _releases(ranks: ByRanks) -> Releases:
    """Put what is known of released quantiles into the form of the kernel."""
    laws, columns = ranks.mechanisms, [x.columns for x in ranks.mechanisms]
    places = list(zip(columns, ranks.columns, strict=True))
    n_candidates = np.array([len(low) for low, _, _ in columns])
    sizes = 2 ** np.arange(int(np.ceil(np.log2(n_candidates.max()))))
    nodes, weights = np.concatenate([np.polynomial.legendre.leggauss(n) for n in sizes], axis=1)
    known = Releases(
        passed=np.array([high.searchsorted(at, side="right") for (_, high, _), at in places]),
        reached=np.array([low.searchsorted(at, side="right") for (low, _, _), at in places]),
        n_candidates=n_candidates,
        chosen=pt.stack(ranks.chosen).astype("int64"),
        alpha=np.array([law.alpha for law in laws]),
        scale=np.array([law.scale for law in laws]),
        flips=np.array([law.noise == "exponential" for law in laws]),
        nodes=0.5 * (nodes + 1.0),
        weights=0.5 * weights,
    )
    return Releases(*map(pt.as_tensor, known))


class _Density(NamedTuple):
    """A log-density for a sweep."""

    graph: LogDensity
    context: list[TensorVariable]
    """Its inputs besides the state."""
    offset: TensorVariable
    """Terms that aren't in the graph."""

    def decide(self, sweep: Op, *inputs: Variable) -> tuple[TensorVariable, TensorVariable]:
        """Apply a sweep: which proposals are accepted, and the log-density after it."""
        accepted, logp = sweep(*inputs, *self.context)
        return accepted, logp + self.offset


def density_of(state: TensorVariable, log_density: TensorVariable, mode: Mode) -> _Density:
    """Make the log-density of ``state`` one for a sweep."""
    context = frontier([state], log_density)
    graph = rewritten([state, *context], [log_density], mode)
    return _Density(LogDensity((graph,), by_entry=False), context, pt.constant(0.0))


def density_of_sums(reading: ModelReading, mode: Mode) -> _Density:
    """Make the log-density of the additive factors one for a sweep: by entries, if possible."""
    if isinstance(reading.plan, ByEntries):
        density = reading.plan.density
        numbers, kinds = _kinds(density.terms)
        graphs = [rewritten(*graph, mode) for graph in kinds]
        log_terms = LogDensity(tuple(graphs), by_entry=True)
        return _Density(log_terms, [_context_of_entries(density, numbers)], density.offset)
    state = pt.vector("sums", dtype="float64")
    factors = [factor.log_density for factor in reading.additive_factors]
    return density_of(state, _at(factors, _totals(reading.sums, state)), mode)


def _kinds(terms: Sequence[EntryTerm]) -> tuple[list[int], list[Graph]]:
    """Return a number for each term, from 0 on, and the function of each number."""
    numbers: list[int] = []
    kinds: list[Graph] = []
    for x in terms:
        graph: Graph = [x.entry, *x.values], [x.term]
        like = (k for k, known in enumerate(kinds) if same_function(graph, known))
        numbers.append(next(like, len(kinds)))
        if numbers[-1] == len(kinds):
            kinds.append(graph)
    return numbers, kinds


def _context_of_entries(density: EntrywiseDensity, numbers: Sequence[int]) -> TensorVariable:
    """Put the other inputs of the terms into a matrix with a row for each entry.

    A row begins with the number of the entry's term.
    """
    width = max(len(terms.context) for terms in density.terms)
    rows = []
    for number, terms in zip(numbers, density.terms, strict=True):
        columns = [x.astype("float64") for x in terms.context]
        columns += [pt.zeros(terms.n_entries)] * (width - len(columns))
        rows.append([pt.full(terms.n_entries, np.float64(number)), *columns])
    joined = [pt.concatenate(x) if len(x) > 1 else x[0] for x in zip(*rows, strict=True)]
    return pt.stack(joined, axis=1)


def nothing(*lengths: int) -> TensorVariable:
    """Return an empty array, of shape (*lengths, 0).

    A slice, because the cache key contains a constant's strides, and those of `np.zeros(0)` change
    when it is pickled: a worker process wouldn't find the compiled code.
    """
    return pt.constant(np.zeros((*lengths, 1))[..., :0])


def lowered(
    thresholds: TensorVariable, present: TensorVariable, proposed: TensorVariable
) -> TensorVariable:
    """Lower the thresholds of proposals by what these gain of records' own log-densities.

    The rule for impossible values is that of the kernels (`sums_sweep.log_gain`). Fast arithmetic
    assumes that there are no infinite numbers, so a huge one stands in their place.
    """
    gain = pt.switch(pt.isfinite(proposed), proposed - present, np.float64(-1e300))
    return thresholds - pt.switch(pt.isfinite(present), gain, 0.0)[: thresholds.shape[0]]


def separable(reading: ModelReading) -> TensorVariable:
    """Return each record's separable log-density; empty if there is none."""
    terms = [factor.log_densities for factor in reading.separable_factors]
    return pt.add(*terms).astype("float64") if terms else nothing()


def contributions(sums: Sequence[RecordSum]) -> TensorVariable:
    """Put each record's contributions to all sums into a matrix with a row per record."""
    return side_by_side([sum_.contributions for sum_ in sums])


def _density_of_orders(orders: ByOrder, mode: Mode) -> _Density:
    """Make the log-density of sums, and of order statistics after them, one for a sweep."""
    state = pt.vector("state", dtype="float64")
    n = len(orders.statistics)
    values: dict[Variable, Variable] = _totals(orders.sums, state)
    values |= {x: state[k - n] for k, x in enumerate(orders.statistics)}
    return density_of(state, _at([orders.log_density], values), mode)


def _totals(sums: Sequence[RecordSum], flat: TensorVariable) -> dict[Variable, Variable]:
    """Take the totals of sums from one flat vector."""
    parts = split(flat, [shape_of(sum_.contributions)[1:] for sum_ in sums])
    pairs = zip([sum_.total for sum_ in sums], parts, strict=True)
    return {total: part.astype(total.dtype) for total, part in pairs}


def flat_records(reading: ModelReading) -> TensorVariable:
    """Put all records into a matrix with a row per record."""
    return side_by_side([record.astype("float64") for record in reading.records])


def log_density_of_records(reading: ModelReading, flat: TensorVariable) -> TensorVariable:
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
