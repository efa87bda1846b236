"""Quantiles from a distribution function."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from pymc_dapper.budget.roots import root


def invert_cdf(
    cdf: Callable[[float], float],
    q: ArrayLike,
    low: float,
    high: float,
    margin: float = 0.0,
) -> np.ndarray:
    """Solve ``cdf(x) = q`` for each `q` by a bracketing root find: ``cdf(low) <= q <= cdf(high)``.

    The cdf is continuous and non-decreasing. Raises ValueError if a probability isn't strictly
    between `margin` and ``1 - margin``.
    """
    probabilities = np.asarray(q, dtype=float)
    if not np.all((probabilities > margin) & (probabilities < 1 - margin)):
        between = "0 and 1" if margin == 0 else f"{margin:g} and 1 - {margin:g}"
        raise ValueError(
            f"q must lie strictly between {between}, got {q!r}. "
            "Give probabilities, such as 0.05 for the 5 % quantile."
        )

    def solve(probability: float) -> float:
        return root(lambda x: cdf(x) - probability, low, high, xtol=1e-300)

    roots = [solve(float(probability)) for probability in probabilities.ravel()]
    return np.array(roots).reshape(probabilities.shape)
