"""Explanation reports of PipelineDP."""

import math
import re
from collections.abc import Mapping
from typing import Any

from pymc_dapper.checks import choice, finite_number, shown
from pymc_dapper.mechanisms import Mechanism
from pymc_dapper.releases.noise import NOISE

TOLD = re.compile(
    r"Computed DP (?P<metric>\w+) with\s+(?P<kind>Laplace|Gaussian) mechanism:\s+"
    r"parameter=(?P<parameter>[^\s]+)"
)

METRICS = re.compile(r"^ *metrics=\[(?P<names>.*)\]$", re.MULTILINE)


def pipeline_dp_mechanisms(report: Any) -> dict[str, Mechanism]:
    """Read the noise of an aggregation of PipelineDP from its explanation report.

    Parameters
    ----------
    report : ExplainComputationReport or str
        The report, or its text.

    Returns
    -------
    dict of str to Mechanism
        By metric: ``"count"``, ``"privacy_id_count"``, ``"sum"``, for ``read_release(frame,
        values=["count", "sum"], noise=...)``. Metrics whose noise isn't that of a single number
        (means, variances, percentiles) are left out.

    Raises
    ------
    TypeError
        If it isn't a report.
    ValueError
        If no metric's noise is given: PipelineDP computes counts and sums from the noisy parts of a
        mean or variance, if one is asked for in the same aggregation. Or if partitions were
        selected privately: which partitions are published then depends on the records by a law that
        isn't in the report.

    Notes
    -----
    The statistic counts records after contributions were bounded. If someone has more records than
    the bounds allow, PipelineDP picks some at random, in addition to the noise.

    References
    ----------
    PipelineDP, `pipeline_dp.report_generator`, as of version 0.3.1.
    """
    text = report.text() if callable(getattr(report, "text", None)) else report
    if not isinstance(text, str) or "Computation graph" not in text:
        raise TypeError(f"report must be an explanation report of PipelineDP, got {shown(report)}")
    if "public partitions" not in text:
        raise ValueError(
            "report: its partitions weren't public. Which ones were published then depends on "
            "their records, by a law that isn't in the report"
        )
    found: dict[str, Mechanism] = {}
    for each in TOLD.finditer(text):
        metric = each["metric"]
        if metric in found:
            raise ValueError(f"report: it has two noises of '{metric}'")
        found[metric] = _mechanism(metric, each["kind"].lower(), each["parameter"])
    if not found:
        asked = METRICS.search(text)
        what = asked["names"] if asked else "any metric"
        raise ValueError(
            f"report: it doesn't give the noise of single numbers for {what}. Ask for counts "
            "and sums in an aggregation without means, variances and percentiles"
        )
    return found


def noise_of_stddev(noise: str, stddevs: Mapping[str, float]) -> dict[str, Mechanism]:
    """Make mechanisms from the standard deviations that PipelineDP puts beside its metrics.

    Parameters
    ----------
    noise : {"laplace", "gaussian"}
        The aggregation's ``noise_kind``.
    stddevs : mapping of str to float
        By metric: its ``..._noise_stddev``, which is the same in all partitions.

    Returns
    -------
    dict of str to Mechanism
        By metric.

    Raises
    ------
    TypeError, ValueError
        If they are of a wrong kind or out of range.
    """
    choice(noise, "noise", ("laplace", "gaussian"))
    if not isinstance(stddevs, Mapping) or not stddevs:
        raise TypeError(f"stddevs must be a dict by metric, got {shown(stddevs)}")
    scale = 1 / math.sqrt(2) if noise == "laplace" else 1.0
    return {
        metric: NOISE[noise](scale * finite_number(x, f"stddevs: '{metric}'", above=0))
        for metric, x in stddevs.items()
    }


def _mechanism(metric: str, kind: str, parameter: str) -> Mechanism:
    try:
        number = float(parameter)
    except ValueError:
        raise ValueError(f"report: parameter of '{metric}' is no number: {parameter}") from None
    return NOISE[kind](finite_number(number, f"report: parameter of '{metric}'", above=0))
