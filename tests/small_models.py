"""A model for each step and way of sweeping, and how it is sampled: small, as all are compiled."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dapper as pmd

Z = np.random.default_rng(1).normal(size=30)


def answers():
    """Conditional draws, records alone: the quickest to compile."""
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.4, shape=30)
        pmd.RandomizedResponse(0.7, categories=2).observe("answer", x, released=1 * (Z > 0))
    return model, {"tabulate": False}


def records():
    """By value, with a conjugate step."""
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        x = pm.Bernoulli("x", p, shape=30)
        pmd.LaplaceMechanism(2.0).potential("s", x.sum(), released=12.0)
    return model, {"interweave": False, "tabulate": False}


def table():
    """Example 2: by entry, and moves of parameters with the records."""
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(4))
        record = pm.Categorical("record", p=p, shape=200)
        counts = pmd.statistics.counts(record, 4)
        released = np.array([60.0, 55.0, 50.0, 35.0])
        pmd.LaplaceMechanism(4.0).potential("s", counts, released=released)
    return model, {"tabulate": False}


def regression():
    """By block."""
    with pm.Model() as model:
        slope = pm.Normal("slope", 0, 1)
        x = pm.Normal("x", 0, 1, shape=200)
        y = pm.Normal("y", slope * x, 1, shape=200)
        sums = pt.stack([(x * y).sum(), (x**2).sum()])
        pmd.LaplaceMechanism(9.0).potential("s", sums, released=np.array([20.0, 180.0]))
    return model, {}


def counts():
    """A table of counts."""
    with pm.Model() as model:
        cells = pm.Poisson("cells", [30.0, 20.0, 10.0])
        pmd.LaplaceMechanism(2.0).potential("s", cells, released=np.array([33.0, 18.0, 7.0]))
    return model, {"marginalise": False}


def marginalised():
    """Counts marginalised."""
    with pm.Model() as model:
        rate = pm.LogNormal("rate", 3, 0.5, shape=3)
        cells = pm.Poisson("cells", rate)
        pmd.DiscreteLaplaceMechanism(2.0).potential("s", cells, released=np.array([33, 18, 7]))
    return model, {}


def unknown_number():
    """How many records there are."""
    with pm.Model() as model:
        n = pm.Poisson("n", 20)
        mu = pm.Normal("mu", 0, 1)
        x = pm.Normal("x", mu, 1, shape=60)
        present = pt.arange(60) < n
        sums = pt.stack([present.sum(), (x * present).sum()])
        pmd.LaplaceMechanism(2.0).potential("s", sums, released=np.array([22.0, 8.0]))
    return model, {}


KINDS = answers, records, table, regression, counts, marginalised, unknown_number
MODELS = {each.__name__: each for each in KINDS}
