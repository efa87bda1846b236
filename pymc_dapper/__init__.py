"""Bayesian inference from privacy-protected data, in PyMC."""

from pymc_dapper import conjugacy, diagnostics, statistics
from pymc_dapper.assignment import assign_steps
from pymc_dapper.budget import ZCDP, ApproxDP, PureDP
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.counts.reading import invariant
from pymc_dapper.counts.step import CountStep
from pymc_dapper.distributions import DiscreteGaussian, DiscreteLaplace, Tulap
from pymc_dapper.interweaving.step import InterweaveStep
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
from pymc_dapper.plots import (
    plot_analyses,
    plot_contraction,
    plot_record_acceptance,
    plot_study,
)
from pymc_dapper.reading import (
    NotAdditiveError,
    NotConjugateError,
    ReadingError,
    UnknownOperationError,
    action_of,
    follow_records,
)
from pymc_dapper.records.step import DapperStep
from pymc_dapper.sampling import sample
from pymc_dapper.steps.function import FunctionStep
from pymc_dapper.studies import study
from pymc_dapper.tabulation import TabulationError, tabulate

__all__ = [
    "ZCDP",
    "ApproxDP",
    "ConjugateStep",
    "CountStep",
    "CustomMechanism",
    "DapperStep",
    "DiscreteGaussian",
    "DiscreteGaussianMechanism",
    "DiscreteLaplace",
    "DiscreteLaplaceMechanism",
    "FunctionStep",
    "GaussianMechanism",
    "InterweaveStep",
    "KNormMechanism",
    "LInfMechanism",
    "LaplaceMechanism",
    "Mechanism",
    "NoisyStats",
    "NotAdditiveError",
    "NotConjugateError",
    "PureDP",
    "RandomizedResponse",
    "ReadingError",
    "TabulationError",
    "Tulap",
    "TulapMechanism",
    "UnknownOperationError",
    "action_of",
    "assign_steps",
    "conjugacy",
    "diagnostics",
    "follow_records",
    "invariant",
    "plot_analyses",
    "plot_contraction",
    "plot_record_acceptance",
    "plot_study",
    "sample",
    "statistics",
    "study",
    "tabulate",
]
__version__ = "0.1.0"
