"""Models in which trajectories of NUTS diverged, and others like them, by defaults.

`python -m benchmarks.as_they_come NAME` samples one. Divergences, effective draws of the worst
parameter and leapfrog steps of 4 x 1,000 draws, seed 1: with shorter steps where longer ones
diverge, and before (2026-11-28, by a prototype; of truncated and censored with steps down to a
thousandth):

================ =========== ============= ==============
model            divergences least draws   leapfrog steps
================ =========== ============= ==============
three_histograms 0, 9        398, 432      17.7, 17.6
truncated        0, 67       3,383, 3,216  23.2, 22.3
censored         1, 38       1,825, 1,871  8.8, 8.4
lines_of_groups  0, 24       483, 481      30.8, 30.2
dose_response    0, 96       2,020, 2,259  46.8, 46.0
growth_by_scan   0, 38       1,948, 1,863  21.3, 20.9
five_normal      0, 37       3,201, 2,917  74.5, 69.0
two_columns      0, 21       1,283, 1,371  13.8, 13.3
many_rates       0, 38       293, 237      23.5, 22.9
ar_of_two_lags   0, 69       68, 131       297, 258
================ =========== ============= ==============

By the code as it is, truncated, censored, three_histograms, lines_of_groups and `custom` have no
divergences in three seeds each (`custom` had 2, 7 and 45). The others had none, and have the same
draws.
"""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

import pymc_dapper as pmd
from benchmarks.untuned import noisy


def truncated(n=40, scale=4.0):
    """Truncated normal values, from a noisy sum."""
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", 0, 2), pm.HalfNormal("sigma", 2)
        x = pm.TruncatedNormal("x", mu, sigma, lower=0, upper=4, shape=n)
        pmd.LaplaceMechanism(scale).potential("privacy", x.sum(), released=50.0)
    return model


def censored(n=30, scale=4.0):
    """Censored normal values, from a noisy sum and sum of squares."""
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", 0, 2), pm.HalfNormal("sigma", 2)
        x = pm.Censored("x", pm.Normal.dist(mu, sigma), lower=-1, upper=3, shape=n)
        pmd.GaussianMechanism(scale).potential("sum", x.sum(), released=30.0)
        pmd.GaussianMechanism(3 * scale).potential("squares", (x**2).sum(), released=60.0)
    return model


def custom(n=20, scale=2.0):
    """Normal values of a distribution of one's own, from a noisy sum and sum of squares."""

    def shifted(mu, sigma, size):
        return mu + sigma * pm.Normal.dist(0, 1, size=size)

    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", 0, 2), pm.HalfNormal("sigma", 2)
        x = pm.CustomDist("x", mu, sigma, dist=shifted, shape=n)
        pmd.LaplaceMechanism(scale).potential("sum", pt.clip(x, -5, 5).sum(), released=14.0)
        squares = pt.clip(x**2, 0, 25).sum()
        pmd.LaplaceMechanism(3 * scale).potential("squares", squares, released=30.0)
    return model


def dose_response(n=100, scale=5.0):
    """Lognormal responses to public doses, by Michaelis and Menten, from a noisy sum of each."""
    rng, doses, at = np.random.default_rng(15), np.array([0.5, 1, 2, 4, 8]), np.arange(n) % 5
    dose = doses[at]
    y = np.exp(np.log(10 * dose / (2 + dose)) + 0.3 * rng.normal(size=n)).clip(0, 20)
    with pm.Model() as model:
        top, half = pm.LogNormal("top", 2, 1), pm.LogNormal("half", 0, 1)
        spread = pm.HalfNormal("spread", 0.5)
        x = pm.LogNormal("x", pt.log(top * dose / (half + dose)), spread, shape=n)
        sums = pt.stack([pt.clip(x[at == k], 0, 20).sum() for k in range(5)])
        released = noisy(np.bincount(at, y, 5), scale, rng)
        pmd.LaplaceMechanism(scale).potential("privacy", sums, released=released)
    return model


def growth_by_scan(n=150, times=12, scale=6.0):
    """Values around a logistic curve that a scan computes, from a noisy sum at each time."""
    rng, at = np.random.default_rng(10), np.arange(n) % times
    curve = [0.1]
    for _ in range(times):
        curve.append(curve[-1] + 0.6 * curve[-1] * (1 - curve[-1]))
    y = 5 * np.array(curve)[1 + at] + 0.4 * rng.normal(size=n)
    with pm.Model() as model:
        rate, top = pm.LogNormal("rate", -1, 0.5), pm.LogNormal("top", 1, 1)
        spread = pm.HalfNormal("spread", 1)
        path = pytensor.scan(
            lambda before, rate: before + rate * before * (1 - before),
            outputs_info=[pt.as_tensor(0.1)],
            non_sequences=[rate],
            n_steps=times,
            return_updates=False,
        )
        x = pm.Normal("x", top * path[at], spread, shape=n)
        sums = pt.stack([x[at == k].sum() for k in range(times)])
        released = noisy(np.bincount(at, y, times), scale, rng)
        pmd.GaussianMechanism(scale).potential("sums", sums, released=released)
        squares = (y**2).sum() + 10
        pmd.GaussianMechanism(5 * scale).potential("squares", (x**2).sum(), released=squares)
    return model


def lines_of_groups(n=200, groups=10, scale=3.0):
    """Intercepts and slopes of groups with an unknown covariance, from noisy sums and products."""
    rng, group = np.random.default_rng(7), np.arange(n) % groups
    t = rng.normal(size=n)
    line = rng.multivariate_normal([1, 0.5], [[0.5, 0.2], [0.2, 0.3]], groups)
    y = line[group, 0] + line[group, 1] * t + 0.5 * rng.normal(size=n)
    with pm.Model() as model:
        mean, spread = pm.Normal("mean", 0, 2, shape=2), pm.HalfNormal("spread", 1)
        deviations = pm.Exponential.dist(1, size=2)
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=deviations)
        u = pm.MvNormal("u", mean, chol=chol, shape=(groups, 2))
        x = pm.Normal("x", u[group, 0] + u[group, 1] * t, spread, shape=n)
        for name, latent, true in (("sums", x, y), ("products", x * t, y * t)):
            inside = pt.stack([latent[group == k].sum() for k in range(groups)])
            released = noisy(np.bincount(group, true, groups), scale, rng)
            pmd.GaussianMechanism(scale).potential(name, inside, released=released)
        squares = (y**2).sum() + 3
        pmd.GaussianMechanism(5 * scale).potential("squares", (x**2).sum(), released=squares)
    return model


def five_normal(n=300, scale=20.0):
    """Five normal columns with an unknown covariance, from noisy sums and cross products."""
    rng, upper = np.random.default_rng(8), np.triu_indices(5)
    factor = rng.normal(size=(5, 5))
    y = rng.normal(size=(n, 5)) @ factor.T / 2
    with pm.Model() as model:
        mu, deviations = pm.Normal("mu", 0, 1, shape=5), pm.HalfNormal.dist(2, size=5)
        chol, _, _ = pm.LKJCholeskyCov("chol", n=5, eta=1, sd_dist=deviations)
        x = pm.MvNormal("x", mu, chol=chol, shape=(n, 5))
        mechanism = pmd.GaussianMechanism(scale)
        mechanism.potential("sums", x.sum(axis=0), released=noisy(y.sum(axis=0), scale, rng))
        released = noisy((y.T @ y)[upper], scale, rng)
        mechanism.potential("products", (x.T @ x)[upper], released=released)
    return model


def durations(groups=15, each=12, scale=3.0):
    """Exponential durations in groups with a lognormal frailty, from clipped noisy sums."""
    rng, group = np.random.default_rng(14), np.repeat(np.arange(groups), each)
    y = rng.exponential(np.exp(rng.normal(0, 0.5, groups))[group]).clip(0, 5)
    with pm.Model() as model:
        level, spread = pm.Normal("level", 0, 1), pm.HalfNormal("spread", 1)
        u = pm.Normal("u", 0, spread, shape=groups)
        x = pm.Exponential("x", scale=pt.exp(level + u[group]), shape=groups * each)
        sums = pt.stack([pt.clip(x[group == k], 0, 5).sum() for k in range(groups)])
        released = noisy(np.bincount(group, y, groups), scale, rng)
        pmd.LaplaceMechanism(scale).potential("privacy", sums, released=released)
    return model


def degrees_of_freedom(n=150, scale=3.0):
    """Student t values with all three parameters unknown, from a noisy histogram."""
    rng, edges = np.random.default_rng(12), np.linspace(-8, 8, 17)
    y = (1 + 1.5 * rng.standard_t(3, n)).clip(-7.9, 7.9)
    with pm.Model() as model:
        nu, mu, sigma = pm.Gamma("nu", 2, 0.1), pm.Normal("mu", 0, 3), pm.HalfNormal("sigma", 3)
        x = pm.StudentT("x", nu=nu, mu=mu, sigma=sigma, shape=n)
        table = pmd.statistics.histogram(x, edges)
        released = noisy(np.histogram(y, edges)[0], scale, rng)
        pmd.GaussianMechanism(scale).potential("privacy", table, released=released)
    return model


DIVERGENT = {
    x.__name__: x
    for x in (
        truncated, censored, custom, dose_response, growth_by_scan, lines_of_groups, five_normal,
        durations, degrees_of_freedom,
    )
}  # fmt: skip
