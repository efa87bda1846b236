"""Noise information of Tumult Analytics."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pymc_dapper.checks import about, different, finite_number, known, names, options, shown
from pymc_dapper.mechanisms import IntervalQuantileMechanism, Mechanism
from pymc_dapper.releases.noise import NOISE

LAWS = {
    "LAPLACE": "laplace",
    "GEOMETRIC": "discrete laplace",
    "GAUSSIAN": "gaussian",
    "DISCRETE_GAUSSIAN": "discrete gaussian",
}


def tumult_mechanisms(
    noise_info: Any,
    values: str | Sequence[str],
    *,
    quantiles: Mapping[str, tuple[float, int, int]] | None = None,
) -> dict[str, Mechanism]:
    """Read the noise of a query that a session of Tumult Analytics evaluated.

    Parameters
    ----------
    noise_info : iterable of dict
        The session's description of the query's noise: the ``noise_mechanism`` and
        ``noise_parameter`` of each.
    values : str or sequence of str
        The released columns, in the order of the noise.
    quantiles : mapping of str to tuple, optional
        For each column that holds quantiles: the ``(quantile, low, high)`` that the query was
        given. The records must be whole numbers.

    Returns
    -------
    dict of str to Mechanism
        By column, for ``read_release(frame, values=values, noise=...)``.

    Raises
    ------
    TypeError, ValueError
        If a noise isn't known; if a quantile isn't among ``quantiles``, or its limits aren't whole
        numbers; or if there are not as many noises as columns, as for a mean, which is a ratio of
        two noisy numbers.

    Notes
    -----
    The parameter of Gaussian noise is sigma squared; of geometric and Laplace noise, the scale; of
    a quantile, epsilon. A quantile is drawn by the exponential mechanism among the intervals
    between successive records, as of version 0.21.0 with `tmlt.core` 0.20.0.

    References
    ----------
    Berghel, S. et al. (2022). Tumult Analytics: a robust, easy-to-use, scalable, and expressive
    framework for differential privacy. arXiv:2212.04133.
    """
    columns = (values,) if isinstance(values, str) and values else names(values, "values")
    different(columns, "values must be different columns")
    try:
        told = [] if isinstance(noise_info, str | Mapping) else list(noise_info)
    except (TypeError, ValueError):  # a symbolic vector has no length
        told = []
    if not told:
        raise TypeError(f"noise_info must be a list of dicts, got {shown(noise_info)}")
    if len(told) != len(columns):
        raise ValueError(
            f"noise_info has {len(told)} noises, but values has {len(columns)} columns: "
            "each column must have one. (A mean is a ratio of two noisy numbers: release both)"
        )
    asked = options(quantiles, "quantiles", "(quantile, low, high) by column")
    known(asked, columns, "quantiles: there is no column")
    pairs = zip(columns, told, strict=True)
    return {name: _mechanism(name, each, asked.get(name)) for name, each in pairs}


def _mechanism(name: str, told: Any, asked: Any) -> Mechanism:
    for key in ("noise_mechanism", "noise_parameter"):
        if not isinstance(told, Mapping) or key not in told:
            raise ValueError(f"'{name}': '{key}' is missing in noise_info")
    kind = told["noise_mechanism"]
    kind = str(getattr(kind, "name", kind)).upper()
    what = f"'{name}': noise_parameter of noise_info"
    number = finite_number(told["noise_parameter"], what, above=0)
    if kind == "EXPONENTIAL":
        return _of_quantile(name, number, asked)
    if asked is not None:
        raise ValueError(f"quantiles: '{name}' isn't a quantile, as its noise is of kind {kind}")
    if kind not in LAWS:
        raise ValueError(f"'{name}': noise of kind {kind} in noise_info isn't added to a statistic")
    return NOISE[LAWS[kind]](math.sqrt(number) if "GAUSSIAN" in kind else number)


def _of_quantile(name: str, epsilon: float, asked: Any) -> Mechanism:
    if not isinstance(asked, tuple | list) or len(asked) != 3:
        raise ValueError(
            f"'{name}': a quantile has no noise that is added. Give what the query was given, "
            f"quantiles={{'{name}': (quantile, low, high)}}"
        )
    alpha, low, high = asked
    with about(f"'{name}': quantile"):
        finite_number(alpha, "alpha", at_least=0, at_most=1)
        return IntervalQuantileMechanism(low, high, alpha, 2 * max(alpha, 1 - alpha) / epsilon)
