"""Tables of a model's log-weights on a tree, and derivatives, as PyTensor operations.

The kernels and the model's terms are compiled together, as with the sweeps.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable

from pymc_dapper.backend.in_python import KernelOp
from pymc_dapper.backend.numba_ops import compiles, numba_njit
from pymc_dapper.counts.compiled.op import CountSweep, TermFunction, compile_log_density
from pymc_dapper.counts.trees.tables import Derivatives, Terms, expect_derivatives, tabulate


class OfTerms(KernelOp):
    """An operation that evaluates terms of a log-density.

    Parameters
    ----------
    functions : tuple of TermFunction
        Their functions, each of one sum of cells.
    """

    __props__: ClassVar[Sequence[str]] = ("functions",)

    def __init__(self, functions: tuple[TermFunction, ...]):
        self.functions = functions


class TabulateTree(OfTerms):
    """Tables, from the arguments of :func:`tabulate`, the context, and arrays of :class:`Terms`.

    The outputs are the fields of :class:`Tables`, the last two in one vector.
    """

    def make_node(self, *inputs: Variable) -> Apply:
        """Apply the operation to the arguments of :func:`tabulate`."""
        integers, numbers = pt.lvector, pt.dvector
        kinds = (integers, integers, numbers, numbers, numbers, integers, integers)
        return Apply(self, list(inputs), [kind() for kind in kinds])


class ExpectDerivatives(OfTerms):
    """Expectations: as it takes pmfs, the context, and the arrays of :class:`Derivatives`."""

    def make_node(self, *inputs: Variable) -> Apply:
        """Apply the operation to the arguments of :func:`expect_derivatives`."""
        return Apply(self, list(inputs), [pt.dvector(), pt.dvector()])


@compiles(TabulateTree)
def _tabulate(op: TabulateTree) -> Callable:
    log_density = compile_log_density(CountSweep(op.functions, None, 0))

    # It isn't inlined, as the model's terms are elsewhere: it is called from many places.
    @numba_njit
    def log_weight(context, terms, i, count):  # type: ignore[no-untyped-def]
        seen = terms.terms[terms.starts[i] : terms.starts[i + 1]]
        of_terms = (terms.kinds, terms.first, terms.contexts), (context,)
        return log_density(of_terms, terms.zeros, terms.slopes, seen, seen.size, False, count)

    @numba_njit
    def tabulated(near, drop, tilted, context, *arrays):  # type: ignore[no-untyped-def]
        terms = Terms(*arrays)
        tables = tabulate(log_weight, context, terms, near, drop.item(), tilted.item())
        return (*tables[:6], np.array([tables.fault, tables.at]))

    return tabulated


@compiles(ExpectDerivatives)
def _expect_derivatives(op: ExpectDerivatives) -> Callable:
    log_density = compile_log_density(CountSweep(op.functions, None, 0))

    @numba_njit
    def derivative(context, derivatives, entry, count):  # type: ignore[no-untyped-def]
        of_terms = (derivatives.kinds, derivatives.first, derivatives.contexts), (context,)
        seen, slopes = np.array([entry]), derivatives.slopes
        return log_density(of_terms, derivatives.zeros, slopes, seen, 1, False, count)

    @numba_njit
    def expected(near, starts, widths, lowest, weights, context, *arrays):  # type: ignore[no-untyped-def]
        of_terms = Derivatives(*arrays)
        return expect_derivatives(
            derivative, context, of_terms, near, starts, widths, lowest, weights
        )

    return expected
