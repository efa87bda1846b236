"""Models with counts that can be marginalised, few enough to go through all of them."""

from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace, vectorize_graph

import pymc_dapper as pmd

EFFECTS = np.array([-0.4, 0.9])


def binomial():
    """Two areas, with people whose number is data; yes and no are both released."""
    with pm.Model() as model:
        effect = pm.Normal("effect", shape=2, initval=EFFECTS)
        n = pm.Data("n", [6, 9])
        x = pm.Binomial("x", n=n, p=pm.math.sigmoid(effect))
        mechanism = pmd.DiscreteGaussianMechanism(sigma=2.0)
        mechanism.potential("yes", x, released=[4, -2])
        mechanism.potential("no", n - x, released=[1, 12])
    return model


def poisson():
    """Counts with an exposure, clamped noise and, of one, a release of continuous noise."""
    with pm.Model() as model:
        rate = pm.LogNormal("rate", initval=2.0)
        x = pm.Poisson("x", rate * np.array([1.0, 0.3]))
        clamped = pmd.GaussianMechanism(1.5).clamped(0, None)
        clamped.potential("clamped", x, released=[3.0, 0.0])
        pmd.LaplaceMechanism(1.0).observe("laplace", x[0], released=4.5)
    return model


def in_a_grid():
    """A table of two count variables, seen through weights; one parameter has no counts."""
    with pm.Model() as model:
        effect = pm.Normal("effect", initval=0.3)
        share = pm.Beta("share", 2, 2, shape=(2, 1), initval=[[0.3], [0.8]])
        x = pm.Binomial("x", n=[[2, 3], [4, 1]], p=share)
        y = pm.Poisson("y", pt.exp(effect - 1))
        pm.Normal("released", 2.0 * x, 1.5, observed=[[1.0, 2.0], [7.0, 1.0]])
        pm.Normal("other", 1.0 - y, 1.0, observed=0.5)
    return model


MODELS = {"binomial": binomial, "poisson": poisson, "in a grid": in_a_grid}
COUNTS = {"binomial": ["x"], "poisson": ["x"], "in a grid": ["x", "y"]}
LARGEST = {
    "binomial": [6, 9],
    "poisson": [45, 45],
    "in a grid": [2, 3, 4, 1, 25],
}
"""Largest counts that are gone through: of a Poisson count, beyond what rounding leaves."""


class Chosen:
    """Uniform numbers instead of a generator."""

    def __init__(self, uniforms):
        self.uniforms = np.array(uniforms)

    def random(self, n):
        assert n == self.uniforms.size
        return self.uniforms


def parameters_of(name, model):
    return [rv for rv in model.free_RVs if rv.name not in COUNTS[name]]


def joint(name, model):
    """The model's log-density at each of all tables, as a function of a point."""
    tables = np.array(list(product(*(range(most + 1) for most in LARGEST[name]))))
    counts = [model.rvs_to_values[model[each]] for each in COUNTS[name]]
    shapes = [model.initial_point()[each].shape for each in COUNTS[name]]
    flat, start, at = pt.lvector("flat"), 0, {}
    for value, shape in zip(counts, shapes, strict=True):
        stop = start + int(np.prod(shape))
        at[value] = flat[start:stop].reshape(shape).astype(value.dtype)
        start = stop
    of_table = clone_replace(model.logp(), at)
    of_tables = vectorize_graph(of_table, {flat: pt.constant(tables)})
    others = [x for x in model.value_vars if x not in counts]
    function = pm.compile(others, of_tables, mode="FAST_COMPILE", on_unused_input="ignore")

    def log_densities(point):
        return tables, function(*(point[x.name] for x in others))

    return log_densities
