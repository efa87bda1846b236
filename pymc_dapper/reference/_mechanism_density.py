"""The density of a mechanism object as a NumPy function, and its largest value."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import ArrayLike
from pymc import compile as pymc_compile

from pymc_dapper.checks import has_shape
from pymc_dapper.mechanisms import KNormMechanism, Mechanism, RandomizedResponse
from pymc_dapper.mechanisms.additive import AdditiveNoise
from pymc_dapper.mechanisms.arguments import with_suppressed


def mechanism_log_bound(mechanism: Mechanism, released: ArrayLike) -> float:
    """Largest log-density of a release, over everything that the statistic could be.

    Additive noise, K-norm noise and randomised response are most likely to release the statistic
    itself. Clamped or suppressed values have probability 1 if the statistic is far beyond.

    Parameters
    ----------
    mechanism : Mechanism
        One that adds noise, or randomised response.
    released : array_like
        The released values.

    Returns
    -------
    float
        The bound, summed over the entries of the release.

    Raises
    ------
    TypeError
        If it isn't known for mechanisms of this kind.
    ValueError
        If the release can't have come from the mechanism.
    """
    values = _as_numbers(mechanism, released)
    mechanism.check_released("released", values)
    if not isinstance(mechanism, AdditiveNoise | KNormMechanism | RandomizedResponse):
        raise TypeError(
            f"the largest density of {type(mechanism).__name__} isn't known here: work out an "
            "upper bound of its log-density at this release, over all statistics, and give that."
        )
    if isinstance(mechanism, AdditiveNoise):
        # Noise is symmetric, so the middle of the value's span is likeliest.
        lowest, highest = mechanism.noisy_range(values)
        is_open = np.isinf(lowest) | np.isinf(highest)
        middle = np.where(is_open, 0.0, (lowest + highest) / 2)
        whole = mechanism.publication.start is not None
        nearest = np.round(middle) if whole else middle
        if mechanism.publication.nonempty:
            nearest = np.maximum(nearest, 1.0 if whole else np.finfo(float).tiny)
        log_density = np.asarray(mechanism.logp(values, nearest).eval(mode="FAST_COMPILE"))
        return float(np.where(is_open, 0.0, log_density).sum())
    return float(np.asarray(mechanism.logp(values, values).eval(mode="FAST_COMPILE")).sum())


def _as_numbers(mechanism: Mechanism, released: ArrayLike) -> np.ndarray:
    """Make an array of a release; suppressed entries become minus infinity."""
    return with_suppressed("released", released) if mechanism.suppresses else np.asarray(released)


def mechanism_log_density(mechanism: Mechanism, released: ArrayLike) -> Callable[[Any], np.ndarray]:
    """Log-density of a release as a function of statistics.

    It maps statistics of shape ``(size, *shape)`` to log-densities of shape ``(size,)``, and raises
    ValueError if the shape isn't the release's.
    """
    values = _as_numbers(mechanism, released)
    mechanism.check_released("released", values)
    compiled: dict[str, Callable[[Any], Any]] = {}

    def log_density(statistic: Any) -> np.ndarray:
        s = np.asarray(statistic)
        has_shape(s, "statistics", (None, *values.shape), why=", a release's for each simulation")
        dtype = "int64" if s.dtype.kind in "biu" else "float64"
        if dtype not in compiled:
            batch = pt.tensor("statistic", shape=(None, *values.shape), dtype=dtype)
            terms = mechanism.logp(values, batch)
            total = terms.sum(axis=tuple(range(1, terms.ndim)))
            with pm.Model():  # invalid parameters give -inf, as in a model
                compiled[dtype] = pymc_compile([batch], total)
        return np.asarray(compiled[dtype](s.astype(dtype)))

    return log_density
