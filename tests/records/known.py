"""Models in which sums over records are known exactly."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dapper as pmd
from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.exchange_groups import read_exchange

N = 6
P = np.linspace(0.2, 0.8, N)


def exchange_of(build):
    """Read the exchanges of the model that `build` makes of its records."""
    with pm.Model() as model:
        records = build()
    records = list(records) if isinstance(records, tuple) else [records]
    values = [model.rvs_to_values[x] for x in records]
    point = model.initial_point()
    reading = read_model(model, values, point)
    return reading, read_exchange(reading, point)


def bernoulli(says):
    """Six binary records, and what a model says of them."""

    def build():
        x = pm.Bernoulli("x", P, shape=N)
        pm.Potential("known", says(x))
        return x

    return build


INF = np.inf


def partly():
    x = pm.Bernoulli("x", P, shape=N)
    pmd.invariant("of_some", x[:4].sum(), 2)
    pm.Potential("noisy", -(x.sum() ** 2))
    return x


def incomes():
    x = pm.LogNormal("x", 0, 1, shape=N)
    pm.Potential("total", pt.switch(pt.abs((x * [1, 1, 2, 2, 1, 1]).sum() - 9) < 1e-6, 0, -np.inf))
    return x
