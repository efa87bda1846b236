"""Privacy mechanisms: what was published, and its likelihood."""

from pymc_dapper.mechanisms.additive import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    TulapMechanism,
)
from pymc_dapper.mechanisms.base import Mechanism

__all__ = [
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "GaussianMechanism",
    "LaplaceMechanism",
    "Mechanism",
    "TulapMechanism",
]
