"""Models whose first draw is timed: the workloads, and four that users write and that take longer.

All simulated data have a fixed seed.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import ordered

import pymc_dapper as pmd
from benchmarks import untuned
from benchmarks.workloads import WORKLOADS


def covariance(n=200):
    """Pairs with an unknown covariance, from noisy sums and cross products."""
    scale, bound, upper = 8.0, 3.0, np.triu_indices(2)
    rng = np.random.default_rng(1)
    clamped = rng.multivariate_normal([0.5, -0.5], [[1, 0.5], [0.5, 1]], n).clip(-bound, bound)
    sums = np.concatenate([clamped.sum(axis=0), (clamped.T @ clamped)[upper]])
    released = sums + rng.laplace(0, scale, 5)
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2, shape=2)
        deviations = pm.Exponential.dist(1, size=2)
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=deviations)
        x = pm.MvNormal("x", mu, chol=chol, shape=(n, 2))
        inside = pt.clip(x, -bound, bound)
        sums = pt.concatenate([inside.sum(axis=0), (inside.T @ inside)[upper]])
        pmd.LaplaceMechanism(scale).potential("privacy", sums, released=released)
    return model


def ordered_logit(n=300):
    """Answers on a scale of three in two public groups, from a noisy table."""
    scale, cells, groups = 5.0, 3, (0, 1)
    rng = np.random.default_rng(1)
    group = rng.integers(2, size=n)
    answers = np.digitize(0.8 * group + rng.logistic(size=n), [-1, 1])
    table = np.array([np.bincount(answers[group == g], minlength=cells) for g in groups])
    released = table + rng.laplace(0, scale, table.shape)
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1)
        cut = pm.Normal("cut", 0, 2, transform=ordered, shape=2, initval=[-1, 1])
        y = pm.OrderedLogistic("y", eta=b * group, cutpoints=cut, compute_p=False, shape=n)
        table = pt.stack([pt.eye(cells)[y][group == g].sum(axis=0) for g in groups])
        pmd.LaplaceMechanism(scale).potential("privacy", table, released=released)
    return model


def group_means(n=200):
    """Means of public groups with a common prior, from noisy totals of the groups."""
    scale, bound, groups = 4.0, 4.0, 5
    rng = np.random.default_rng(1)
    group = rng.integers(groups, size=n)
    clamped = rng.normal(group - 2.0, 1).clip(-bound, bound)
    released = np.bincount(group, clamped, groups) + rng.laplace(0, scale, groups)
    with pm.Model() as model:
        mean, spread = pm.Normal("mean", 0, 2), pm.HalfNormal("spread", 2)
        mu = pm.Normal("mu", mean, spread, shape=groups)
        x = pm.Normal("x", mu[group], 1, shape=n)
        totals = pt.bincount(group, weights=pt.clip(x, -bound, bound), minlength=groups)
        pmd.LaplaceMechanism(scale).potential("privacy", totals, released=released)
    return model


def latent_classes(n=300):
    """Records of two latent classes, from a noisy histogram."""
    scale, edges = 5.0, np.linspace(-4, 4, 9)
    rng = np.random.default_rng(1)
    x = rng.normal(np.where(rng.random(n) < 0.4, -1.5, 1.5), 1)
    released = np.bincount(np.digitize(x, edges[1:-1]), minlength=8) + rng.laplace(0, scale, 8)
    with pm.Model() as model:
        share = pm.Dirichlet("share", np.ones(2))
        mu = pm.Normal("mu", [-1, 1], 1, shape=2)
        x = pm.NormalMixture("x", share, mu, 1.0, shape=n)
        table = pmd.statistics.histogram(x, edges)
        pmd.LaplaceMechanism(scale).potential("privacy", table, released=released)
    return model


USERS = {x.__name__: x for x in (covariance, ordered_logit, group_means, latent_classes)}


def build(name):
    """Build a model by its name."""
    if name in USERS:
        return USERS[name]()
    return WORKLOADS[name]().build() if name in WORKLOADS else untuned.build(name)
