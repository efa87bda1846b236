"""Tables of weights, and sums over counts, as PyTensor operations.

Kernels are compiled once, and given the model's noise, as with the sweeps.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pytensor.tensor as pt
from numba import types
from pytensor.gradient import DisconnectedType
from pytensor.graph import Apply, Variable

from pymc_dapper.backend.numba_ops import compiles, numba_njit
from pymc_dapper.counts.compiled.op import INTEGERS, NUMBERS, OfTerms
from pymc_dapper.marginalised.kernels.count_tables import tabulate_or_sum


class Tabulate(OfTerms):
    """Log-weights of counts: takes possible counts, their largest values and ``most``.

    Then come the context of the noise's terms, and the arrays of `Places`. The outputs are
    those of :func:`tabulate`.
    """

    results = (*[pt.lvector] * 5, *[pt.dvector] * 2, pt.lvector)


class SumCounts(OfTerms):
    """Sums over counts: takes natural parameters, uniform numbers and tables.

    Then come the context of the noise's terms, and the arrays of `Places`. The outputs are
    those of :func:`sum_counts`. The log-sums have a gradient.
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


TABLES = types.Tuple((*[INTEGERS] * 5, *[NUMBERS] * 2))
TAKEN = INTEGERS, types.int64, NUMBERS, NUMBERS, TABLES, NUMBERS
RETURNED = types.Tuple((*TABLES, INTEGERS, NUMBERS, NUMBERS, INTEGERS, NUMBERS))


@compiles(Tabulate)
def _tabulate(op: Tabulate) -> Callable:
    kernel = op.given_to(tabulate_or_sum, RETURNED, *TAKEN)

    @numba_njit
    def tabulated(counts, largest, most, *context):  # type: ignore[no-untyped-def]
        none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
        tables = (none, none, none, none, none, nothing, nothing)
        # The slice has the same type as in sums. So numba compiles the kernel's caller once.
        return kernel(context[:], counts, most.item(), nothing, nothing, tables, largest)[:8]

    return tabulated


@compiles(SumCounts)
def _sum_counts(op: SumCounts) -> Callable:
    kernel = op.given_to(tabulate_or_sum, RETURNED, *TAKEN)

    @numba_njit
    def summed(naturals, uniforms, *others):  # type: ignore[no-untyped-def]
        tables, largest, none = others[:7], others[7], np.empty(0, dtype=np.int64)
        return kernel(others[8:], none, none.size, naturals, uniforms, tables, largest)[8:]

    return summed
