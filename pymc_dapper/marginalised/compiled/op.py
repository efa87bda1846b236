"""Tables of weights, and sums over counts, as PyTensor operations.

The kernel and the model's noise are compiled together, as with the sweeps.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply, Variable

from pymc_dapper.backend.numba_ops import compiles, numba_njit
from pymc_dapper.counts.compiled.op import OfTerms
from pymc_dapper.marginalised.kernels.sums import Noise, pack, sum_counts, tabulate, unpack


class Tabulate(OfTerms):
    """Log-weights of counts: takes possible counts, their largest values and ``most``.

    Then come the arrays of :class:`Noise`, and the context of its terms. The outputs are the
    tables, in the form of :func:`pack`, and faults.
    """

    results = (pt.lvector, pt.dvector, pt.lvector)


class SumCounts(OfTerms):
    """Sums over counts: takes natural parameters, packed tables, and uniform numbers.

    Then come the arrays of :class:`Noise`, and the context of its terms. The outputs are those of
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
    def tabulated(counts, largest, most, starts, terms, kinds, first, contexts, slopes, *context):  # type: ignore[no-untyped-def]
        noise = Noise(starts, terms, kinds, first, contexts, slopes, np.zeros(slopes.size))
        weights, faults = tabulate(log_noise, context, noise, counts, largest, most.item())
        integers, numbers = pack(weights)
        return integers, numbers, faults

    return tabulated


@compiles(SumCounts)
def _sum_counts(op: SumCounts) -> Callable:
    log_noise = op.log_weight()

    @numba_njit
    def summed(  # type: ignore[no-untyped-def]
        naturals,
        integers,
        numbers,
        uniforms,
        starts,
        terms,
        kinds,
        first,
        contexts,
        slopes,
        *context,
    ):
        noise = Noise(starts, terms, kinds, first, contexts, slopes, np.zeros(slopes.size))
        weights = unpack(integers, numbers)
        return sum_counts(log_noise, context, noise, weights, naturals, uniforms)

    return summed
