"""Truncated counts drawn from uniform noise: Poisson, binomial and negative binomial."""

from collections.abc import Callable

import pytensor.tensor as pt
from pytensor.graph import Op
from pytensor.scalar.basic import ScalarOp, upgrade_to_float64
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import BinomialRV, NegBinomialRV, PoissonRV
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.numba_ops import compiles
from pymc_dapper.graphs.noise import truncated_draw
from pymc_dapper.kernels import truncated_counts as kernels


class TruncatedCount(ScalarOp):
    """See :func:`pymc_dapper.kernels.truncated_counts.truncated_count`."""

    nin = 5
    output_types_preference = staticmethod(upgrade_to_float64)

    def impl(self, *inputs: float) -> float:
        """Evaluate in Python."""
        return kernels.truncated_count(*map(float, inputs))


@compiles(TruncatedCount)
def _kernel(op: TruncatedCount) -> Callable:
    return kernels.truncated_count


_truncated_count = Elemwise(TruncatedCount())


@truncated_draw.register(PoissonRV)
@truncated_draw.register(BinomialRV)
@truncated_draw.register(NegBinomialRV)
def _draw(
    op: Op, u: TensorVariable, lower: TensorVariable, upper: TensorVariable, *of: TensorVariable
) -> TensorVariable:
    if isinstance(op, PoissonRV):
        return _truncated_count(u, lower, upper, 0.0, *of)
    n, p = of
    if isinstance(op, NegBinomialRV):
        return _truncated_count(u, lower, upper, 1 - p, (n - 1) * (1 - p))
    # A probability of 1 becomes the nearest one with the same draws.
    odds = p / pt.maximum(1 - p, 1e-300)
    return _truncated_count(u, lower, pt.minimum(upper, n), -odds, (n + 1) * odds)
