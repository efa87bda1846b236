"""A model in which parameters, records and others depend on each other, and how models are read."""

import pymc as pm
import pytensor.tensor as pt

from pymc_dapper.interweaving.reading.model import read_non_centred


def values_of(model, *names):
    return [model.rvs_to_values[model[name]] for name in names]


def read(model, parameters, records):
    return read_non_centred(
        model, values_of(model, *parameters), values_of(model, *records), model.initial_point()
    )


def linked_model():
    """Every way in which parameters, records and others can depend on each other."""
    with pm.Model() as model:
        theta = pm.Gamma("theta", 2, 2)
        upper = pm.Uniform("upper", 0, 2 + theta)
        slope = pm.Normal("slope", 0, 1)
        apart = pm.Normal("apart", slope, 1)
        u = pm.Uniform("u", -1, 1 + upper, shape=2)
        x = pm.Gamma("x", 2, theta, shape=2)
        y = pm.Normal("y", slope * x + u, 0.5 + theta, shape=2)
        child = pm.LogNormal("child", theta, 1)
        pm.Normal("outcome", y, 1, observed=[0.4, 1.2])
        pm.Poisson("public", theta, observed=[1, 2])
        z = pm.Normal("z", x.sum(), theta)
        pm.Laplace(
            "release",
            pt.stack([x.sum() + u.sum(), z * child, (x * y).sum()]),
            1.0,
            observed=[1, 2, 3],
        )
        pm.Potential("other", -(apart**2) * y[0])
    return model


LINKED = ("theta", "upper", "slope"), ("u", "x", "y")
