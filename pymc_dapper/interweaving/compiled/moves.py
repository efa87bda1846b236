"""The compiled move of parameters and records, with the records' noise held fixed.

The moves are compiled once, as an operation (for the reason see `records.compiled.op`), and given
the model's log-density by its address.
"""

from collections.abc import Callable, Sequence
from functools import cache, reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from numba import types
from pytensor.graph import Apply, FunctionGraph, Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.in_python import KernelOp
from pymc_dapper.backend.internals import FrozenFunctionGraph, PointType
from pymc_dapper.backend.iterations import Drawing, Transition
from pymc_dapper.backend.jit import JitFunction, numba_mode, with_parameter_checks
from pymc_dapper.backend.numba_ops import compiles, function_of, given_once, numba_njit
from pymc_dapper.backend.rewrites import JOINING, joins_operations, rewritten
from pymc_dapper.graphs.checks import impossible_if_invalid
from pymc_dapper.graphs.costs import nanoseconds
from pymc_dapper.graphs.rebuild import frontier, rebuild
from pymc_dapper.interweaving.compiled import counts  # noqa: F401  (registers maps)
from pymc_dapper.interweaving.kernels.moves import (
    MAX_SHRINKS,
    NORMALS,
    Fit,
    Variates,
    draw_flat,
    draw_variates,
    move_parameters,
)
from pymc_dapper.interweaving.kernels.tuning import Costs, counted
from pymc_dapper.interweaving.reading.non_centred import NonCentredModel
from pymc_dapper.steps.base import Given

LARGEST_NUMBER = 2**31 - 1
ROUNDING = 1e-6
"""Records aren't moved if they come back from their noise with a larger error."""


def compile_moves(
    reading: NonCentredModel, options: dict[str, Any], largest: float
) -> tuple[JitFunction, Costs]:
    """Compile the moves of a model's parameters, and count their cost for counts up to ``largest``.

    The function is called as ``moves(*parameters, *numbers, *records, *given, *data, *uniforms,
    *fractions, *fit, *variates) -> (*parameters, *numbers, *records, path, outcome)``: all values
    after the moves, and the kernel's results. Matrices of the fit and of variates are flat. The
    path has the parameters, what an affine move moves, and the numbers, each in its coordinates; so
    has the log-density that the kernel returns.

    A number n of records moves as a continuous one: as log(n + u), with u uniform, its entry of the
    vector of fractions; n is the whole part. The scale is logarithmic because released sums tie n
    to the mean contribution by a product.
    """
    mode = with_parameter_checks(numba_mode(options.get("mode")), reading.model)

    fractions = pt.vector("fractions", shape=(len(reading.numbers),), dtype="float64")
    logs = [pt.log(n + fractions[k])[None] for k, n in enumerate(reading.numbers)]
    pairs = zip(reading.coordinates, reading.moving, strict=True)
    present = [coordinates.of(x.astype("float64"), pt) for coordinates, x in pairs]
    start = pt.concatenate([*present, *logs])
    theta = start.type("theta")
    proposed = (*reading.proposed, *reading.proposed_numbers)
    at_theta = dict(zip(proposed, _unravel(theta, reading), strict=True))
    [log_density] = rebuild([reading.log_density], at_theta)
    if reading.numbers:  # maps log(n + u) to n + u
        log_density = log_density + theta[-len(reading.numbers) :].sum()
    log_density = impossible_if_invalid(log_density) + reading.log_volume(theta, pt)
    context = frontier([theta], log_density)
    graph = rewritten([theta, *context], [log_density], mode)
    op = ParameterMoves(graph)
    fit = [pt.vector(name, dtype="float64") for name in Fit._fields]
    variates = [pt.vector(name, dtype="float64") for name in Variates._fields]
    movable = _come_back(reading)
    path, outcome = op(start, movable, *fit, *variates, *context)

    moved = _unravel(path[-1], reading)
    records = rebuild(reading.moved_records, dict(zip(proposed, moved, strict=True)))
    parameters, numbers = moved[: len(reading.parameters)], moved[len(reading.proposed) :]
    inputs = [*reading.parameters, *reading.numbers, *reading.records, *reading.given]
    inputs += [*reading.data.values(), *reading.uniforms]
    inputs += [fractions] if reading.numbers else []
    outputs = [*parameters, *numbers, *records, path, outcome]
    function = JitFunction([*inputs, *fit, *variates], outputs, reading.model, options)
    set_up = FunctionGraph(outputs=[movable, *reading.moved_records], clone=True)
    n_entries = sum(prod(x.type.shape) for x in reading.records)
    n_moving = len(reading.parameters) + len(reading.numbers)
    if joins_operations(mode):  # operations are counted as all modes have them
        graph = rewritten([theta, *context], [log_density], mode.excluding(*JOINING))
    # Other steps compute no quantiles.
    each = nanoseconds(graph, largest), nanoseconds(set_up, largest), nanoseconds(graph, None)
    costs = counted(*each, n_entries, n_moving)
    return function, costs


def _unravel(flat: TensorVariable, reading: NonCentredModel) -> list[TensorVariable]:
    """Split a flat vector of all moved values and the logarithms of numbers."""
    pieces = [
        coordinates.value(own, pt).reshape(x.type.shape).astype(x.dtype)
        for x, coordinates, own in reading.parts(flat)
    ]
    for k, n in enumerate(reading.numbers, sum(prod(x.type.shape) for x in reading.moving)):
        # A proposed number of records may be larger than any integer.
        whole = pt.minimum(pt.floor(pt.exp(flat[k])), LARGEST_NUMBER)
        pieces.append(whole.astype(n.dtype))
    return pieces


def _come_back(reading: NonCentredModel) -> TensorVariable:
    """Whether the records come back from their noise unchanged.

    In the far tails of a distribution, its cdf loses digits. Such records stay, and so do the
    parameters; no move leads to such a state, either.
    """
    same = dict(zip(reading.proposed, reading.moving, strict=True))
    returned = rebuild(reading.moved_records, same)
    conditions = [pt.invert(pt.isnan(noise).any()) for noise in reading.noise]
    for record, back in zip(reading.records, returned, strict=True):
        if record.dtype.startswith("float"):
            conditions.append(pt.allclose(record, back, rtol=ROUNDING, atol=ROUNDING))
        else:
            conditions.append(pt.eq(record, back).all())
    return reduce(pt.and_, conditions, pt.constant(True, dtype="bool"))


class CompiledMoves(NamedTuple):
    """Moves with something of the records held fixed: the noise, or standardised values."""

    reading: NonCentredModel
    move: JitFunction
    costs: Costs
    given: Given
    dim: int
    """Number of moved coordinates."""
    names: tuple[str, ...]
    """Names of all returned variables: parameters, numbers and records."""

    def call(
        self,
        point: PointType,
        uniforms: Sequence[np.ndarray],
        fit: Fit,
        n_moves: int,
        rng: np.random.Generator,
    ) -> tuple[Any, ...]:
        """Move parameters and records; return them, the path, and the kernel's outcome."""
        *vectors, factor = fit
        flat = [x.ravel() for x in (factor, *draw_variates(rng, n_moves, self.dim))]
        return self.move(*self.given(point), *uniforms, *vectors, *flat)

    @property
    def in_code(self) -> bool:
        """Whether its numbers can be drawn in compiled code, as :func:`draw_flat` does."""
        shapes = [x.type.shape for x in self.reading.uniforms]
        return not self.reading.numbers and len(shapes) <= 1 and all(len(x) == 1 for x in shapes)

    def transitions(self, n_moves: int, fit: Fit) -> list[Transition]:
        """Return the draws of numbers, and the moves."""
        if not self.in_code:
            return []
        of_records = [x.type.shape[0] for x in self.reading.uniforms]
        *vectors, factor = fit
        parts = ("uniforms", "normals", "angles", "path")
        drawn = tuple(f"{part} {id(self.move)}" for part in parts)
        numbers = (sum(of_records), n_moves * (2 * self.dim + NORMALS), n_moves * MAX_SHRINKS)
        takes = (*self.given.names, *self.given.data.values, *drawn[: len(of_records)], *vectors)
        takes = (*takes, factor.ravel(), *drawn[1:3])
        moved, reports = (*self.names, drawn[3]), (((1 + n_moves,), "float64"),)
        move = Transition(self.move, takes, moved, reports, draws=False, may_stay=True)
        return [Transition(drawing(), numbers, drawn[:3]), move]


@cache
def drawing() -> Drawing:
    """Draw a move's random numbers in compiled code, of all models alike."""
    return Drawing(draw_flat)


class ParameterMoves(KernelOp):
    """Moves of parameters against a log-density of them.

    Parameters
    ----------
    log_density : FrozenFunctionGraph
        The log-density: inputs are the parameters (a flat vector) and then the context, its other
        inputs; the output is a scalar. Already rewritten for the numba backend.
    """

    __props__ = ("log_density",)
    log_density: FrozenFunctionGraph

    def make_node(self, *inputs: Variable) -> Apply:
        """Apply the operation to start, movable, the fields of fit and variates, and the context.

        All fields are vectors: numba takes long to compile conversions to matrices. The outputs are
        the path of the parameters, a matrix, and the outcome, a vector.
        """
        [dim] = inputs[0].type.shape
        path = pt.matrix("path", shape=(None, dim), dtype="float64")
        return Apply(self, list(inputs), [path, pt.vector("outcome", dtype="float64")])


NUMBERS = types.float64[::1]
LOG_DENSITY = types.float64(NUMBERS)
"""Types of a log-density's arguments besides its context, and of its result."""


def moves_compiled_once(log_density: Callable) -> Callable:
    """Have the moves compiled for all models, and give them a log-density."""

    @numba_njit
    def moved(  # type: ignore[no-untyped-def]
        log_density, context, start, movable, location, scale, skewness, factor, normals, angles
    ):
        dim, n_moves = start.size, angles.size // MAX_SHRINKS
        fit = Fit(location, scale, skewness, factor.reshape((dim, dim)))
        variates = Variates(
            normals.reshape((n_moves, NORMALS + 2 * dim)), angles.reshape((n_moves, MAX_SHRINKS))
        )
        return move_parameters(log_density, context, start, movable, fit, variates)

    returned = types.Tuple((types.float64[:, ::1], NUMBERS))
    takes = NUMBERS, types.boolean, *(NUMBERS,) * 6
    return given_once(moved, log_density, LOG_DENSITY, returned(*takes))


@compiles(ParameterMoves)
def _parameter_moves(op: ParameterMoves) -> Callable:
    model_log_density = function_of(op.log_density, "noise_held_fixed")

    @numba_njit
    def log_density(context, theta):  # type: ignore[no-untyped-def]
        return model_log_density(theta, *context).item()

    moved = moves_compiled_once(log_density)

    @numba_njit
    def parameter_moves(  # type: ignore[no-untyped-def]
        start, movable, location, scale, skewness, factor, normals, angles, *context
    ):
        may_move = movable.item()
        return moved(context, start, may_move, location, scale, skewness, factor, normals, angles)

    return parameter_moves
