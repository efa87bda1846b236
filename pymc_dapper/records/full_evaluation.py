"""Factors that need full evaluations: refused with many records, a warning with fewer."""

import warnings
from collections.abc import Sequence

from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.records.reading.factors import FullFactor
from pymc_dapper.records.reading.model import ModelReading

FULL_EVALUATION_LIMIT = 1_000
"""From this number of records on, full evaluations are refused unless allowed."""


def check_full_evaluation(
    reading: ModelReading, factors: Sequence[FullFactor], allowed: bool
) -> None:
    """Refuse factors of a model with many records that cost the square of their number."""
    if factors and reading.n_records >= FULL_EVALUATION_LIMIT and not allowed:
        raise ReadingError(
            f"{_full_evaluation(factors)} With {reading.n_records} records, from "
            f"{FULL_EVALUATION_LIMIT} on, this is refused unless you pass "
            "allow_full_evaluation=True"
        )


def warn_of_full_evaluation(reading: ModelReading, seconds: float) -> None:
    """Warn about the cost of a sweep, and its reason."""
    warnings.warn(
        f"{_full_evaluation(reading.full_factors)} A sweep over the {reading.n_records} records "
        f"takes about {seconds:.2g} s here, and grows with the square of their number. With "
        f"{FULL_EVALUATION_LIMIT} records or more it needs allow_full_evaluation=True",
        stacklevel=3,
    )


def _full_evaluation(factors: Sequence[FullFactor]) -> str:
    reasons = "; ".join(
        f"'{factor.name}' isn't a function of sums over the records, because {factor.reason}"
        for factor in factors
    )
    return (
        f"DapperStep has to evaluate the model from all records for each record's update: "
        f"{reasons}. If you can, write it with sums over the records (counts, totals, means), and "
        "add those of known people to them."
    )
