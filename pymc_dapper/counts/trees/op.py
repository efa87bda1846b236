"""Tables of a model's log-weights on a tree, as a PyTensor operation.

The kernel is compiled once, and given the model's terms, as with the sweeps.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numba import njit, types

from pymc_dapper.backend.numba_ops import compiles, numba_njit
from pymc_dapper.counts.compiled.op import INTEGERS, NUMBERS, OfTerms
from pymc_dapper.counts.trees.tables import Terms, tabulate


class TabulateTree(OfTerms):
    """Tables, from the last arguments of :func:`tabulate` and the arrays of :class:`Terms`.

    Then come the context of the terms, and the arrays of `Places`. The outputs are the fields of
    :class:`Tables`, the last two in one vector.
    """

    results = (*[pt.lvector] * 2, *[pt.dvector] * 3, *[pt.lvector] * 2)


RETURNED = types.Tuple((*[INTEGERS] * 2, *[NUMBERS] * 3, *[INTEGERS] * 2))


@njit
def tabulate_tree(
    log_weight: Callable[..., float], context: tuple[Any, ...], near: np.ndarray, drop: float,
    tilted: bool, left: np.ndarray, right: np.ndarray, exact: np.ndarray, starts: np.ndarray,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """Tabulate, from arrays to arrays."""
    terms = Terms(left, right, exact, starts)
    tables = tabulate(log_weight, context, terms, near, drop, tilted)
    return (*tables[:6], np.array([tables.fault, tables.at]))


@compiles(TabulateTree)
def _tabulate(op: TabulateTree) -> Callable:
    takes = INTEGERS, types.float64, types.boolean, *[INTEGERS] * 4
    tabulate_all = op.given_to(tabulate_tree, RETURNED, *takes)

    @numba_njit
    def tabulated(near, drop, tilted, left, right, exact, starts, *context):  # type: ignore[no-untyped-def]
        return tabulate_all(context, near, drop.item(), tilted.item(), left, right, exact, starts)

    return tabulated
