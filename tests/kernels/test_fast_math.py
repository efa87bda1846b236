"""Numbers are told from what is none, also under arithmetic that takes them for granted."""

import numpy as np
import pytest
from pytensor.link.numba.dispatch.basic import numba_njit

from pymc_dapper.kernels.fast_math import is_finite


@numba_njit(final_function=True)
def fast(x):
    return is_finite(x)


@pytest.mark.parametrize("x", [0.0, -0.0, 1e308, -1e308, 5e-324, np.inf, -np.inf, np.nan])
def test_finite_numbers_are_told_from_others(x):
    assert is_finite(x) == fast(x) == np.isfinite(x)
