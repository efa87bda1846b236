"""Mechanisms of SmartNoise SQL."""

from typing import Any

from pymc_dapper.checks import shown
from pymc_dapper.mechanisms import (
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    Mechanism,
)

KINDS: dict[str, Any] = {
    "laplace": LaplaceMechanism,
    "gaussian": GaussianMechanism,
    "geometric": DiscreteLaplaceMechanism,
}


def smartnoise_mechanism(mechanism: Any) -> Mechanism:
    """Read the noise of a column that SmartNoise SQL released.

    Parameters
    ----------
    mechanism : AdditiveNoiseMechanism
        The mechanism of the column, which tells its kind and its scale.

    Returns
    -------
    Mechanism
        For `Query` or `read_release`. Say what the reader was set to do besides by rules: counts
        that were clamped (``clamp_counts``) by ``.clamped(0, None)``, rows that were left out
        (``censor_dims``) by ``.nonempty().published_if(...)`` with the threshold of the count that
        decided on them.

    Raises
    ------
    TypeError
        If it isn't such a mechanism.
    ValueError
        If its kind or its scale aren't told.

    References
    ----------
    The SmartNoise SDK, `snsql.sql._mechanisms`.
    """
    kind = getattr(getattr(mechanism, "mechanism", None), "name", None)
    if not isinstance(kind, str) or not hasattr(mechanism, "scale"):
        raise TypeError(
            f"mechanism must be a noise mechanism of SmartNoise SQL, got {shown(mechanism)}"
        )
    if kind not in KINDS:
        raise ValueError(f"mechanism: there is no noise {kind!r} here, but {', '.join(KINDS)}")
    if mechanism.scale is None:
        raise ValueError("mechanism: its scale isn't told")
    try:
        return KINDS[kind](float(mechanism.scale))
    except (TypeError, ValueError) as error:
        raise type(error)(f"mechanism: {error}") from None
