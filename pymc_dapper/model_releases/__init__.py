"""Releases of a model: their budgets, and whether they can have come from it.

These are plausibility checks of a model that somebody wrote. A release whose sums something else in
the model tells (`told_sums`), or that is told twice (`repeated`), is found by draws from the prior,
in which both are the same.
"""

from pymc_dapper.model_releases.check import ReleaseCheck
from pymc_dapper.model_releases.find import ModelRelease, find_releases
from pymc_dapper.model_releases.noise_law import NoiseLaw

__all__ = ["ModelRelease", "NoiseLaw", "ReleaseCheck", "find_releases"]
