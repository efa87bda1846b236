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
    """Tables: takes what :func:`tabulate` does, the arrays of :class:`Terms`, and the context.

    The outputs are integers and numbers: what :func:`tabulate` returns, one behind the other.
    """

    def make_node(self, *inputs: Variable) -> Apply:
        """Apply to what :func:`tabulate` takes."""
        return Apply(self, list(inputs), [pt.lvector(), pt.dvector()])


class ExpectDerivatives(OfTerms):
    """Expectations: takes what :func:`expect_derivatives` does, and then the context."""

    def make_node(self, *inputs: Variable) -> Apply:
        """Apply to what :func:`expect_derivatives` takes."""
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
    def tabulated(  # type: ignore[no-untyped-def]
        near,
        drop,
        tilted,
        left,
        right,
        exact,
        starts,
        listed,
        slopes,
        kinds,
        first,
        contexts,
        context,
    ):
        zeros = np.zeros(slopes.size)
        terms = Terms(left, right, exact, starts, listed, slopes, zeros, kinds, first, contexts)
        tables = tabulate(log_weight, context, terms, near, drop.item(), tilted.item())
        last = np.array([tables.fault, tables.at])
        integers = np.concatenate((tables.starts, tables.lowest, tables.highest, last))
        return integers, np.concatenate((tables.tops, tables.beyond, tables.values))

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
    def expected(  # type: ignore[no-untyped-def]
        near,
        starts,
        widths,
        lowest,
        weights,
        nodes,
        slopes,
        kinds,
        first,
        contexts,
        at,
        context,
    ):
        zeros = np.zeros(slopes.size)
        derivatives = Derivatives(nodes, slopes, zeros, kinds, first, contexts, at)
        return expect_derivatives(
            derivative, context, derivatives, near, starts, widths, lowest, weights
        )

    return expected
