"""How a model depends on rows of which only the first n are present."""

from pymc_dapper.sizes.reading.present import present

__all__ = ["present"]
