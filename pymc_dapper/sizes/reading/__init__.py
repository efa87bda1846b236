"""How a model sees rows of which only the first n are there."""

from pymc_dapper.sizes.reading.present import present

__all__ = ["present"]
