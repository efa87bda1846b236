"""Compare draws with an exact answer, in units of their Monte Carlo standard error."""

import numpy as np
from arviz_stats.base import array_stats


def z_scores(draws, exact):
    """How many Monte Carlo standard errors mean, sd and quantiles lie from the exact ones.

    Parameters
    ----------
    draws : ndarray, shape (chain, draw)
    exact : object
        Has `mean`, `sd` and `quantile(q)`.

    Returns
    -------
    dict of str to float
    """
    draws = np.asarray(draws, dtype=float)
    z = {
        "mean": (draws.mean() - exact.mean) / _mcse(draws, "mean"),
        "sd": (draws.std() - exact.sd) / _mcse(draws, "sd"),
    }
    for q in (0.05, 0.95):
        z[f"q{q}"] = (np.quantile(draws, q) - exact.quantile(q)) / _mcse(draws, "quantile", prob=q)
    return {name: float(value) for name, value in z.items()}


def z_score_of_mean(draws, expected=0.0):
    """How many Monte Carlo standard errors the mean of one chain's draws lies from what it is."""
    return float((np.mean(draws) - expected) / _mcse(np.asarray(draws)[None], "mean"))


def smallest_ess(draws):
    """Fewest effective draws behind mean, sd, 5 % and 95 % quantile."""
    draws = np.asarray(draws, dtype=float)
    sizes = [_ess(draws, method) for method in ("mean", "sd")]
    sizes += [_ess(draws, "quantile", prob=q) for q in (0.05, 0.95)]
    return min(sizes)


def _mcse(draws, method, **kwargs):
    return float(array_stats.mcse(draws, chain_axis=0, draw_axis=1, method=method, **kwargs))


def _ess(draws, method, **kwargs):
    return float(array_stats.ess(draws, chain_axis=0, draw_axis=1, method=method, **kwargs))
