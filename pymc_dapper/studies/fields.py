"""Fields of a study: names of variables in its result, and of columns in its store."""

STATUS_FIELDS = ("status", "message")
"""Whether a cell was done, and otherwise what went wrong."""

NUMBER_FIELDS = (
    "record_acceptance",
    "acceptance_floor",
    "divergences",
    "build_seconds",
    "sample_seconds",
    "seconds",
)
"""Numbers that a cell has once."""

CELL_FIELDS = (*STATUS_FIELDS, *NUMBER_FIELDS)

STATISTICS = (
    "truth",
    "mean",
    "median",
    "sd",
    "lower",
    "upper",
    "width",
    "error",
    "covered",
    "ess_bulk",
    "ess_per_second",
    "r_hat",
    "missing_information",
    "missing_information_mcse",
)
"""Numbers that a cell has for each entry of a parameter."""

PARAMETER_FIELDS = ("parameter", "entry", *STATISTICS)

MADE_WITH, DIGEST = "made_with", "digest"
"""Further fields of a cell in a store: the study, code and versions behind it, and a checksum."""

OVER_REPLICATES = ("bias", "bias_mcse", "coverage", "coverage_mcse")
"""Numbers that the replicates of a setting have together, for each entry of a parameter."""

DONE, FAILED, TIMED_OUT, WORKER_DIED = "done", "failed", "timed out", "worker died"
NOT_RUN = "not run"
"""Outcomes of a cell."""
