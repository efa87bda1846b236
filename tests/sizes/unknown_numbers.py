"""Models whose number of records isn't known, with few records."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dapper as pmd


def bernoulli(room=3, released=(2.2, 1.4), p=None, prior=None):
    """Noisy count and noisy total; every state can be enumerated."""
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 0, room) if prior is None else prior()
        p = pm.Beta("p", 2, 1) if p is None else p
        x = pm.Bernoulli("x", p, shape=room)
        pmd.LaplaceMechanism(scale=1.5).potential("count", n, released=released[0])
        total = (pmd.present(n, room) * x).sum()
        pmd.LaplaceMechanism(scale=1.0).potential("total", total, released=released[1])
    return model


def normal():
    """Several records in a row, one depending on another; means, and a count of flags."""
    room = 7
    with pm.Model() as model:
        rate = pm.Gamma("rate", 4, 1)
        n = pm.Poisson("n", rate)
        slope = pm.Normal("slope", 0, 1)
        x = pm.Normal("x", 0, 1, shape=room)
        y = pm.Normal("y", slope * x, 0.5, shape=room)
        there = pt.le(pt.arange(1, room + 1), n)
        sums = pt.stack([pt.switch(there, x * y, 0).sum(), pt.dot(there.astype("float64"), x**2)])
        pmd.LaplaceMechanism(scale=2.0).potential("sums", sums, released=[1.5, 4.0])
        mean = pt.switch(pt.ge(pt.arange(room), n), 0, y).sum() / pt.maximum(n, 1)
        pmd.GaussianMechanism(sigma=0.3).potential("mean", mean, released=0.4)
        pmd.DiscreteLaplaceMechanism(scale=2).observe("count", there.sum(), released=5)
    return model


def groups():
    """Two groups of unknown size, and their releases."""
    with pm.Model() as model:
        n = pm.NegativeBinomial("n", mu=2, alpha=3)
        m = pm.Binomial("m", 5, 0.5)
        mu = pm.Normal("mu", 0, 1)
        x = pm.Normal("x", mu, 1, shape=4)
        z = pm.Exponential("z", 1, shape=(5, 2))
        there = pmd.present(m, 5)[:, None]
        both = pt.switch(pmd.present(n, 4), x, 0).sum() + pt.switch(there, z, 0).sum(axis=0)
        pmd.LaplaceMechanism(scale=1.0).potential("both", both, released=[3.0, 2.0])
        pmd.LaplaceMechanism(scale=1.0).potential("number", n + m, released=4.4)
    return model


def tied():
    """A covariate and a group of its own for each row; answers of the present ones."""
    z = np.array([0.5, -1.0, 2.0, 0.1])
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 1, 4)
        mu = pm.Normal("mu", 0, 1, shape=2)
        x = pm.Normal("x", mu[np.array([0, 1, 0, 1])], 1, shape=4)
        there = pmd.present(n, 4)
        pmd.LaplaceMechanism(scale=1.0).potential("total", (there * z * x).sum(), released=1.0)
        pm.Potential("answers", pt.switch(there, -pt.abs(x - z), 0))
    return model


MODELS = {"bernoulli": bernoulli, "normal": normal, "groups": groups, "tied": tied}
SIZES = {"bernoulli": ["n"], "normal": ["n"], "groups": ["n", "m"], "tied": ["n"]}
