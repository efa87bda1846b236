"""The law of one cell's probability: a mixture of Beta laws that share a concentration."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta

from pymc_dapper.reference._quantiles import invert_cdf


@dataclass(frozen=True, eq=False)
class BetaMixture:
    """Mixture of ``Beta(a_j, concentration - a_j)``, with weights that add up to 1.

    The first parameters `a` are positive and below the concentration, which is the same for every
    component.
    """

    weights: np.ndarray
    a: np.ndarray
    concentration: float

    @property
    def mean(self) -> float:
        """Mean."""
        return float(self.weights @ self.a) / self.concentration

    @property
    def sd(self) -> float:
        """Standard deviation."""
        means = self.a / self.concentration
        within = means * (1 - means) / (self.concentration + 1)
        return float(np.sqrt(self.weights @ (within + (means - self.mean) ** 2)))

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Distribution function at `x`, of the shape of `x`."""
        each = beta.cdf(np.asarray(x)[..., None], self.a, self.concentration - self.a)
        return np.asarray(each @ self.weights)

    def pdf(self, x: ArrayLike) -> np.ndarray:
        """Density at `x`, of the shape of `x`; 0 outside of [0, 1]."""
        each = beta.pdf(np.asarray(x)[..., None], self.a, self.concentration - self.a)
        return np.asarray(each @ self.weights)

    def quantile(self, q: ArrayLike) -> np.ndarray:
        """Quantiles at probabilities `q`, strictly between 0 and 1, of the shape of `q`."""
        return invert_cdf(lambda x: float(self.cdf(x)), q, low=0.0, high=1.0)
