"""The moves of parameters as a PyTensor operation; why it is one, `records.compiled.op` says."""

from collections.abc import Callable

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable

from pymc_dapper.backend.in_python import KernelOp
from pymc_dapper.backend.internals import FrozenFunctionGraph
from pymc_dapper.backend.numba_ops import compiles, function_of, numba_njit
from pymc_dapper.interweaving.kernels.moves import Fit, Variates, move_parameters


class ParameterMoves(KernelOp):
    """Moves of parameters against a log-density of them.

    Parameters
    ----------
    log_density : FrozenFunctionGraph
        The log-density: inputs are the parameters (a flat vector) and then the context, what else
        it depends on; its output is a scalar. Rewritten already for the numba backend.
    """

    __props__ = ("log_density",)

    def __init__(self, log_density: FrozenFunctionGraph):
        self.log_density = log_density

    def make_node(self, *inputs: Variable) -> Apply:
        """Apply to start, movable, the fields of fit and of variates (see the kernel), context.

        The outputs are the path of the parameters, a matrix, and the outcome, a vector.
        """
        [dim] = inputs[0].type.shape
        outputs = [
            pt.matrix("path", shape=(None, dim), dtype="float64"),
            pt.vector("outcome", dtype="float64"),
        ]
        return Apply(self, list(inputs), outputs)


@compiles(ParameterMoves)
def _parameter_moves(op: ParameterMoves) -> Callable:
    model_log_density = function_of(op.log_density, "noise_held_fixed")

    @numba_njit
    def log_density(theta, context):  # type: ignore[no-untyped-def]
        return model_log_density(theta, *context).item()

    @numba_njit
    def parameter_moves(  # type: ignore[no-untyped-def]
        start, movable, location, scale, skewness, factor, normals, angles, *context
    ):
        fit = Fit(location, scale, skewness, factor)
        variates = Variates(normals, angles)
        return move_parameters(log_density, context, start, movable.item(), fit, variates)

    return parameter_moves
