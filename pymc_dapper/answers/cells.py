"""Independent draws of cells, each by itself, from tables of their log-weights."""

import numpy as np

from pymc_dapper.answers.windows import Tables, slopes

AT_ONCE = 2**20
"""Number of array entries that are processed at once."""


def probabilities(tables: Tables, log_prior: np.ndarray | None = None) -> np.ndarray:
    """Return the posterior probability of each piece, of shape (rows, pieces).

    Parameters
    ----------
    tables : Tables
        The tabulated release.
    log_prior : ndarray, optional
        Log-weights of the prior at the first count of each piece, of the same shape; flat by
        default.
    """
    weights = tables.weights()
    if log_prior is not None:
        weights = weights * np.exp(log_prior - log_prior.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def draw_cells(tables: Tables, pmf: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the true value of each cell, independently: shape (cells, draws).

    The number of draws in each piece is multinomial; the draws are then put into random order.
    """
    cells, width = tables.which.size, pmf.shape[1]
    drawn = np.empty((cells, draws), dtype=tables.nodes.dtype)
    rows, each_count = max(1, AT_ONCE // max(width, draws)), tables.each_count
    narrow = np.int16 if width < 2**15 else np.int32  # small integers are sorted faster
    for start in range(0, cells, rows):
        which = tables.which[start : start + rows]
        numbers = np.tile(np.arange(width, dtype=narrow), which.size)
        piece = np.repeat(numbers, rng.multinomial(draws, pmf[which]).ravel())
        piece = rng.permuted(piece.reshape(which.size, draws), axis=1)
        if each_count:
            drawn[start : start + rows] = tables.nodes[which, :1] + piece
        else:
            drawn[start : start + rows] = _places(tables, which, piece, rng)
    return drawn


def _places(
    tables: Tables, which: np.ndarray, piece: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw values within pieces, in which the log-density is linear."""
    length = np.take_along_axis(np.diff(tables.nodes[which]), piece, axis=1)
    change = np.take_along_axis(slopes(tables.logs[which]), piece, axis=1)
    u = rng.random(piece.shape)
    with np.errstate(all="ignore"):
        share = np.log1p(u * np.expm1(change)) / change
    place = np.where(np.abs(change) < 1e-9, u, share) * length
    if tables.whole:  # a geometric law on 0, ..., length - 1
        place = np.minimum(np.floor(place).astype(np.int64), length - 1)
    return np.take_along_axis(tables.nodes[which], piece, axis=1) + place
