"""Releases compared with what the model can give, before anything is sampled."""

from pymc_dapper.releases.check import ReleaseCheck
from pymc_dapper.releases.find import Release, find_releases
from pymc_dapper.releases.noise_law import NoiseLaw

__all__ = ["NoiseLaw", "Release", "ReleaseCheck", "find_releases"]
