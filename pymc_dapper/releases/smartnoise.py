"""Mechanisms of SmartNoise SQL."""

from typing import Any, Literal

from pymc_dapper.checks import about, choice, flag, known, shown
from pymc_dapper.mechanisms import Mechanism
from pymc_dapper.releases.noise import NOISE

KINDS = {"laplace": "laplace", "gaussian": "gaussian", "geometric": "discrete laplace"}


def smartnoise_mechanism(
    mechanism: Any,
    column: Literal["int", "float"],
    *,
    clamp_counts: bool = False,
    censor_dims: bool = False,
) -> Mechanism:
    """Read the noise of a column that SmartNoise SQL released.

    Parameters
    ----------
    mechanism : AdditiveNoiseMechanism
        The mechanism of the column, which has its kind and its scale. SmartNoise's reader rewrites
        the user's query; the column is meant by its name there.
    column : {"int", "float"}
        The column's type. Counts, and sums of whole numbers, are released as whole numbers:
        SmartNoise adds real-valued noise and cuts off the fraction.
    clamp_counts : bool, default False
        Whether noisy counts below zero were moved to zero. They were if the table's metadata has
        ``clamp_counts``, which is SmartNoise's default.
    censor_dims : bool, default False
        Whether groups were left out because their noisy count isn't above the mechanism's
        threshold, as with ``censor_dims`` in the metadata. Applies to the count of individuals, by
        which SmartNoise decides. Other columns of groups that were left out have no likelihood
        here.

    Returns
    -------
    Mechanism
        For `Query` or `read_release`.

    Raises
    ------
    TypeError
        If it isn't such a mechanism.
    ValueError
        If its kind, scale or threshold isn't known.

    Notes
    -----
    If an individual has more rows than the metadata allow (``max_ids``), SmartNoise picks some at
    random, in addition to the noise.

    References
    ----------
    The SmartNoise SDK, `snsql.sql._mechanisms` and `snsql.sql.private_reader`; read as of version
    1.0.10.

    Examples
    --------
    >>> reader = snsql.from_df(frame, privacy=privacy, metadata=metadata)
    >>> query = "SELECT sex, COUNT(DISTINCT id) AS people FROM S.T GROUP BY sex"
    >>> subquery, _ = reader._rewrite(query)
    >>> names = [symbol.name for symbol in subquery._select_symbols]
    >>> mechanisms = dict(zip(names, reader._get_mechanisms(subquery)))
    >>> smartnoise_mechanism(mechanisms["keycount"], "int", clamp_counts=True, censor_dims=True)
    """
    kind = getattr(getattr(mechanism, "mechanism", None), "name", None)
    if not isinstance(kind, str) or not hasattr(mechanism, "scale"):
        raise TypeError(
            f"mechanism must be a noise mechanism of SmartNoise SQL, got {shown(mechanism)}"
        )
    choice(column, "column", ("int", "float"))
    flag(clamp_counts, "clamp_counts")
    flag(censor_dims, "censor_dims")
    known([kind], KINDS, "mechanism: there is no noise")
    for needed in ("scale", *(["threshold"] if censor_dims else [])):
        if getattr(mechanism, needed, None) is None:
            raise ValueError(f"mechanism: its {needed} isn't told")
    with about("mechanism"):
        made = NOISE[KINDS[kind]](float(mechanism.scale))
        if censor_dims:
            made = made.nonempty().published_if(">", float(mechanism.threshold))
        if clamp_counts:
            made = made.clamped(0, None)
        return made.rounded(1, ties="toward zero") if column == "int" else made
