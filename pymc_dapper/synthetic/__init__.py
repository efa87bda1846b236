"""Synthetic data sets from a posterior, and how to combine analyses of them."""

from pymc_dapper.synthetic.combining import Combined, combine
from pymc_dapper.synthetic.data import synthetic_data

__all__ = ["Combined", "combine", "synthetic_data"]
