"""Distributions of privacy noise that PyMC lacks, as PyMC distributions.

`DiscreteGaussian`, `DiscreteLaplace`
    Noise on the integers, around any real location.
`Tulap`
    Truncated-uniform-Laplace noise: continuous, the discrete Laplace law smoothed over its cells.

All parameters broadcast. `logp`, `logcdf` and `logccdf` are symbolic and right in the tails, and
there is `icdf` if it has a closed form.
"""

from pymc_dapper.distributions.discrete_gaussian import DiscreteGaussian
from pymc_dapper.distributions.discrete_laplace import DiscreteLaplace
from pymc_dapper.distributions.tulap import Tulap

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "Tulap"]
