"""Privacy mechanisms: what was published, and its likelihood."""

from pymc_dapper.mechanisms.additive import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    TulapMechanism,
)
from pymc_dapper.mechanisms.base import Mechanism
from pymc_dapper.mechanisms.cell_key import CellKey
from pymc_dapper.mechanisms.custom import CustomMechanism
from pymc_dapper.mechanisms.k_norm import KNormMechanism, LInfMechanism
from pymc_dapper.mechanisms.noisy_max import NoisyMaxMechanism
from pymc_dapper.mechanisms.noisy_stats import NoisyStats
from pymc_dapper.mechanisms.random_rounding import RandomRounding
from pymc_dapper.mechanisms.randomized_response import RandomizedResponse
from pymc_dapper.mechanisms.released import published_rows
from pymc_dapper.mechanisms.transition import TransitionMechanism

__all__ = [
    "CellKey",
    "CustomMechanism",
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "GaussianMechanism",
    "KNormMechanism",
    "LInfMechanism",
    "LaplaceMechanism",
    "Mechanism",
    "NoisyMaxMechanism",
    "NoisyStats",
    "RandomRounding",
    "RandomizedResponse",
    "TransitionMechanism",
    "TulapMechanism",
    "published_rows",
]
