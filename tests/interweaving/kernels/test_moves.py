"""The moves, on targets that the t distribution fits badly."""

import numpy as np
import pytest
from numba import njit
from scipy import stats

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.interweaving.kernels.moves import (
    Fit,
    draw_variates,
    log_slope,
    log_t,
    move_parameters,
    skewed,
)


@njit
def truncated_ridge(context, theta):
    """A correlated normal, cut by a discontinuity: rotated independent normals, one positive."""
    a, b = theta[0] + theta[1], theta[0] - theta[1]
    return -0.5 * (a * a + 4 * b * b) if a > 0 else -np.inf


@njit
def moved(start, fit, variates):
    return move_parameters(truncated_ridge, (), start, True, fit, variates)


@njit(inline="always")
def nothing(first, second):
    return 0.0


def broken_kernel(forgotten):
    """The moves without a part of the quotient."""
    source = move_parameters.py_func
    faulty = type(source)(source.__code__, {**source.__globals__, forgotten: nothing})
    kernel = njit(inline="always")(faulty)

    @njit
    def moved_wrongly(start, fit, variates):
        return kernel(truncated_ridge, (), start, True, fit, variates)

    return moved_wrongly


def after_one_move(move, n):
    """Exact draws of the ridge, moved once: mean of a, a^2, b, b^2 and their standard errors."""
    rng = np.random.default_rng(2)
    a, b = np.abs(rng.standard_normal(n)), 0.5 * rng.standard_normal(n)
    factor = np.array([[0.7, 0.0], [0.5, 0.6]])
    fit = Fit(np.array([0.6, -0.4]), np.array([1.2, 0.8]), np.array([0.8, -0.4]), factor)
    result = np.empty((n, 2))
    changed = 0
    for i, start in enumerate(np.column_stack([(a + b) / 2, (a - b) / 2])):
        path, _outcome = move(start, fit, draw_variates(rng, 1, 2))
        changed += not np.array_equal(path[-1], start)
        result[i] = path[-1]
    a, b = result.sum(axis=1), result[:, 0] - result[:, 1]
    assert changed > 0.9 * n
    exact = [np.sqrt(2 / np.pi), 1.0, 0.0, 0.25]
    found = [a, a**2, b, b**2]
    return max(
        abs(x.mean() - e) / (x.std() / np.sqrt(n)) for x, e in zip(found, exact, strict=True)
    )


FEW = 5_000
"""In Python they take a fifth of the time that compiling takes."""


@pytest.mark.parametrize("n", [FEW, pytest.param(20_000, marks=pytest.mark.long)])
def test_moves_leave_exact_draws_exact(n):
    assert after_one_move(in_python(moved), n) < 4


@pytest.mark.parametrize(
    ("forgotten", "n"), [("log_t", FEW), pytest.param("log_slope", 20_000, marks=pytest.mark.long)]
)
def test_moves_that_forget_the_fitted_density_are_told_apart(forgotten, n):
    assert after_one_move(in_python(broken_kernel(forgotten)), n) > 4


def test_skewing_has_an_inverse_and_its_slope():
    y = np.array([-30.0, -1.0, 0.0, 0.2, 8.0])
    for skewness in (-1.0, 0.4):
        x = skewed.py_func(y, skewness)
        np.testing.assert_allclose(x, np.sinh(np.arcsinh(y) + skewness))
        np.testing.assert_allclose(skewed.py_func(x, -skewness), y, atol=1e-9)
        change = skewed.py_func(y + 1e-6, skewness) - skewed.py_func(y - 1e-6, skewness)
        np.testing.assert_allclose(log_slope.py_func(y, skewness), np.log(change / 2e-6), atol=1e-6)


def test_the_t_density_is_that_of_scipy():
    for dim in (1, 3):
        law = stats.multivariate_t(np.zeros(dim), np.eye(dim), df=4)
        for x in (0.3, 2.0):
            at = np.full(dim, x)
            expected = law.logpdf(at) - law.logpdf(np.zeros(dim))
            assert log_t.py_func(dim * x**2, dim) == pytest.approx(expected)
