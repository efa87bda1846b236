"""Releases of a model that somebody wrote, and whether they can have come from it.

A release whose sums something else in the model tells (`told_sums`), or that is told twice
(`repeated`), is found by draws from the prior, in which both are the same.
"""

from pymc_dapper.plausibility.check import check_releases
from pymc_dapper.plausibility.find import ModelRelease, find_releases
from pymc_dapper.plausibility.noise_law import NoiseLaw

__all__ = ["ModelRelease", "NoiseLaw", "check_releases", "find_releases"]
