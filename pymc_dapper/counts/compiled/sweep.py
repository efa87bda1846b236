"""From a reading of counts to a compiled sweep."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor import scalar as ps
from pytensor.compile.mode import Mode
from pytensor.graph import Apply, Constant, Variable, rewrite_graph
from pytensor.graph.traversal import io_toposort
from pytensor.scalar.basic import Composite
from pytensor.tensor.random.type import random_generator_type
from pytensor.tensor.variable import TensorVariable
from scipy import sparse
from scipy.linalg import block_diag

from pymc_dapper.backend.jit import JitFunction, numba_mode, with_parameter_checks
from pymc_dapper.backend.rewrites import rewritten
from pymc_dapper.counts.compiled.blocks import BlockMoves, block_moves, functions_of
from pymc_dapper.counts.compiled.op import CountSweep, Kinds, TermFunction
from pymc_dapper.counts.kernels.line import Structure
from pymc_dapper.counts.kernels.linked import MOST_CHANGED, NONE, pack_linked
from pymc_dapper.counts.kernels.schedule import Grids, Joint, Lines, Packed, Schedule, pack
from pymc_dapper.counts.kernels.sweep import SweepOutcome
from pymc_dapper.counts.reading.linked import Linked
from pymc_dapper.counts.reading.model import CountReading, Terms
from pymc_dapper.counts.reading.moves import BLOCK_PASSES, Moves
from pymc_dapper.counts.reading.self_check import WrittenFactors, by_variable, check_gain, in_cells
from pymc_dapper.graphs import ops
from pymc_dapper.graphs.data_arrays import DataArrays
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.flat import split
from pymc_dapper.graphs.rebuild import frontier, rebuild
from pymc_dapper.graphs.terms.of_sums import united

NO_NUMBERS = np.random.default_rng(0)
"""A generator for calls that draw nothing."""


@dataclass
class CompiledCountSweep:
    """The compiled sweep over all cells.

    Attributes
    ----------
    structure : Structure
        Linear functions and terms of the log-density.
    moves : Moves
        The moves.
    update : JitFunction
        ``update(rng, integers, numbers, *counts, *arguments) -> (*counts, found, changed)`` of the
        values of variables, with all latent totals, and :meth:`arguments`: for ``found`` see
        :class:`CountSweep`; ``changed`` says which cells changed.
    data_arrays : DataArrays
        What it takes of data alone.
    options : dict, optional
        By which to compile moves along several directions at once, if they aren't compiled.
    """

    structure: Structure
    moves: Moves
    update: JitFunction
    data_arrays: DataArrays
    reading: CountReading
    options: dict[str, Any] | None

    def __call__(
        self,
        rng: np.random.Generator,
        counts: np.ndarray,
        tuning: Packed | None,
        given: Sequence[np.ndarray],
    ) -> SweepOutcome:
        """Sweep once.

        Parameters
        ----------
        rng : Generator
            Source of randomness.
        counts : ndarray of int64, shape (number of cells,)
            The counts before.
        tuning : Packed, optional
            Directions and curvatures from an earlier sweep. If not given, curvatures are measured,
            and blocks don't move together: for tuning itself.
        given : sequence of ndarray
            Parameters and data.

        Returns
        -------
        SweepOutcome
            The counts after the sweep, and its statistics.
        """
        takes = *by_variable(self.reading, counts), *self.arguments(given)
        *after, found, _ = self.update(rng, *(tuning or self._untuned), *takes)
        _, moved, n_able, log_density, gain = found[:5].tolist()
        return SweepOutcome(in_cells(after), moved, int(n_able), log_density, gain, found[5:])

    def arguments(self, given: Sequence[Any]) -> list[Any]:
        """Return what the update takes, given parameters (or their names) and data."""
        return [*given[: len(self.reading.parameters)], *self.data_arrays(given)]

    def tune(self, table: np.ndarray, curvatures: np.ndarray) -> Packed:
        """Find the directions in which blocks move.

        Parameters
        ----------
        table : ndarray of int64, shape (number of cells,)
            The table at which curvatures were measured.
        curvatures : ndarray of float64, shape (number of linear functions,)
            Measured in a sweep.

        Returns
        -------
        Packed
            Settings of the following sweeps.
        """
        found = [*tuned_blocks(self.moves, self.structure, table, curvatures)]
        if self.options is not None and any(moves.joint for _, moves in found):
            whole = compile_count_sweep(self.reading, self.moves, self.options)
            self.update, self.data_arrays, self.options = whole.update, whole.data_arrays, None
        return pack(self.structure, with_blocks(self._scheduled, found), curvatures)

    def log_density(self, counts: np.ndarray, given: Sequence[np.ndarray]) -> float:
        """Return the log-density of counts, without terms that don't depend on them."""
        return self(NO_NUMBERS, counts, self._without_moves, given).log_density

    @cached_property
    def everywhere(self) -> Packed:
        """Settings of a sweep that searches the whole of each line, however far the start is."""
        return pack(self.structure, self._scheduled, np.zeros(self.structure.terms.size))

    @cached_property
    def _scheduled(self) -> Schedule:
        return schedule_of(self.moves)

    @cached_property
    def _untuned(self) -> Packed:
        return pack(self.structure, self._scheduled, np.zeros(0))

    @cached_property
    def _without_moves(self) -> Packed:
        packed = pack(self.structure, schedule_of(Moves.none()), np.zeros(0))
        packed.integers[-1] = 0
        return packed


def tuned_blocks(
    moves: Moves, structure: Structure, table: np.ndarray, curvatures: np.ndarray
) -> Iterator[tuple[np.ndarray, BlockMoves]]:
    """Find the directions in which each block moves, with its cells."""
    for block in moves.blocks:
        rows, coefficients = functions_of(block.cells, structure)
        at = table[block.cells]
        yield block.cells, block_moves(block.basis, coefficients, curvatures[rows], at)


def curvatures_in_python(
    reading: CountReading, counts: np.ndarray, given: Sequence[np.ndarray]
) -> Iterator[np.ndarray]:
    """Estimate what the kernel's ``find_curvatures`` measures, before anything is compiled."""
    inputs = [*reading.parameters, *reading.data.values()]
    for terms in reading.terms:
        at: dict[Variable, Variable] = {x: pt.dvector() for x in terms.linear}
        function = rebuild([terms.function], at | terms.fixed)
        evaluate = compile_in_python(reading.model, [*at.values(), *inputs], function)
        values = np.array([matrix @ counts.astype(float) for matrix in terms.linear.values()])
        bends = np.empty_like(values)
        for k, value in enumerate(values):
            by = np.eye(len(values))[:, [k]] * np.maximum(1.0, np.floor(np.sqrt(np.abs(value))))
            low, here, high = (evaluate(*(values + t * by), *given)[0] for t in (-1, 0, 1))
            with np.errstate(invalid="ignore"):
                bends[k] = (2 * here - low - high) / by[k] ** 2
        yield np.nan_to_num(bends, nan=0.0, posinf=1.0, neginf=0.0).T.ravel()
    yield np.zeros(sum(x.matrix.shape[0] for each in reading.wholes for x in each.linear.values()))


def compile_count_sweep(
    reading: CountReading, moves: Moves, options: dict[str, Any], at: Any = None
) -> CompiledCountSweep:
    """Compile the sweep of a model.

    Parameters
    ----------
    reading : CountReading
        The reading of the counts.
    moves : Moves
        The moves of a sweep.
    options : dict
        Passed on to PyMC's ``compile``. The mode must be one of numba's.
    at : tuple, optional
        Counts, and parameters and data. Moves along several directions at once are compiled later,
        when tuning finds such directions, if there are none here.

    Returns
    -------
    CompiledCountSweep
        The compiled functions.
    """
    mode = with_parameter_checks(numba_mode(options.get("mode")), reading.model)
    reading = replace(reading, terms=tuple(united(reading.terms)))
    structure = layout_of(reading)
    table = context_of(reading)
    whole, whole_context = _whole(reading, mode)
    of_terms = [term_function(terms) for terms in reading.terms]
    # Tables of the same kind have functions in common, which are compiled once.
    functions = tuple(dict.fromkeys(of_terms))
    kinds = np.array([functions.index(each) for each in of_terms], dtype=np.int64)
    structure = structure._replace(kinds=kinds[structure.kinds])
    jointly = bool(moves.blocks)
    if jointly and at is not None:
        bends = np.concatenate([*curvatures_in_python(reading, *at)])
        found = tuned_blocks(moves, structure, at[0], bends)
        jointly = any(each.joint for _, each in found)
    of_kinds = Kinds(bool(moves.groups or moves.grids), bool(moves.linked), jointly)
    first_whole = sum(terms.size * len(terms.linear) for terms in reading.terms)
    op = CountSweep(functions, whole, first_whole, of_kinds)

    rng, tuning = random_generator_type("rng"), [pt.lvector("integers"), pt.dvector("numbers")]
    counts = pt.concatenate([x.flatten().astype("int64") for x in reading.counts])
    _, after, found = op(rng, counts, *tuning, table, *whole_context)
    after = reading.totals.completed_in(after)
    parts = split(after, [x.type.shape for x in reading.counts])
    values = [x.astype(of.dtype) for x, of in zip(parts, reading.counts, strict=True)]
    takes = [rng, *tuning, *reading.counts, *reading.parameters]
    known = {x: x.type() for x in frontier(takes, found)}
    outputs = rebuild([*values, found, pt.neq(after, counts)], known)
    return CompiledCountSweep(
        structure=structure,
        moves=moves,
        update=JitFunction([*takes, *known.values()], outputs, reading.model, options),
        data_arrays=DataArrays(reading, [*known]),
        reading=reading,
        options=None if jointly else options,
    )


def check_sweep(
    reading: CountReading, sweep: CompiledCountSweep, counts: np.ndarray, given: list[np.ndarray]
) -> Packed:
    """Compare sweeps from possible counts with the model; return what they tune."""
    written, rng = WrittenFactors(reading, given), np.random.default_rng(0)
    tuning: Packed | None = None
    for tunes in (False, True, False):  # the last sweep moves blocks, too
        swept = sweep(rng, counts, tuning, given)
        check_gain(written, counts, swept.counts, swept.gain)
        if tunes:
            tuning = sweep.tune(counts, swept.curvatures)
        counts = swept.counts
    assert tuning is not None
    return tuning


def any_impossible(
    reading: CountReading, sweep: CompiledCountSweep, counts: np.ndarray, given: list[np.ndarray]
) -> bool:
    """Whether some of all linked tables have probability zero, as far as random ones show."""
    rng = np.random.default_rng(0)
    return any(
        sweep.log_density(reading.totals.completed(table), given) == -np.inf
        for linked in sweep.moves.linked
        for table in linked.spread(counts, rng)
    )


def layout_of(reading: CountReading) -> Structure:
    """Lay out the linear functions term by term, those of whole factors last."""
    matrices: list[sparse.csr_array] = []
    terms: list[np.ndarray] = []
    kinds: list[np.ndarray] = []
    contexts: list[np.ndarray] = []
    first: list[np.ndarray] = []
    n_rows, n_terms, n_context = 0, 0, 0
    for kind, each in enumerate(reading.terms):
        n_linear, numbers = len(each.linear), np.arange(each.size)
        stacked = sparse.vstack(list(each.linear.values()), format="csr")
        # The linear functions of a term stand next to each other.
        matrices.append(stacked[np.arange(each.size * n_linear).reshape(n_linear, -1).T.ravel()])
        terms.append(np.repeat(n_terms + numbers, n_linear))
        kinds.append(np.full(each.size, kind))
        first.append(n_rows + numbers * n_linear)
        contexts.append(n_context + numbers * len(each.fixed))
        n_rows += each.size * n_linear
        n_terms += each.size
        n_context += each.size * len(each.fixed)
    for whole in reading.wholes:
        for linear in whole.linear.values():
            matrices.append(linear.matrix)
            terms.append(np.full(linear.matrix.shape[0], -1))
    columns_of_cells = sparse.vstack(matrices, format="csc")
    columns_of_cells.eliminate_zeros()
    arrays = (
        columns_of_cells.indptr,
        columns_of_cells.indices,
        columns_of_cells.data,
        *(np.concatenate([np.zeros(0), *each]) for each in (terms, kinds, first, contexts)),
    )
    dtypes = [np.float64 if name == "coefficients" else np.int64 for name in Structure._fields]
    return Structure(*(x.astype(dtype) for x, dtype in zip(arrays, dtypes, strict=True)))


def context_of(reading: CountReading) -> TensorVariable:
    """Put the terms' other inputs into one vector, term by term."""
    tables = [
        pt.stack([x.astype("float64") for x in terms.fixed.values()], axis=1).ravel()
        for terms in reading.terms
        if terms.fixed
    ]
    return pt.concatenate(tables) if tables else pt.zeros(0)


def _whole(reading: CountReading, mode: Mode) -> tuple[Any, list[Variable]]:
    """Write the factors that aren't sums of terms as functions of one vector."""
    if not reading.wholes:
        return None, []
    flat = pt.vector("linear", dtype="float64")
    seen = [each for factor in reading.wholes for each in factor.linear.items()]
    parts = split(flat, [linear.shape for _, linear in seen])
    values: dict[Variable, Variable] = {
        x: (part + linear.offset).astype(x.dtype)
        for (x, linear), part in zip(seen, parts, strict=True)
    }
    [log_density] = rebuild([pt.add(*(f.log_density for f in reading.wholes))], values)
    log_density = log_density.astype("float64")
    context = frontier([flat], log_density)
    return rewritten([flat, *context], [log_density], mode), context


def term_function(terms: Terms) -> TermFunction:
    """Write a term as a function of float64 numbers."""
    arguments = [*terms.linear, *terms.fixed]
    function = terms.function.astype("float64")
    # Numerically stable forms, where PyTensor knows them.
    stable = rewrite_graph(function, include=("canonicalize", "stabilize", "specialize"))
    try:
        op = _composite(arguments, stable)
    except NotImplementedError:
        op = _composite(arguments, function)
    return TermFunction(op, len(terms.linear), len(terms.fixed))


def _composite(arguments: Sequence[Variable], function: TensorVariable) -> Composite:
    inputs = [ps.float64() for _ in arguments]
    scalars: dict[Variable, Variable] = {}
    for argument, number in zip(arguments, inputs, strict=True):
        dtype = argument.type.dtype
        scalars[argument] = number if dtype == "float64" else ps.cast(number, dtype)
    for node in io_toposort([], [function]):
        given = [_as_scalar(x, scalars) for x in node.inputs]
        scalars[node.outputs[0]] = _scalar_output(node, given)
    return Composite(inputs, [ps.cast(_as_scalar(function, scalars), "float64")])


def _scalar_output(node: Apply, inputs: list[Variable]) -> Variable:
    on_numbers = ops.scalar_of(node)
    if on_numbers is not None:
        return on_numbers.make_node(*inputs).outputs[0]
    if isinstance(ops.action_of(node.op, node), ops.Keeps | ops.Moves) and len(inputs) == 1:
        return inputs[0]
    raise NotImplementedError(f"{node.op} of scalars")


def _as_scalar(x: Variable, scalars: dict[Variable, Variable]) -> Variable:
    if x in scalars:
        return scalars[x]
    if isinstance(x, Constant):
        value = np.asarray(x.data)
        return ps.ScalarConstant(ps.get_scalar_type(value.dtype), value.item())
    raise NotImplementedError(f"{x} is no argument")


def schedule_of(moves: Moves) -> Schedule:
    """Convert moves to the kernel's form."""
    grids = [grid.cells for grid in moves.grids]
    shapes = [(1, len(cells)) for cells in moves.groups]
    shapes += [(len(cells), len(cells[0])) for cells in grids]
    rows, columns = np.array(shapes, dtype=np.int64).reshape(-1, 2).T
    in_groups = _joined(moves.groups)
    places = [cells for grid in grids for row in grid for cells in row]
    directions = moves.directions.tocsr()
    lines = (directions.indptr, directions.indices, directions.data)
    return Schedule(
        Lines(moves.single, *lines, order=np.arange(directions.shape[0])),
        Grids(
            rows,
            columns,
            places=np.cumsum(rows * columns) - rows * columns,
            starts=np.append(np.arange(len(in_groups)), len(in_groups) + _starts(places)),
            cells=_joined([in_groups, *places]),
            passes=np.append(moves.passes, [grid.passes for grid in moves.grids]),
        ),
        _linked(moves.linked),
        Joint(np.zeros(1), np.zeros(0), np.zeros(0)),
    )


def _linked(groups: Sequence[Linked]) -> np.ndarray:
    """Join groups of linked tables: no table has columns of two of them."""
    sizes, starts = (_joined([getattr(x, name) for x in groups]) for name in ("sizes", "starts"))
    before = _starts([x.sizes for x in groups])
    # Of columns that change at once, numbers run below NONE.
    sets = [x.sets + n * np.sign(x.sets - NONE) for x, n in zip(groups, before, strict=False)]
    strides = block_diag(*(x.strides for x in groups))
    return pack_linked(sizes, starts, strides, np.concatenate([np.zeros((0, MOST_CHANGED)), *sets]))


def with_blocks(schedule: Schedule, blocks: Sequence[tuple[np.ndarray, BlockMoves]]) -> Schedule:
    """Add the moves of blocks to a schedule, given the cells of each."""
    lines = schedule.lines
    lengths, order = [np.diff(lines.starts)], [lines.order]
    cells, steps = [lines.cells], [lines.steps]
    joint, factors, n_directions = [], [np.zeros(0)], len(lengths[0])
    for inside, moves in blocks:
        joint += [n_directions + chosen for chosen in moves.joint]
        factors += [factor.ravel() for factor in moves.factors]
        order += [n_directions + moves.lines] * BLOCK_PASSES
        lengths.append(np.count_nonzero(moves.directions, axis=1))
        cells.append(inside[np.nonzero(moves.directions)[1]])
        steps.append(moves.directions[moves.directions != 0])
        n_directions += len(moves.directions)
    starts = np.append(0, np.cumsum(np.concatenate(lengths)))
    return schedule._replace(
        lines=Lines(lines.single, starts, *map(np.concatenate, (cells, steps, order))),
        joint=Joint(_starts(joint), _joined(joint), np.concatenate(factors)),
    )


def _starts(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.cumsum([0] + [len(part) for part in parts])


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])
