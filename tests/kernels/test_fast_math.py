"""nan and infinity are recognised, also under fast arithmetic, which assumes there are none."""

from itertools import product

import numpy as np
import pytest
from numba import njit
from pytensor.link.numba.dispatch.basic import numba_njit

from pymc_dapper.backend.accelerate.deferred_libraries import outermost
from pymc_dapper.kernels.fast_math import is_finite
from pymc_dapper.records.kernels.sums_sweep import log_gain


@numba_njit(final_function=True)
def fast(x):
    return is_finite(x)


@pytest.mark.parametrize("x", [0.0, -0.0, 1e308, -1e308, 5e-324, np.inf, -np.inf, np.nan])
def test_finite_numbers_are_told_from_others(x):
    assert is_finite(x) == fast(x) == np.isfinite(x)


@numba_njit
def log_density(x):
    return x[0] - x[1] + x[2]


@njit(inline="always")
def asks_numpy(present, proposed):
    """A broken twin of `log_gain`."""
    if not np.isfinite(present):
        return 0.0
    return proposed - present if np.isfinite(proposed) else -np.inf


def gains(rule):
    @numba_njit(final_function=True)
    def by_pairs(present, proposed):
        found = np.empty((len(present), len(proposed)))
        for i in range(len(present)):
            for j in range(len(proposed)):
                found[i, j] = rule(log_density(present[i]), log_density(proposed[j]))
        return found

    return outermost(by_pairs)


@pytest.mark.parametrize(("rule", "is_right"), [(log_gain, True), (asks_numpy, False)])
def test_impossible_log_densities_are_told_where_they_are_compiled_in(rule, is_right):
    """As in Python, though all is optimised as one function: -inf, nan from inf - inf, and inf."""
    terms = np.array([*product([-np.inf, -1.0, 2.0, np.inf, np.nan], repeat=3)])
    with np.errstate(invalid="ignore"):
        sums = terms[:, 0] - terms[:, 1] + terms[:, 2]
    expected = [[log_gain.py_func(x, y) for y in sums] for x in sums]
    assert np.array_equal(gains(rule)(terms, terms), expected) == is_right
