"""Noise with linear equalities, A e = 0: the free cells, and the others as functions of them."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr


@dataclass(frozen=True, eq=False)
class Elimination:
    """Cells split into free ones and solved ones: ``A[:, solved] e[solved] = -A[:, free] e[free]``.

    There are as many solved cells as A, the matrix, has rank. The solution, shape (solved, free),
    maps the noise of the free cells to theirs. `whole` says whether the noise is of whole numbers.
    """

    matrix: np.ndarray
    free: np.ndarray
    solved: np.ndarray
    solution: np.ndarray
    whole: bool

    def complete(self, noise: np.ndarray) -> np.ndarray:
        """Overwrite the solved cells' noise, in place, by the values that the free cells imply.

        Returned is for each row whether there is a solution: with noise of whole numbers there may
        be none.
        """
        solved = noise[:, self.free] @ self.solution.T
        if not self.whole:
            noise[:, self.solved] = solved
            return np.ones(len(noise), dtype=bool)
        noise[:, self.solved] = np.rint(solved)
        # The products are of whole numbers far below 2^53, so this is exact.
        return np.all(noise @ self.matrix.T == 0, axis=1)


def eliminate(
    equalities: ArrayLike | None, cells: int, *, whole: bool, solve_for: ArrayLike | None = None
) -> Elimination:
    """Choose cells to solve for, or check those that were chosen.

    The rows of the equalities A, shape (m, cells), may be linearly dependent. With whole-number
    noise A must be whole, too, and the elimination is exact: it pivots on coefficients of 1 and -1
    if there are any, so that the other cells can be solved for in whole numbers.
    """
    matrix = np.zeros((0, cells)) if equalities is None else np.array(equalities, dtype=float)
    if matrix.ndim != 2 or matrix.shape[1] != cells or not np.all(np.isfinite(matrix)):
        raise ValueError(
            f"equalities must be a finite matrix with a column for each of the {cells} cells, got "
            f"shape {matrix.shape}. A table is taken row by row."
        )
    if whole and not (np.all(matrix == np.rint(matrix)) and np.all(np.abs(matrix) < 2**31)):
        raise ValueError(
            "with noise of whole numbers the equalities must have whole coefficients: multiply "
            "each row by its common denominator."
        )
    pivots = independent_columns(matrix, whole=whole)
    solved = pivots if solve_for is None else _chosen(solve_for, matrix, len(pivots), whole)
    free = np.setdiff1d(np.arange(cells), solved)
    solution = -np.linalg.lstsq(matrix[:, solved], matrix[:, free], rcond=None)[0]
    return Elimination(matrix, free, solved, solution, whole)


def independent_columns(matrix: np.ndarray, *, whole: bool) -> np.ndarray:
    """Return the columns of a block whose rank is the matrix's."""
    return _exact_pivots(matrix) if whole else _pivots(matrix)


def _chosen(solve_for: ArrayLike, matrix: np.ndarray, rank: int, whole: bool) -> np.ndarray:
    solved = np.asarray(solve_for)
    cells = matrix.shape[1]
    if solved.ndim != 1 or (solved.size and not np.issubdtype(solved.dtype, np.integer)):
        raise ValueError(f"solve_for must be a list of cells' numbers, got {solve_for!r}.")
    solved = np.sort(solved.astype(np.int64))
    if np.any((solved < 0) | (solved >= cells)) or np.unique(solved).size != solved.size:
        raise ValueError(
            f"solve_for must hold different numbers from 0 to {cells - 1}, got {solve_for!r}."
        )
    block = matrix[:, solved]
    found = len(independent_columns(block, whole=whole))
    if solved.size != rank or found != rank:
        raise ValueError(
            f"the equalities have rank {rank}, but the cells of solve_for, {solved.tolist()}, "
            f"give a block of {solved.size} columns and rank {found}. Choose {rank} cells whose "
            "columns are linearly independent."
        )
    return solved


def _pivots(matrix: np.ndarray) -> np.ndarray:
    """Columns of a well-conditioned block of full rank, by a pivoted QR decomposition."""
    if 0 in matrix.shape:
        return np.zeros(0, dtype=np.int64)
    _, triangle, order = qr(matrix, mode="economic", pivoting=True)
    diagonal = np.abs(np.diagonal(triangle))
    rank = int(np.sum(diagonal > diagonal[0] * max(matrix.shape) * np.finfo(float).eps))
    return np.sort(order[:rank]).astype(np.int64)


def _exact_pivots(matrix: np.ndarray) -> np.ndarray:
    """Columns of a block of full rank, by elimination in fractions, on pivots of 1 if possible."""
    rows: list[list[Any]] = [[Fraction(int(entry)) for entry in row] for row in matrix]
    pivots: list[int] = []
    while rows:
        candidates = [
            (abs(entry) != 1, i, j)
            for i, row in enumerate(rows)
            for j, entry in enumerate(row)
            if entry
        ]
        if not candidates:
            break
        _, i, j = min(candidates)
        pivot = rows.pop(i)
        pivots.append(j)
        rows = [
            [entry - row[j] / pivot[j] * above for entry, above in zip(row, pivot, strict=True)]
            for row in rows
        ]
    return np.array(sorted(pivots), dtype=np.int64)
