"""Tables of a model's log-weights on a tree, as a PyTensor operation.

The kernel and the model's terms are compiled together, as with the sweeps.
"""

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt

from pymc_dapper.backend.numba_ops import compiles, numba_njit
from pymc_dapper.counts.compiled.op import OfTerms
from pymc_dapper.counts.trees.tables import Terms, tabulate


class TabulateTree(OfTerms):
    """Tables, from the arguments of :func:`tabulate`, the context, and arrays of :class:`Terms`.

    The outputs are the fields of :class:`Tables`, the last two in one vector.
    """

    results = (*[pt.lvector] * 2, *[pt.dvector] * 3, *[pt.lvector] * 2)


@compiles(TabulateTree)
def _tabulate(op: TabulateTree) -> Callable:
    log_weight = op.log_weight()

    @numba_njit
    def tabulated(near, drop, tilted, context, *arrays):  # type: ignore[no-untyped-def]
        terms = Terms(*arrays)
        tables = tabulate(log_weight, (context,), terms, near, drop.item(), tilted.item())
        return (*tables[:6], np.array([tables.fault, tables.at]))

    return tabulated
