"""Tables of weights, and sums over counts, as PyTensor operations.

Kernels are compiled once, and given the model's noise, as with the sweeps.
"""

from collections.abc import Callable, Sequence

import pytensor.tensor as pt
from numba import types
from pytensor.gradient import DisconnectedType
from pytensor.graph import Apply, Variable

from pymc_dapper.backend.numba_ops import compiles, numba_njit
from pymc_dapper.counts.compiled.op import INTEGERS, NUMBERS, OfTerms
from pymc_dapper.marginalised.kernels.count_tables import sum_counts, tabulate


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


@compiles(Tabulate)
def _tabulate(op: Tabulate) -> Callable:
    returned = types.Tuple((*TABLES, INTEGERS))
    tabulate_all = op.given_to(tabulate, returned, INTEGERS, NUMBERS, types.int64)

    @numba_njit
    def tabulated(counts, largest, most, *context):  # type: ignore[no-untyped-def]
        return tabulate_all(context, counts, largest, most.item())

    return tabulated


@compiles(SumCounts)
def _sum_counts(op: SumCounts) -> Callable:
    returned = types.Tuple((NUMBERS, NUMBERS, INTEGERS, NUMBERS))
    sum_all = op.given_to(sum_counts, returned, NUMBERS, NUMBERS, TABLES, NUMBERS)

    @numba_njit
    def summed(naturals, uniforms, *others):  # type: ignore[no-untyped-def]
        return sum_all(others[8:], naturals, uniforms, others[:7], others[7])

    return summed
