"""Cells that share strength: independent given the two parameters of the smooth prior.

Where counts are large, their law is evaluated at nodes only, and interpolated by polynomials. So
the likelihood of all cells is a sparse matrix times the law at the nodes, for many parameter values
at once.
"""

import numpy as np
from scipy import sparse

from pymc_dapper.answers.smooth import Grid, log_pmf
from pymc_dapper.answers.windows import Tables

PER_SD = 8
"""Nodes per standard deviation of a Poisson law, the narrowest law."""
ORDER = 6
"""Nodes of each polynomial."""
AT_ONCE = 2**19
"""Number of array entries that are processed at once."""


class SharingCells:
    """Cells about which only their own release is known.

    Parameters
    ----------
    tables : Tables
        The tabulated release of each cell, with one count in each piece.
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
        """Return the log-probability of the release, for arrays of both parameters."""
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
        """Draw pieces of some rows, given a point of the grid for each draw."""
        first, width, n = self._first[which], self._weights.shape[1], laws.shape[1]
        part = self._between[first[0] : first[-1] + width] @ laws
        places = np.minimum(first[:, None] - first[0] + np.arange(width), len(part) - 1)
        pmf = self._weights[which][:, None, :] * np.maximum(part, 0.0).T[:, places].swapaxes(0, 1)
        cdf = np.cumsum(pmf, axis=2)
        cdf /= cdf[:, :, -1:]
        # Joined, they ascend as a whole.
        number = np.arange(which.size * n).reshape(which.size, n)
        sought = number[:, point] + rng.random((which.size, point.size))
        at = np.searchsorted((cdf + number[:, :, None]).ravel(), sought.ravel(), side="right")
        return at.reshape(sought.shape) - width * number[:, point]


def interpolation(counts: np.ndarray) -> tuple[np.ndarray, sparse.csr_array]:
    """Return nodes, and the matrix that interpolates from nodes to counts.

    Small counts are all nodes; then each standard deviation of a Poisson law has equally many
    nodes.
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
