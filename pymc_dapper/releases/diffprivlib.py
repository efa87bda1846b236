"""Mechanisms of diffprivlib."""

import math
from typing import Any

from pymc_dapper.checks import about, finite_number, shown
from pymc_dapper.mechanisms import Mechanism, NoisyMaxMechanism, RandomizedResponse
from pymc_dapper.mechanisms.published import PublishedByRules
from pymc_dapper.mechanisms.rules import MAX_RELEASE
from pymc_dapper.releases.noise import NOISE


def diffprivlib_mechanism(mechanism: Any) -> Mechanism:
    """Read a mechanism of diffprivlib.

    Parameters
    ----------
    mechanism : DPMechanism
        Of `diffprivlib.mechanisms`: Laplace, Gaussian or geometric noise, truncated or not; Binary;
        or Exponential and PermuteAndFlip, which are read as report noisy max. Utilities aren't
        read.

    Returns
    -------
    Mechanism
        For `Query` or `read_release`.

    Raises
    ------
    TypeError
        If it is something else.
    ValueError
        If its noise has no likelihood here (folded or bounded noise), or if it adds none.

    References
    ----------
    Holohan, N., Braghin, S., Mac Aonghusa, P. and Levacher, K. (2019). Diffprivlib: the IBM
    differential privacy library. arXiv:1907.02444. Read as of version 0.6.6.
    """
    kind = type(mechanism).__name__
    if not hasattr(mechanism, "randomise") or not hasattr(mechanism, "epsilon"):
        raise TypeError(
            f"mechanism must be one of diffprivlib's mechanisms, got {shown(mechanism)}"
        )
    try:
        with about(f"mechanism: diffprivlib's {kind}"):
            return _read(kind, mechanism)
    except AttributeError as error:
        raise TypeError(f"mechanism: diffprivlib's {kind} doesn't tell its {error.name}") from None


def _read(kind: str, given: Any) -> Mechanism:
    finite_number(given.epsilon, "epsilon", above=0)
    match kind:
        case "Laplace" | "LaplaceTruncated":
            scale = given.sensitivity / (given.epsilon - math.log1p(-given.delta))
            return _truncated(NOISE["laplace"](scale), given)
        case "Gaussian" | "GaussianAnalytic":
            return NOISE["gaussian"](math.sqrt(given.variance(0.0)))
        case "GaussianDiscrete":
            # The scale has no public name.
            return NOISE["discrete gaussian"](float(given._scale))
        case "Geometric" | "GeometricTruncated":
            return _truncated(NOISE["discrete laplace"](given.sensitivity / given.epsilon), given)
        case "Binary":
            return RandomizedResponse(1 / (1 + math.exp(-given.epsilon)), 2)
        case "Exponential" | "PermuteAndFlip":
            return _choice(kind, given)
    raise ValueError(
        "it has no likelihood here. These have one: Laplace, LaplaceTruncated, Geometric, "
        "GeometricTruncated, Gaussian, GaussianAnalytic, GaussianDiscrete, Binary, Exponential and "
        "PermuteAndFlip"
    )


def _choice(kind: str, given: Any) -> Mechanism:
    if getattr(given, "measure", None) is not None:
        raise ValueError(
            "a measure of the candidates isn't known here. tools.quantile has one: of whole "
            "numbers, write IntervalQuantileMechanism(lower, upper, quantile, 2 / epsilon)"
        )
    scale = (1 if given.monotonic else 2) * given.sensitivity / given.epsilon
    noise: Any = "gumbel" if kind == "Exponential" else "exponential"
    return NoisyMaxMechanism(scale, len(given.utility), noise=noise)


def _truncated(mechanism: PublishedByRules, given: Any) -> Mechanism:
    """Add the rule that clamps values to the mechanism's limits, if it has limits."""
    limits = [getattr(given, name, None) for name in ("lower", "upper")]
    # The library's own tools write an open end as the largest integer.
    lower, upper = (None if x is None or abs(x) > MAX_RELEASE else x for x in limits)
    return mechanism if lower is None and upper is None else mechanism.clamped(lower, upper)
