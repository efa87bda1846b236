"""Noise by its name, for all readers of releases."""

from typing import Any

from pymc_dapper.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
)

NOISE: dict[str, Any] = {
    "laplace": LaplaceMechanism,
    "gaussian": GaussianMechanism,
    "discrete laplace": DiscreteLaplaceMechanism,
    "discrete gaussian": DiscreteGaussianMechanism,
}
