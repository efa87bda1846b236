"""Bayesian inference from privacy-protected data, in PyMC."""

from . import (
    answers,
    budget,
    conjugacy,
    counts,
    diagnostics,
    distributions,
    mechanisms,
    microdata,
    plots,
    reading,
    reference,
    releases,
    statistics,
    studies,
    synthetic,
)
from .assignment.steps import assign_steps
from .budget import ZCDP, ApproxDP, PureDP
from .conjugacy.step import ConjugateStep
from .counts.reading.invariant import invariant
from .counts.step import CountStep
from .counts.trees.streaming import solve_tree_files
from .counts.trees.tree import CountTree
from .distributions import DiscreteGaussian, DiscreteLaplace, Tulap
from .graphs.errors import (
    NotAdditiveError,
    NotConjugateError,
    ReadingError,
    UnknownOperationError,
)
from .graphs.ops import action_of
from .interweaving.step import InterweaveStep
from .marginalised.step import MarginalisedStep
from .mechanisms import (
    CellKey,
    CustomMechanism,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    IntervalQuantileMechanism,
    KNormMechanism,
    LaplaceMechanism,
    LInfMechanism,
    Mechanism,
    NoisyMaxMechanism,
    NoisyStats,
    QuantileMechanism,
    RandomizedResponse,
    RandomRounding,
    TransitionMechanism,
    TulapMechanism,
    published_rows,
)
from .planning import plan
from .plots import (
    plot_analyses,
    plot_record_acceptance,
    plot_study,
)
from .records.reading.rules import follow_records
from .records.step import DapperStep
from .releases.query import Query
from .releases.release import Release
from .releases.tables import read_release
from .sampling import sample
from .sizes.reading.present import present
from .sizes.step import SizeStep
from .steps.function import FunctionStep
from .steps.gibbs import GibbsStep
from .studies import study
from .synthetic import combine, synthetic_data
from .table_trees.given import TableQuery
from .table_trees.tree import TableTree
from .tabulation.errors import TabulationError
from .tabulation.model import tabulate

__all__ = [
    "ZCDP",
    "ApproxDP",
    "CellKey",
    "ConjugateStep",
    "CountStep",
    "CountTree",
    "CustomMechanism",
    "DapperStep",
    "DiscreteGaussian",
    "DiscreteGaussianMechanism",
    "DiscreteLaplace",
    "DiscreteLaplaceMechanism",
    "FunctionStep",
    "GaussianMechanism",
    "GibbsStep",
    "IntervalQuantileMechanism",
    "InterweaveStep",
    "KNormMechanism",
    "LInfMechanism",
    "LaplaceMechanism",
    "MarginalisedStep",
    "Mechanism",
    "NoisyMaxMechanism",
    "NoisyStats",
    "NotAdditiveError",
    "NotConjugateError",
    "PureDP",
    "QuantileMechanism",
    "Query",
    "RandomRounding",
    "RandomizedResponse",
    "ReadingError",
    "Release",
    "SizeStep",
    "TableQuery",
    "TableTree",
    "TabulationError",
    "TransitionMechanism",
    "Tulap",
    "TulapMechanism",
    "UnknownOperationError",
    "action_of",
    "answers",
    "assign_steps",
    "budget",
    "combine",
    "conjugacy",
    "counts",
    "diagnostics",
    "distributions",
    "follow_records",
    "invariant",
    "mechanisms",
    "microdata",
    "plan",
    "plot_analyses",
    "plot_record_acceptance",
    "plot_study",
    "plots",
    "present",
    "published_rows",
    "read_release",
    "reading",
    "reference",
    "releases",
    "sample",
    "solve_tree_files",
    "statistics",
    "studies",
    "study",
    "synthetic",
    "synthetic_data",
    "tabulate",
]
__version__: str
