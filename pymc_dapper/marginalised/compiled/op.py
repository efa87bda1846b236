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
from pymc_dapper.marginalised.kernels.count_tables import tabulate_or_sum


class SumCounts(OfTerms):
    """Sums over counts, or the tables for them if there are possible counts to begin with.

    Takes natural parameters, uniform numbers, possible counts, tables, and the counts' largest
    values. Then come the context of the noise's terms, and the arrays of `Places`. The outputs are
    those of :func:`tabulate` and of :func:`sum_counts`. The log-sums have a gradient.
    """

    tables = pt.lmatrix, pt.dvector, pt.dvector
    results = (*tables, pt.dvector, pt.dvector, pt.lvector, pt.dvector)

    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        """Write derivatives: those of log-sums are mean counts."""
        return [cotangents[3] * outputs[4], *(DisconnectedType()() for _ in inputs[1:])]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Only log-sums have a gradient, and only in natural parameters."""
        n_outputs = len(self.results)
        return [[k == 0 and j == 3 for j in range(n_outputs)] for k in range(len(node.inputs))]


TABLES = types.int64[:, ::1], NUMBERS, NUMBERS
TAKEN = NUMBERS, NUMBERS, INTEGERS, types.Tuple(TABLES), NUMBERS
RETURNED = types.Tuple((*TABLES, NUMBERS, NUMBERS, INTEGERS, NUMBERS))


@compiles(SumCounts)
def _sum_counts(op: SumCounts) -> Callable:
    kernel = op.given_to(tabulate_or_sum, RETURNED, *TAKEN)

    @numba_njit
    def summed(naturals, uniforms, counts, runs, logs, ratios, largest, *context):  # type: ignore[no-untyped-def]
        return kernel(context, naturals, uniforms, counts, (runs, logs, ratios), largest)

    return summed
