"""What DapperStep refuses: lost digits, singular matrices, impossible starts, full evaluations."""

import warnings
from collections.abc import Sequence

import numpy as np
from pymc.exceptions import SamplingError

from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.records.reading.factors import FullFactor
from pymc_dapper.records.reading.model import ModelReading

LARGEST_ERROR = 1e-4
"""A smaller error of the log-density can't be seen in the draws."""
ROUNDING = 1e-11
"""Allowed error as a share of the model's own log-density, which may be a long sum."""


def check_digits(
    reading: ModelReading, as_written: float, computed: float, rounding: float = 0.0
) -> None:
    """Refuse a log-density whose error would be visible in the draws."""
    error = abs(as_written - computed)
    if np.isfinite(as_written) and not error < LARGEST_ERROR + rounding:
        additive = reading.additive_factors
        lost = [factor for factor in additive if factor.expanded] or additive
        factors = ", ".join(f"'{factor.name}'" for factor in lost)
        raise SamplingError(
            f"DapperStep has lost digits in {factors}: the log-density is {as_written:.10g}, "
            f"but {computed:.10g} from sums over the records. At the chain's present "
            "parameters, the records lie far from zero compared with how they vary, or with "
            "the noise. Subtract a public constant from them first, or give the parameters a "
            "prior that excludes such values. Otherwise this is a fault of pymc_dapper's: please "
            "report the model"
        )


def singular(reading: ModelReading, error: Exception) -> ReadingError:
    """Make the error that records made a matrix singular."""
    return ReadingError(
        f"the log-density of {_factors(reading)} can't be evaluated: {str(error).rstrip('.')}. "
        "Records may make a matrix singular. Write pt.linalg.solve(A, b) in the place of "
        "pt.linalg.inv(A) @ b: it gives nan there, which is an impossible state to DapperStep"
    )


def impossible_start(reading: ModelReading, sweeps: int, at: list[np.ndarray]) -> SamplingError:
    """Make the error that a chain found no possible records, at the parameters that it has."""
    starts = zip(reading.parameters, at, strict=True)
    if beyond := [x for x, value in starts if not np.all(np.isfinite(value))]:
        names = ", ".join(f"'{name}'" for name in reading.names(beyond))
        return SamplingError(
            f"the chain starts at a value of {names} that the prior excludes: change its initval="
        )
    return SamplingError(
        f"DapperStep found no possible start for the records {reading.quoted_names}: after "
        f"{sweeps} sweeps the log-density of {_factors(reading)} is still -inf or nan, or their "
        "prior is. Either the released values can't come from any records (look for a wrong "
        "shape, scale or nan in the mechanism), or the prior at the starting parameters hardly "
        "ever proposes such records: then pass a start that fits, pm.sample(initvals="
        f"{{'{reading.record_names[0]}': ...}}), or raise max_start_sweeps"
    )


def _factors(reading: ModelReading) -> str:
    return ", ".join(f"'{factor.name}'" for factor in reading.factors)


FULL_EVALUATION_LIMIT = 1_000
"""From this number of records on, full evaluations are refused unless allowed."""


def check_full_evaluation(
    reading: ModelReading, factors: Sequence[FullFactor], allowed: bool
) -> None:
    """Refuse factors of a model with many records that cost the square of their number."""
    if factors and reading.n_records >= FULL_EVALUATION_LIMIT and not allowed:
        raise ReadingError(
            f"{_full_evaluation(factors)} With {FULL_EVALUATION_LIMIT} records or more, here "
            f"{reading.n_records}, this is refused unless you pass allow_full_evaluation=True"
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
        "DapperStep has to evaluate the model from all records for each record's update: "
        f"{reasons}. If you can, write it with sums over the records (counts, totals, means), and "
        "add the sums over known people to these."
    )
