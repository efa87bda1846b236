"""How far draws are from a law.

It is judged by the distance of two distribution functions. By the inequality of Dvoretzky, Kiefer
and Wolfowitz, with Massart's constant, it exceeds sqrt(log(2 / alpha) / (2 n)) with probability
alpha at most, wherever it is looked at.
"""

import numpy as np

from pymc_dapper.conjugacy.kernels.families import BELOW_ONE, TINY

N = 20_000
FALSE_ALARM = 1e-6
LARGEST_DISTANCE = np.sqrt(np.log(2 / FALSE_ALARM) / (2 * N))


def distance(draws, law):
    """Largest difference of two distribution functions, at numbers that a draw can be."""
    lower, upper = law.support()
    at = np.append(law.ppf(np.linspace(0.001, 0.999, 500)), [1e-300, 1e-3, 0.5])
    at = at[(at > TINY if lower == 0 else at > -np.inf) & (at < BELOW_ONE if upper == 1 else True)]
    ours = np.searchsorted(np.sort(draws), at, side="right") / len(draws)
    return np.max(np.abs(ours - law.cdf(at)))
