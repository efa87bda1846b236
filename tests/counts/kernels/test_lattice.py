"""Reduced bases: of the same lattice, and nearly orthogonal."""

import numpy as np
import pytest

from pymc_dapper.counts.kernels.lattice import reduce_basis


def defect(basis, metric):
    """Product of the vectors' lengths over the volume that they span: 1 if orthogonal."""
    products = basis @ metric @ basis.T
    return np.sqrt(np.prod(np.diag(products)) / np.linalg.det(products))


def windows(n, width, tight):
    """Cells that are hardly known, and their sums over windows, which are known well."""
    sums = np.array([np.arange(n) - k for k in range(n - width + 1)])
    sums = ((sums >= 0) & (sums < width)).astype(float)
    return np.eye(n) + tight * sums.T @ sums


@pytest.mark.parametrize("tight", [0.0, 1.0, 1e4, 1e8])
def test_the_lattice_stays_and_its_basis_becomes_nearly_orthogonal(tight):
    metric, given = windows(8, 3, tight), np.eye(8, dtype=np.int64)
    reduced = reduce_basis(given, metric)
    assert round(abs(np.linalg.det(reduced))) == 1
    assert defect(reduced, metric) < 3
    if tight > 1:
        assert defect(given, metric) > 10


def test_changes_that_keep_what_is_known_come_out_as_directions():
    metric = windows(8, 3, 1e6)
    reduced = reduce_basis(np.eye(8, dtype=np.int64), metric)
    keeping = [row for row in reduced if row @ metric @ row < 100]
    assert len(keeping) == 2  # 8 cells, 6 windows
    for row in keeping:
        np.testing.assert_array_equal(row[3:], row[:-3])  # with the period of a window
        assert row[:3].sum() == 0


def test_the_reduced_basis_meets_the_definition():
    rng = np.random.default_rng(2)
    factor = rng.normal(size=(6, 6))
    given = np.eye(6, dtype=np.int64) - np.eye(6, k=1, dtype=np.int64) * 7
    reduced = reduce_basis(given, factor @ factor.T)
    lower = np.linalg.cholesky(reduced @ factor @ factor.T @ reduced.T)
    shares = lower / np.diag(lower)
    assert np.all(np.abs(np.tril(shares, -1)) <= 0.5 + 1e-9)
    squares = np.diag(lower) ** 2
    assert np.all(squares[1:] >= (0.75 - np.diag(shares, -1) ** 2) * squares[:-1] - 1e-9)


def test_a_metric_that_is_nearly_flat_somewhere_does_no_harm():
    flat = np.ones((5, 5)) + 1e-12 * np.eye(5)
    reduced = reduce_basis(np.eye(5, dtype=np.int64), flat)
    assert round(abs(np.linalg.det(reduced))) == 1
