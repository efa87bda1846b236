"""Releases of a model: their budgets, and whether they can have come from it."""

from pymc_dapper.model_releases.check import ReleaseCheck
from pymc_dapper.model_releases.find import ModelRelease, find_releases
from pymc_dapper.model_releases.noise_law import NoiseLaw

__all__ = ["ModelRelease", "NoiseLaw", "ReleaseCheck", "find_releases"]
