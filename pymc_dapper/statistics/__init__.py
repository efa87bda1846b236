"""Statistics that are sums over records, each with its sensitivity.

They take latent records of a model or arrays of data.
"""

from pymc_dapper.sensitivity import Sensitivities, Sensitivity
from pymc_dapper.statistics.moments import clamped_moments, clamped_sum
from pymc_dapper.statistics.persons import bounded_counts
from pymc_dapper.statistics.regression import regression, regression_labels
from pymc_dapper.statistics.statistic import Statistic
from pymc_dapper.statistics.tables import (
    count_where,
    counts,
    cross_counts,
    histogram,
    joint_counts,
)

__all__ = [
    "Sensitivities",
    "Sensitivity",
    "Statistic",
    "bounded_counts",
    "clamped_moments",
    "clamped_sum",
    "count_where",
    "counts",
    "cross_counts",
    "histogram",
    "joint_counts",
    "regression",
    "regression_labels",
]
