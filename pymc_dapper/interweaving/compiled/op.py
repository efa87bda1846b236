"""The moves of parameters as a PyTensor operation; why it is one, `sweep_op` says."""

import inspect
import sys
from collections.abc import Callable
from hashlib import sha256
from typing import Any, ClassVar

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FrozenFunctionGraph
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import (
    numba_funcify_and_cache_key,
    numba_njit,
    register_funcify_and_cache_key,
)

from pymc_dapper.interweaving.kernels.moves import Fit, Variates, move_parameters
from pymc_dapper.kernels.fast_math import is_finite


class ParameterMoves(Op):
    """Moves of parameters against a log-density of them.

    Parameters
    ----------
    log_density : FrozenFunctionGraph
        The log-density: inputs are the parameters (a flat vector) and then the context, what else
        it depends on; its output is a scalar. Rewritten already for the numba backend.
    """

    __props__ = ("log_density",)
    kernel: ClassVar[Any] = staticmethod(move_parameters)

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

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Not available: the moves exist as a numba kernel only."""
        raise NotImplementedError("the moves run in PyTensor's numba mode only")


@register_funcify_and_cache_key(ParameterMoves)
def _funcify(op: ParameterMoves, node: Apply, **kwargs: Any) -> tuple[Callable, str | None]:
    model_log_density, model_key = numba_funcify_and_cache_key(
        op.log_density, squeeze_output=True, fgraph_name="noise_held_fixed"
    )
    kernel = op.kernel

    @numba_njit
    def log_density(theta, context):  # type: ignore[no-untyped-def]
        return model_log_density(theta, *context).item()

    @numba_njit
    def parameter_moves(  # type: ignore[no-untyped-def]
        start, movable, mean, factor, normals, angles, *context
    ):
        fit, variates = Fit(mean, factor), Variates(normals, angles)
        return kernel(log_density, context, start, movable.item(), fit, variates)

    if model_key is None:
        return parameter_moves, None
    modules = (__name__, kernel.__module__, is_finite.__module__)
    sources = [inspect.getsource(sys.modules[name]) for name in modules]
    key = (type(op).__module__, type(op).__qualname__, *sources, model_key)
    return parameter_moves, sha256(repr(key).encode()).hexdigest()
