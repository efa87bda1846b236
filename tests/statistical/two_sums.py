"""Mean and variance of normal records, from noisy sums of them and of their squares."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.polynomial.laguerre import laggauss
from scipy import stats

PEOPLE = 100
SENSITIVITY = np.array([12.0, 18.0])
PUBLISHED = np.array([33.0, 105.0])


def two_sums():
    """Model (b) of benchmarks/budgets.py without clamps."""
    with pm.Model() as model:
        scale = pm.Data("scale", SENSITIVITY)
        mu = pm.Normal("mu", 0, 1)
        variance = pm.InverseGamma("variance", 3, 2)
        x = pm.Normal("x", mu, pt.sqrt(variance), shape=PEOPLE)
        sums = pt.stack([x.sum(), (x**2).sum()])
        pm.Potential("privacy", pm.logp(pm.Laplace.dist(sums, scale), PUBLISHED))
        return model


def summaries(mu, variance, total, squares, fourth):
    """What is compared: parameters, sums, and how the records spread given the sums."""
    of_sums = [total, squares, total**2, squares**2, total * squares, fourth]
    return [
        mu,
        variance,
        mu**2,
        variance**2,
        mu * variance,
        mu * total,
        variance * squares,
        *of_sums,
    ]


def expected_summaries(scale):
    """By quadrature over the parameters and over the noise, in whose two halves it is smooth."""
    nodes, weights = laggauss(16)
    noise, weights = np.concatenate([-nodes, nodes]), np.tile(weights / 2, 2)
    total = (PUBLISHED[0] - scale[0] * noise)[:, None]
    squares = (PUBLISHED[1] - scale[1] * noise)[None, :]
    around = squares - total**2 / PEOPLE
    assert (around > 0).all()
    mu = np.linspace(-0.7, 1.4, 90)[:, None, None, None]
    log_variance = np.linspace(-1.2, 1.2, 90)[:, None, None]
    variance = np.exp(log_variance)
    logp = stats.norm.logpdf(mu) + stats.invgamma.logpdf(variance, 3, scale=2) + log_variance
    logp = logp + stats.norm.logpdf(total, PEOPLE * mu, np.sqrt(PEOPLE * variance))
    logp = logp + stats.chi2.logpdf(around / variance, PEOPLE - 1) - log_variance
    law = np.exp(logp - logp.max()) * weights[:, None] * weights
    law /= law.sum()
    for margin in (law.sum(axis=(1, 2, 3)), law.sum(axis=(0, 2, 3))):
        assert max(margin[0], margin[-1]) < 1e-9
    # Given their sums, records are even on a sphere around their mean.
    fourth = 3 * around**2 * (PEOPLE - 1) / (PEOPLE**2 * (PEOPLE + 1))
    return [float((law * of).sum()) for of in summaries(mu, variance, total, squares, fourth)]


def fitting_records(rng):
    """Records whose sums are as published: a start at which none is needed."""
    x = rng.normal(size=PEOPLE)
    spread = (PUBLISHED[1] / PEOPLE - (PUBLISHED[0] / PEOPLE) ** 2) ** 0.5
    return (x - x.mean()) / x.std() * spread + PUBLISHED[0] / PEOPLE
