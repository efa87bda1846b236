"""A model that is conjugate only by rules of its own."""

import pymc as pm


def pareto_model():
    with pm.Model() as model:
        tail = pm.Weibull("tail", 1, 4, shape=2)
        pm.Pareto("wealth", alpha=tail[[0, 1, 1]], m=0.5, observed=[0.7, 3.0, 1.1])
    return model
