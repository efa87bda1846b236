"""Choices among candidates as OpenDP makes them: quantiles, and the largest scores."""

from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from pymc_dapper.checks import about, finite_number, known, options, real_numbers, shown
from pymc_dapper.mechanisms import NoisyMaxMechanism, QuantileMechanism

NOISE_OF_MEASURE: dict[str, Any] = {
    "MaxDivergence": "exponential",
    "ZeroConcentratedDivergence": "gumbel",
}
NOISE_OF_SUMMARY: dict[str, Any] = {"ExponentialMin": "exponential", "GumbelMin": "gumbel"}

READ = ("0.14", "0.15", "0.16")
"""Versions of OpenDP of which the scores and the noise of choices are known."""

DENOMINATOR = 10_000
"""Denominator of alpha where OpenDP doesn't know the number of records."""

LARGEST = 2**64 - 1


def fraction_of(alpha: float, n_records: int | None) -> tuple[int, int]:
    """Return the fraction by which OpenDP scores quantiles, in whole numbers.

    It is alpha, if its denominator (a power of 2) is small enough. Else alpha is rounded down to a
    multiple of 1 / 10,000, or of n / (2^64 - 1) where the number n of records is known.

    References
    ----------
    OpenDP 0.16, `score_candidates_constants`.
    """
    exact = finite_number(alpha, "alpha", at_least=0, at_most=1).as_integer_ratio()
    most = DENOMINATOR if n_records is None else LARGEST // n_records
    return exact if exact[1] < most else (int(alpha * float(most)), most)


def of_private_quantile(given: Mapping[str, Any]) -> QuantileMechanism:
    """Read the arguments of ``make_private_quantile``."""
    if "output_measure" not in given:
        raise ValueError(
            "measurement: make_private_quantile of OpenDP 0.13 adds other noise than newer ones, "
            "Gumbel noise of twice its scale: write QuantileMechanism(candidates, alpha, 2 * scale)"
        )
    _check_version(given["output_measure"])
    alpha, denominator = fraction_of(given["alpha"], getattr(given["input_domain"], "size", None))
    candidates = np.sort(real_numbers(given["candidates"], "candidates", vector=True))
    noise = _noise(given["output_measure"])
    return QuantileMechanism(candidates, alpha / denominator, given["scale"], noise)


def of_noisy_max(function: str, given: Mapping[str, Any]) -> NoisyMaxMechanism:
    """Read the arguments of ``make_noisy_max`` or ``make_noisy_top_k``."""
    _check_version(given["output_measure"])
    noise, k = _noise(given["output_measure"]), given.get("k", 1)
    size = getattr(given["input_domain"], "size", None)
    if given["negate"]:
        raise ValueError(
            f"measurement: {function} with negate=True reports the smallest scores. Write "
            f"NoisyMaxMechanism({given['scale']:g}, candidates, {k}, noise='{noise}'), and give it "
            "the scores times -1"
        )
    if k > 1 and noise == "exponential":
        raise ValueError(
            f"measurement: {function} draws new noise for each of the {k} that it chooses. Write a "
            f"NoisyMaxMechanism({given['scale']:g}, candidates, noise='exponential') for the first "
            "one, another one of the scores that are left for the second, and so on"
        )
    if size is None:
        raise ValueError(
            f"measurement: {function} doesn't tell the number of candidates: say so in its domain, "
            "vector_domain(..., size=...)"
        )
    return NoisyMaxMechanism(given["scale"], size, k, noise=noise)


def refuse_scores(transformation: Any, scale: float) -> None:
    """Refuse the number of a candidate, chosen by scores that OpenDP made for a quantile."""
    told = getattr(transformation, "__opendp_dict__", {})
    given = told.get("__kwargs__", {})
    for part in given.values():
        refuse_scores(part, scale)
    if told.get("__function__") == "make_quantile_score_candidates":
        size = getattr(given["input_domain"], "size", None)
        alpha, denominator = fraction_of(given["alpha"], size)
        raise ValueError(
            "measurement: it releases the number of a candidate, by scores of a quantile. Use "
            f"QuantileMechanism(candidates, {alpha / denominator:g}, {scale / denominator:g}, "
            "noise='exponential'), or 'gumbel' if the privacy measure is zCDP, and give it "
            "candidates[number] as the release"
        )


def asked_for(quantiles: Any, names: Sequence[str], noises: Sequence[Any]) -> Mapping[str, Any]:
    """Check that what was asked for is of columns that hold quantiles."""
    asked = options(quantiles, "quantiles", "(alpha, candidates) by column")
    held = [name for name, noise in zip(names, noises, strict=True) if noise in NOISE_OF_SUMMARY]
    known(asked, held, "quantiles: the query has no quantile in a column")
    return asked


def of_summary(
    name: str, aggregate: str, distribution: str, scale: float, asked: Any, max_length: Any
) -> QuantileMechanism:
    """Read a quantile of a query on a data frame, by its summary and what was asked for."""
    if max_length is None or not isinstance(asked, tuple | list) or len(asked) not in (2, 3):
        raise ValueError(
            f"'{name}': a quantile was chosen among candidates, which aren't in the summary. Give "
            f"the arguments of dp.quantile or dp.median, quantiles={{'{name}': (alpha, "
            "candidates)}, and if query= is a summary, the max_length= of the query's margin"
        )
    alpha, denominator = fraction_of(asked[0], max_length)
    used = alpha / denominator
    if aggregate != f"{used}-Quantile" and float(aggregate.removesuffix("-Quantile")) != used:
        raise ValueError(
            f"'{name}': the summary has a {aggregate}, where OpenDP computes a {used}-Quantile for "
            f"alpha = {shown(asked[0])} and groups of at most {max_length} records. Look at "
            "quantiles= and max_length="
        )
    with about(f"'{name}'"):
        candidates = real_numbers(asked[1], "candidates", vector=True, finite=True)
        if tuple(asked[2:]) != (float,) and np.any(candidates != np.trunc(candidates)):
            raise ValueError(
                "some candidates have decimals. If the column holds real numbers, say so: "
                f"quantiles={{'{name}': (alpha, candidates, float)}}. If it holds whole numbers, "
                "OpenDP cut the decimals off before it scored the candidates: give them without "
                "decimals, and cut them off from what was released, too"
            )
        noise = NOISE_OF_SUMMARY[distribution]
        return QuantileMechanism(candidates, used, scale / denominator, noise)


def _noise(measure: Any) -> Any:
    if str(measure) not in NOISE_OF_MEASURE:
        raise ValueError(
            f"measurement: its noise under the output measure {measure} isn't known; "
            f"known are {' and '.join(NOISE_OF_MEASURE)}"
        )
    return NOISE_OF_MEASURE[str(measure)]


def _check_version(made_by: Any) -> None:
    """Refuse what a version of OpenDP made whose choices aren't known."""
    package = type(made_by).__module__.partition(".")[0]
    try:
        found = version(package)
    except PackageNotFoundError:
        return
    if package == "opendp" and not found.startswith(tuple(f"{each}." for each in READ)):
        raise ValueError(
            f"measurement: how OpenDP {found} scores candidates isn't known here. Known are "
            f"versions {', '.join(READ)}. If its scores and noise are those of QuantileMechanism, "
            "or of NoisyMaxMechanism, write that"
        )
