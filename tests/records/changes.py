"""Changes for kernels that are called by themselves."""

import numpy as np
from numba import njit

from pymc_dapper.records.kernels.rows import Changes


@njit(inline="always")
def row_by_row(removed, added):
    """What matrices with a row per record propose to change."""
    rows = np.arange(len(removed), dtype=np.uint32)
    n_columns = removed.shape[1]
    all_columns = np.empty((1, n_columns + 1), dtype=np.uint32)
    all_columns[0, 0] = n_columns
    all_columns[0, 1:] = np.arange(n_columns)
    return Changes(removed, added, rows, rows, all_columns)
