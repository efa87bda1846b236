"""Tables of a model's log-weights on a tree, and derivatives, as PyTensor operations.

The kernels and the model's terms are compiled together, as with the sweeps.
"""

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt

from pymc_dapper.backend.numba_ops import compiles, numba_njit
from pymc_dapper.counts.compiled.op import OfTerms
from pymc_dapper.counts.trees.tables import Derivatives, Terms, expect_derivatives, tabulate


class TabulateTree(OfTerms):
    """Tables, from the arguments of :func:`tabulate`, the context, and arrays of :class:`Terms`.

    The outputs are the fields of :class:`Tables`, the last two in one vector.
    """

    results = (*[pt.lvector] * 2, *[pt.dvector] * 3, *[pt.lvector] * 2)


class ExpectDerivatives(OfTerms):
    """Expectations: as it takes pmfs, the context, and the arrays of :class:`Derivatives`."""

    results = (pt.dvector, pt.dvector)


@compiles(TabulateTree)
def _tabulate(op: TabulateTree) -> Callable:
    log_weight = op.log_weight()

    @numba_njit
    def tabulated(near, drop, tilted, context, *arrays):  # type: ignore[no-untyped-def]
        terms = Terms(*arrays)
        tables = tabulate(log_weight, (context,), terms, near, drop.item(), tilted.item())
        return (*tables[:6], np.array([tables.fault, tables.at]))

    return tabulated


@compiles(ExpectDerivatives)
def _expect_derivatives(op: ExpectDerivatives) -> Callable:
    log_terms = op.log_terms()

    @numba_njit
    def derivative(context, derivatives, entry, count):  # type: ignore[no-untyped-def]
        return log_terms(context, derivatives, np.array([entry]), count)

    @numba_njit
    def expected(near, starts, widths, lowest, weights, context, *arrays):  # type: ignore[no-untyped-def]
        of_terms = Derivatives(*arrays)
        return expect_derivatives(
            derivative, (context,), of_terms, near, starts, widths, lowest, weights
        )

    return expected
