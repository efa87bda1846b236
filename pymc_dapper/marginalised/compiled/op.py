"""Tables of weights, and sums over counts, as PyTensor operations.

The kernel and the model's noise are compiled together, as with the sweeps.
"""

from collections.abc import Callable, Sequence

import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply, Variable

from pymc_dapper.backend.numba_ops import compiles, numba_njit
from pymc_dapper.counts.compiled.op import OfTerms
from pymc_dapper.marginalised.kernels.sums import Noise, Weights, sum_counts, tabulate


class Tabulate(OfTerms):
    """Log-weights of counts: takes possible counts, their largest values and ``most``.

    Then come the context of the noise's terms, and the arrays of :class:`Noise`. The outputs are
    the arrays of :class:`Weights`, but the largest values, and faults.
    """

    results = (*[pt.lvector] * 5, *[pt.dvector] * 2, pt.lvector)


class SumCounts(OfTerms):
    """Sums over counts: takes natural parameters, uniform numbers and the context of the terms.

    Then come the arrays of :class:`Weights` and of :class:`Noise`. The outputs are those of
    :func:`sum_counts`. The log-sums have a gradient.
    """

    results = (pt.dvector, pt.dvector, pt.lvector, pt.dvector)

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        """Write derivatives: those of log-sums are mean counts."""
        return [cotangents[0] * outputs[1], *(DisconnectedType()() for _ in inputs[1:])]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Only log-sums have a gradient, and only in natural parameters."""
        return [[k == 0, False, False, False] for k in range(len(node.inputs))]


@compiles(Tabulate)
def _tabulate(op: Tabulate) -> Callable:
    log_noise = op.log_weight()

    @numba_njit
    def tabulated(counts, largest, most, context, *arrays):  # type: ignore[no-untyped-def]
        noise = Noise(*arrays)
        weights, faults = tabulate(log_noise, (context,), noise, counts, largest, most.item())
        return (*weights[:-1], faults)

    return tabulated


@compiles(SumCounts)
def _sum_counts(op: SumCounts) -> Callable:
    log_noise = op.log_weight()

    @numba_njit
    def summed(naturals, uniforms, context, *arrays):  # type: ignore[no-untyped-def]
        weights, noise = Weights(*arrays[:8]), Noise(*arrays[8:])
        return sum_counts(log_noise, (context,), noise, weights, naturals, uniforms)

    return summed
