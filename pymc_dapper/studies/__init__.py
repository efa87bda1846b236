"""Studies: many simulated releases, each analysed, over a grid of settings."""

from pymc_dapper.studies.study import study

__all__ = ["study"]
