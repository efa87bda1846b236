"""Cells that share strength: each by itself, given the two parameters of the smooth prior.

Where counts are large, their law is evaluated at nodes only, and between them by polynomials. So
the probability of what was released of each cell is a product of a sparse matrix and the law at the
nodes, for many values of the parameters at once.
"""

import numpy as np
from scipy import sparse

from pymc_dapper.answers.smooth import Grid, log_pmf
from pymc_dapper.answers.windows import Tables

PER_SD = 8
"""Nodes in a standard deviation of a Poisson law, which is the narrowest that there is."""
ORDER = 6
"""Nodes of a polynomial."""
AT_ONCE = 2**19
"""Entries of an array that is gone through at once."""


class SharingCells:
    """Cells of which nothing is known but what was released of each.

    Parameters
    ----------
    tables : Tables
        What was released of each cell, with each count in a piece of its own.
    """

    def __init__(self, tables: Tables):
        self._tables, self._weights = tables, tables.weights()
        counts = tables.nodes[:, :-1]
        first, last = int(counts.min()), int(counts.max())
        is_dense = last - first < counts.size
        self._counts = np.arange(first, last + 1) if is_dense else np.unique(counts)
        self._first = np.searchsorted(self._counts, counts[:, 0])
        self._nodes, self._between = interpolation(self._counts)
        rows, width = counts.shape
        places = np.searchsorted(self._counts, counts.ravel())
        ends = np.arange(0, rows * width + 1, width)
        shape = (rows, self._counts.size)
        by_count = sparse.csr_array((self._weights.ravel(), places, ends), shape=shape)
        self._by_node = by_count @ self._between
        self._times = np.bincount(tables.which, minlength=rows)

    def _laws(self, alpha: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """Return the law of counts at the nodes, of shape (nodes, points)."""
        return np.exp(log_pmf(self._nodes[:, None], alpha, mu))

    def log_evidence(self, alpha: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """Return the log-probability of what was released, for arrays of both parameters."""
        with np.errstate(divide="ignore"):
            return self._times @ np.log(np.maximum(self._by_node @ self._laws(alpha, mu), 0.0))

    def draw(self, grid: Grid, draws: int, rng: np.random.Generator) -> np.ndarray:
        """Draw all cells, independently: shape (cells, draws)."""
        times = rng.multinomial(draws, grid.weights)
        used = times > 0
        laws = self._laws(grid.alpha[used], grid.mu[used])
        point = np.repeat(np.arange(laws.shape[1]), times[used])
        order = rng.permutation(draws)
        which = self._tables.which
        drawn = np.empty((which.size, draws), dtype=np.int64)
        cells, width = np.argsort(self._first[which], kind="stable"), self._weights.shape[1]
        rows = max(1, AT_ONCE // (width * laws.shape[1] + draws))
        for start in range(0, cells.size, rows):
            chosen = cells[start : start + rows]
            piece = self._pieces(which[chosen], laws, point, rng)
            drawn[chosen[:, None], order] = self._tables.nodes[which[chosen], :1] + piece
        return drawn

    def _pieces(
        self, which: np.ndarray, laws: np.ndarray, point: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw pieces of some rows: for each draw, given a point of the grid."""
        first, width, n = self._first[which], self._weights.shape[1], laws.shape[1]
        part = self._between[first[0] : first[-1] + width] @ laws
        places = np.minimum(first[:, None] - first[0] + np.arange(width), len(part) - 1)
        pmf = self._weights[which][:, None, :] * np.maximum(part, 0.0).T[:, places].swapaxes(0, 1)
        cdf = np.cumsum(pmf, axis=2)
        cdf /= cdf[:, :, -1:]
        # One after the other, they are ascending as a whole.
        number = np.arange(which.size * n).reshape(which.size, n)
        sought = number[:, point] + rng.random((which.size, point.size))
        at = np.searchsorted((cdf + number[:, :, None]).ravel(), sought.ravel(), side="right")
        return at.reshape(sought.shape) - width * number[:, point]


def interpolation(counts: np.ndarray) -> tuple[np.ndarray, sparse.csr_array]:
    """Return nodes, and the matrix that makes values at counts of those at nodes.

    Nodes are all counts where these are small, and then as many in each standard deviation of a
    Poisson law.
    """
    place = np.unique(np.floor(2 * PER_SD * np.sqrt(counts)))
    near = np.unique(place[:, None] + np.arange(-ORDER, ORDER + 1))
    nodes = np.round((np.maximum(near, 0) / (2 * PER_SD)) ** 2).astype(np.int64)
    small = np.arange(min(int(counts[0]), PER_SD**2), PER_SD**2)
    nodes = np.unique(np.concatenate([small, nodes]))
    at = np.searchsorted(nodes, counts, side="right") - ORDER // 2
    at = np.clip(at, 0, nodes.size - ORDER)[:, None] + np.arange(ORDER)
    apart = nodes[at][:, :, None] - nodes[at][:, None, :] + np.eye(ORDER)
    from_node = (counts[:, None] - nodes[at])[:, None, :].repeat(ORDER, axis=1)
    from_node[:, np.arange(ORDER), np.arange(ORDER)] = 1
    shares = np.prod(from_node / apart, axis=2)
    used, at = np.unique(at, return_inverse=True)
    ends = np.arange(0, ORDER * counts.size + 1, ORDER)
    between = sparse.csr_array((shares.ravel(), at.ravel(), ends), shape=(counts.size, used.size))
    between.eliminate_zeros()
    return nodes[used], between
