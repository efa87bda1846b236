"""Categories drawn by rows of tables, and by products of them, in compiled code."""

from collections.abc import Callable

from pymc_dapper.backend.numba_ops import compiles, numba_njit
from pymc_dapper.graphs.products import ChosenByProducts, ChosenByRows
from pymc_dapper.kernels.products import choose_by_products, choose_by_rows


@compiles(ChosenByProducts)
def _chosen(op: ChosenByProducts) -> Callable:
    size = op.size

    @numba_njit
    def chosen(u, weights, indices, lengths, axes):  # type: ignore[no-untyped-def]
        return choose_by_products(size, u, weights, indices, lengths, axes)

    return chosen


@compiles(ChosenByRows)
def _by_rows(op: ChosenByRows) -> Callable:
    return choose_by_rows
