"""Tulap noise in NumPy alone, so that its users here share no code with the package's distribution.

A Tulap(0, b, 0) variate is G + U with G discrete Laplace, P(G = k) proportional to b^|k|, and U
uniform on (-1/2, 1/2). Its cdf at x is therefore, with k the integer nearest to x, the straight
line between the cdfs of G at k - 1 and at k. Truncation takes probability q/2 off either end.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from pymc_dapper.budget import ApproxDP, PureDP


@dataclass(frozen=True)
class TulapNoise:
    """Tulap(0, b, q) noise for a count (Awan and Slavkovic 2018), with b = exp(-epsilon).

    Truncation takes off probability q, half of it at either end.
    """

    b: float
    q: float = 0.0

    @classmethod
    def calibrate(cls, budget: PureDP | ApproxDP) -> Self:
        """Choose the noise of a count that one record changes by one."""
        b = float(np.exp(-budget.epsilon))
        if not 0 < b < 1:
            raise ValueError(
                f"exp(-epsilon) must be a float between 0 and 1, got epsilon={budget.epsilon:.6g}. "
                "Tulap noise needs an epsilon between 1e-15 and 700."
            )
        delta = budget.delta if isinstance(budget, ApproxDP) else 0.0
        cut = 2 * delta * b
        return cls(b, cut / (1 - b + cut))

    @property
    def sd(self) -> float:
        """Standard deviation."""
        if self.q == 0:
            return float(np.sqrt(2 * self.b / (1 - self.b) ** 2 + 1 / 12))
        # E X^2 = 2 int_0^inf 2 x P(X > x) dx / 2, and the tail is linear within a cell: integrate
        # x P(X > x) exactly from corner to corner.
        edge = self.edge
        corners = np.unique(np.append(np.arange(0.5, edge), [0.0, edge]))
        low, high = corners[:-1], corners[1:]
        at_low, at_high = self.sf(low), self.sf(high)
        middle = (low + high) / 2
        simpson = (low * at_low + 4 * middle * (at_low + at_high) / 2 + high * at_high) / 6
        return float(np.sqrt(4 * np.sum((high - low) * simpson)))

    @property
    def edge(self) -> float:
        """Largest value that the noise can have."""
        if self.q == 0:
            return np.inf
        # The cell that has tail q/2 in it, then along the straight line within it.
        scaled = 0.5 * self.q * (1 + self.b)
        cell = max(np.floor(np.log(scaled) / np.log(self.b)), 0.0)
        left = (scaled * self.b**-cell - self.b) / (1 - self.b)
        return float(cell + 0.5 - np.clip(left, 0.0, 1.0))

    def sf(self, x: ArrayLike) -> np.ndarray:
        """P(noise > x), elementwise."""
        values = np.asarray(x, dtype=float)
        lower = self._tail(np.abs(values))
        return np.where(values >= 0, lower, 1.0 - lower)

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """P(noise <= x), elementwise."""
        return self.sf(-np.asarray(x, dtype=float))

    def _tail(self, distance: np.ndarray) -> np.ndarray:
        """P(noise > distance), for distances of at least 0."""
        cell = np.floor(distance + 0.5)
        with np.errstate(invalid="ignore"):  # At infinity there is nothing left.
            left = np.where(np.isinf(distance), 0.0, cell + 0.5 - distance)
        tail = self.b**cell * (self.b + left * (1 - self.b)) / (1 + self.b)
        return np.clip((tail - self.q / 2) / (1 - self.q), 0.0, 1.0)
