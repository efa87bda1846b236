"""What the numbers of nameless classes don't change: probabilities of released tables' cells.

Chains of a model with nameless classes end in different modes, which differ in the numbers of the
classes only. So effective draws of parameters of classes mean nothing.
"""

from itertools import combinations

import numpy as np
from scipy.stats import norm
from xarray import Dataset

from benchmarks.untuned import UNEVEN

OF_CLASSES = [
    "share",
    "p_latent_class",
    *(f"{x}{j}" for x in ("p", "p_x") for j in range(len(UNEVEN))),
]
"""Names of shares and tables of classes."""


def bins(posterior):
    """Probabilities of the bins of the histogram of `mixture`: (chains, draws, bins)."""
    share, mu, sigma = (posterior[name].values[..., None] for name in ("share", "mu", "sigma"))
    below = norm.cdf(np.linspace(-5, 5, 17), mu, sigma)
    return np.diff((share * below).sum(axis=2))


def symptoms(posterior):
    """Probabilities of each symptom, and of both of a pair, of `six_symptoms`.

    Only counts of both were released.
    """
    p, share = posterior["p"].values, posterior["share"].values
    a, b = np.array([*combinations(range(6), 2)]).T
    found = np.concatenate([p, p[..., a] * p[..., b]], axis=-1)
    return (1 - share)[..., None] * found[:, :, 0] + share[..., None] * found[:, :, 1]


def pairs(posterior):
    """Probabilities of all pairs' values, of `uneven_columns` and of `classes_of_columns`."""
    share, *tables = (x.values for name, x in posterior.data_vars.items() if name in OF_CLASSES)
    found = [np.einsum("cdk,cdki,cdkj->cdij", share, a, b) for a, b in combinations(tables, 2)]
    return np.concatenate([x.reshape(*x.shape[:2], -1) for x in found], axis=2)


NAMELESS = {
    "mixture": bins,
    "six_symptoms": symptoms,
    "uneven_columns": pairs,
    "classes_of_columns": pairs,
}


def without_names(name, posterior):
    """What of a posterior doesn't depend on the numbers of classes; None for other models."""
    if name not in NAMELESS:
        return None
    of = NAMELESS[name]
    return Dataset({of.__name__: (("chain", "draw", "cell"), of(posterior))})
