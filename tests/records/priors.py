"""Models with priors of records, and how they are read."""

import pymc as pm
import pytensor.tensor as pt

from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.self_check import check_reading

N = 4


def read(build):
    """Read a model whose records a function returns."""
    with pm.Model() as model:
        records = build()
        pm.Potential("privacy", -0.1 * pt.add(*(x.sum() for x in records)) ** 2)
    point = model.initial_point()
    reading = read_model(model, [model.rvs_to_values[x] for x in records], point)
    check_reading(reading, point)
    return reading


def normal(value, mu):
    return -0.5 * (value - mu) ** 2


def made_of_normals(f, **kwargs):
    def dist(mu, size):
        return f(pm.Normal.dist(mu, 1, size=size))

    return [pm.CustomDist("x", pm.Normal("mu"), dist=dist, shape=N, **kwargs)]
