"""Slow, independent answers that judge the samplers.

Nothing here imports a kernel, a step, PyMC or PyTensor: an answer that shares code with what it
judges would share its mistakes. NumPy and SciPy only.

`dirichlet_table`
    The exact posterior of a table's cell probabilities when only noisy counts are published.
`enumeration`
    Brute force over every possible confidential data set, for tiny problems.
"""

from pymc_dapper.reference.dirichlet_table import (
    KnownTablePosterior,
    TablePosterior,
    gaussian_cell_loglik,
)
from pymc_dapper.reference.enumeration import conditional_posterior, dirichlet_posterior

__all__ = [
    "KnownTablePosterior",
    "TablePosterior",
    "conditional_posterior",
    "dirichlet_posterior",
    "gaussian_cell_loglik",
]
