"""How many independent draws a chain is worth."""

import numpy as np


def effective_draws(values: np.ndarray) -> np.ndarray:
    """Estimate the number of effective draws of each column, shape (k,), of (n, k) draws.

    It is n over the sum of autocorrelations, up to their first pair that isn't positive (Geyer,
    1992, "Practical Markov chain Monte Carlo", section 3.3). nan for constant or infinite columns.
    """
    n = len(values)
    with np.errstate(all="ignore"):
        centred = values - values.mean(axis=0)
        # Rounding errors of a constant become zero.
        varies = np.ptp(values, axis=0) > 1e-12 * np.abs(values).max(axis=0)
        spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=0)) ** 2
        covariance = np.fft.irfft(spectrum, axis=0)[:n]
        correlation = covariance / covariance[0]
        pairs = correlation[: n // 2 * 2].reshape(n // 2, 2, -1).sum(axis=1)
        positive = np.logical_and.accumulate(pairs > 0, axis=0)
        effective = n / np.maximum(2 * (pairs * positive).sum(axis=0) - 1, 1.0)
    return np.where(varies, effective, np.nan)


def effective_if_autoregressive(values: np.ndarray) -> np.ndarray:
    """Estimate :func:`effective_draws` for an autoregression: n (1 - r) / (1 + r).

    By the autocorrelation r of successive draws alone.
    """
    with np.errstate(all="ignore"):
        centred = values - values.mean(axis=0)
        varies = np.ptp(values, axis=0) > 1e-12 * np.abs(values).max(axis=0)
        r = (centred[1:] * centred[:-1]).sum(axis=0) / (centred**2).sum(axis=0)
        return np.where(varies, len(values) * (1 - r) / (1 + r), np.nan)


def memory(seen: np.ndarray) -> float:
    """Estimate how many of n draws, shape (n, k), the slowest column takes to forget.

    Infinitely many if nothing changes.
    """
    effective = effective_draws(seen)
    return np.inf if np.isnan(effective).all() else float(len(seen) / np.nanmin(effective))
