"""Bayesian inference from privacy-protected data, in PyMC."""

from pymc_dapper import diagnostics, statistics
from pymc_dapper.budget import ZCDP, ApproxDP, PureDP
from pymc_dapper.distributions import DiscreteGaussian, DiscreteLaplace, Tulap
from pymc_dapper.mechanisms import (
    CustomMechanism,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    KNormMechanism,
    LaplaceMechanism,
    LInfMechanism,
    Mechanism,
    NoisyStats,
    RandomizedResponse,
    TulapMechanism,
)
from pymc_dapper.reading import (
    NotAdditiveError,
    ReadingError,
    UnknownOperationError,
    follow_records,
)
from pymc_dapper.steps.dapper import DapperStep

__all__ = [
    "ZCDP",
    "ApproxDP",
    "CustomMechanism",
    "DapperStep",
    "DiscreteGaussian",
    "DiscreteGaussianMechanism",
    "DiscreteLaplace",
    "DiscreteLaplaceMechanism",
    "GaussianMechanism",
    "KNormMechanism",
    "LInfMechanism",
    "LaplaceMechanism",
    "Mechanism",
    "NoisyStats",
    "NotAdditiveError",
    "PureDP",
    "RandomizedResponse",
    "ReadingError",
    "Tulap",
    "TulapMechanism",
    "UnknownOperationError",
    "diagnostics",
    "follow_records",
    "statistics",
]
__version__ = "0.1.0"
