"""The moves of parameters as a PyTensor operation; for the reason see `records.compiled.op`.

The moves are compiled once, and given the model's log-density by its address.
"""

from collections.abc import Callable

import pytensor.tensor as pt
from numba import types
from pytensor.graph import Apply, Variable

from pymc_dapper.backend.in_python import KernelOp
from pymc_dapper.backend.internals import FrozenFunctionGraph
from pymc_dapper.backend.numba_ops import compiles, function_of, given_once, numba_njit
from pymc_dapper.interweaving.kernels.moves import (
    MAX_SHRINKS,
    NORMALS,
    Fit,
    Variates,
    move_parameters,
)


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
        outputs = [
            pt.matrix("path", shape=(None, dim), dtype="float64"),
            pt.vector("outcome", dtype="float64"),
        ]
        return Apply(self, list(inputs), outputs)


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
