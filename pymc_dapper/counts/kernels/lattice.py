"""Reduce the basis of a lattice: integer directions that are short and nearly orthogonal."""

import numpy as np
from numba import njit

from pymc_dapper.kernels.arrays import int64

LOVASZ = 0.75
"""How much shorter a vector must be to be swapped forward; the usual choice."""
MAX_VISITS = 1_000
"""Most visits per vector. Otherwise rounding could make two vectors swap forever."""
SMALLEST = 1e-13
"""Relative squared length below which an orthogonal part counts as rounding error."""


@njit(cache=True)
def _orthogonalise(
    products: np.ndarray, shares: np.ndarray, squares: np.ndarray, inner: np.ndarray, k: int
) -> None:
    """Split a vector into parts along those before it and an orthogonal rest."""
    for j in range(k + 1):
        inner[j] = products[k, j]
        for i in range(j):
            inner[j] -= shares[j, i] * inner[i]
        if j < k:
            shares[k, j] = inner[j] / squares[j]
    squares[k] = max(inner[k], SMALLEST * products[k, k])


@njit(cache=True)
def _subtract(basis: np.ndarray, products: np.ndarray, k: int, j: int, times: float) -> None:
    """Subtract a whole multiple of one vector from another."""
    for i in range(basis.shape[1]):
        basis[k, i] -= np.int64(times) * basis[j, i]
    for i in range(products.shape[0]):
        products[k, i] -= times * products[j, i]
    for i in range(products.shape[0]):
        products[i, k] -= times * products[i, j]


@njit(cache=True)
def _swap(basis: np.ndarray, products: np.ndarray, k: int) -> None:
    """Swap a vector with the one before it."""
    for i in range(basis.shape[1]):
        basis[k, i], basis[k - 1, i] = basis[k - 1, i], basis[k, i]
    for i in range(products.shape[0]):
        products[k, i], products[k - 1, i] = products[k - 1, i], products[k, i]
    for i in range(products.shape[0]):
        products[i, k], products[i, k - 1] = products[i, k - 1], products[i, k]


def reduce_basis(basis: np.ndarray, metric: np.ndarray) -> np.ndarray:
    """Find a basis of the same lattice whose vectors are short and nearly orthogonal.

    Parameters
    ----------
    basis : ndarray of int64, shape (number of vectors, number of coordinates)
        A basis of the lattice, a vector in each row.
    metric : ndarray of float64, shape (number of coordinates, number of coordinates)
        Metric of scalar products; positive definite.

    Returns
    -------
    ndarray of int64
        The reduced basis. It spans the same lattice despite rounding, since each step has an
        inverse of the same kind.

    References
    ----------
    Lenstra, A. K., Lenstra, H. W., and Lovasz, L. (1982). Factoring polynomials with rational
    coefficients. Mathematische Annalen 261.
    """
    basis = basis.copy()
    vectors = basis.astype(np.float64)
    _reduce(basis, vectors @ metric @ vectors.T)
    return basis


@njit(cache=True)
def _reduce(basis: np.ndarray, products: np.ndarray) -> None:
    """Reduce a basis in place, given the products of its vectors."""
    n = basis.shape[0]
    shares, squares, inner = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    k = int64(0)
    for _ in range(MAX_VISITS * n):
        if k == n:
            break
        _orthogonalise(products, shares, squares, inner, k)
        changed = False
        for j in range(k - 1, -1, -1):
            times = np.round(shares[k, j])
            if times != 0.0:
                changed = True
                _subtract(basis, products, k, j, times)
                for i in range(j):
                    shares[k, i] -= times * shares[j, i]
                shares[k, j] -= times
        if changed:
            continue  # again, with the present products
        if k == 0 or squares[k] >= (LOVASZ - shares[k, k - 1] ** 2) * squares[k - 1]:
            k += 1
        else:
            _swap(basis, products, k)
            k -= 1
