"""A family without a map, and one for it."""

import pymc as pm

from pymc_dapper.interweaving.reading.maps import RecordMap


def inverse_gaussian(factor):
    """A map for a change of scale, mu and lam alike; right for a factor of 1."""

    def register(op, node, moved):
        return RecordMap(
            lambda x, parameters, _: x / parameters[0],
            lambda z, parameters: factor * z * parameters[0],
        )

    return register


def wald_model():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale")
        x = pm.Wald("x", mu=scale, lam=2 * scale, shape=5)
        pm.Laplace("release", x.sum(), 1.0, observed=3.0)
    return model
