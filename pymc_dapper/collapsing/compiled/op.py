"""Tables of weights, and sums over counts, as PyTensor operations.

The kernel and the model's noise are compiled together, as with the sweeps.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply, Variable

from pymc_dapper.backend.in_python import KernelOp
from pymc_dapper.backend.numba_ops import compiles, numba_njit
from pymc_dapper.collapsing.kernels.sums import Noise, pack, sum_counts, tabulate, unpack
from pymc_dapper.counts.compiled.op import CountSweep, TermFunction, compile_log_density


class OfNoise(KernelOp):
    """An operation that evaluates the noise of single counts.

    Parameters
    ----------
    functions : tuple of TermFunction
        Functions of the terms of the noise's log-density. The inputs end with the arrays of
        :class:`Noise`, and the terms' context.
    """

    __props__: ClassVar[Sequence[str]] = ("functions",)

    def __init__(self, functions: tuple[TermFunction, ...]):
        self.functions = functions


class Tabulate(OfNoise):
    """Log-weights of counts: takes possible counts, their largest values and ``most``.

    The outputs are the tables, in the form of :func:`pack`, and faults.
    """

    def make_node(self, *inputs: Variable) -> Apply:
        """Apply the operation to the arguments of :func:`tabulate`."""
        return Apply(self, list(inputs), [pt.lvector(), pt.dvector(), pt.lvector()])


class SumCounts(OfNoise):
    """Sums over counts: takes natural parameters, packed tables, and uniform numbers.

    The outputs are those of :func:`sum_counts`. The log-sums have a gradient.
    """

    def make_node(self, *inputs: Variable) -> Apply:
        """Apply the operation to the arguments of :func:`sum_counts`."""
        outputs = [pt.dvector(), pt.dvector(), pt.lvector(), pt.dvector()]
        return Apply(self, list(inputs), outputs)

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


def _log_noise(op: OfNoise) -> Callable:
    """Make the function that the kernel asks for noise.

    It isn't inlined, as the terms are elsewhere: it is called at few counts, from many places.
    """
    log_density = compile_log_density(CountSweep(op.functions, None, 0))

    @numba_njit
    def log_noise(context, noise, cell, k):  # type: ignore[no-untyped-def]
        terms = noise.terms[noise.starts[cell] : noise.starts[cell + 1]]
        of_terms = (noise.kinds, noise.first, noise.contexts), context
        return log_density(of_terms, noise.zeros, noise.slopes, terms, terms.size, False, k)

    return log_noise


@compiles(Tabulate)
def _tabulate(op: Tabulate) -> Callable:
    log_noise = _log_noise(op)

    @numba_njit
    def tabulated(counts, largest, most, starts, terms, kinds, first, contexts, slopes, *context):  # type: ignore[no-untyped-def]
        noise = Noise(starts, terms, kinds, first, contexts, slopes, np.zeros(slopes.size))
        weights, faults = tabulate(log_noise, context, noise, counts, largest, most.item())
        integers, numbers = pack(weights)
        return integers, numbers, faults

    return tabulated


@compiles(SumCounts)
def _sum_counts(op: SumCounts) -> Callable:
    log_noise = _log_noise(op)

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
