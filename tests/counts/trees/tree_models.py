"""Models whose counts lie on a tree, few enough to go through all of them."""

from dataclasses import replace
from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace, vectorize_graph

import pymc_dapper as pmd
from pymc_dapper.counts.reading.model import read_counts
from pymc_dapper.counts.reading.tree import read_tree
from pymc_dapper.counts.trees.model import compile_tree


def known_total():
    """A Multinomial given probabilities, with noise of three kinds; a cell has two releases."""
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        x = pm.Multinomial("x", n=9, p=p)
        pmd.DiscreteGaussianMechanism(2.0).potential("cells", x, released=[1, 6, 4])
        pmd.DiscreteLaplaceMechanism(1.5).potential("again", x[0], released=3)
        pm.Normal("two", x[:2].sum(), 1.5, observed=4.5)
    return model


def levels():
    """A nested table with some known sums, a heavy tail, and one row without noise."""
    with pm.Model() as model:
        effect = pm.Normal("effect", initval=0.3)
        x = pm.Poisson("x", pt.exp(effect) * np.array([[1.0, 2.0], [0.5, 3.0]]))
        pmd.LaplaceMechanism(1.2).potential("cells", x[0], released=[-2.0, 3.0])
        pmd.GaussianMechanism(2.0).clamped(0, None).potential("clamped", x[1, 0], released=0.0)
        pm.StudentT("row", nu=4, mu=x[1].sum(), sigma=1.0, observed=2.0)
        pmd.invariant("state", x.sum(), 7)
        pmd.invariant("zero noise", x[0].sum(), 4)
    return model


def latent_totals():
    """Latent totals: people by sex in n households."""
    with pm.Model() as model:
        rate = pm.LogNormal("rate", initval=3.0)
        n = pm.Poisson("n", rate, shape=2)
        x = pm.Multinomial("x", n=n, p=[[0.3, 0.7], [0.6, 0.4]], shape=(2, 2))
        pmd.DiscreteGaussianMechanism(1.5).potential("cells", x, released=[[2, 1], [-1, 3]])
        pmd.DiscreteGaussianMechanism(1.0).potential("all", n.sum(), released=5)
    return model


def families():
    """Cells of other laws with unknown parameters, and noise with an unknown scale."""
    with pm.Model() as model:
        mu, alpha = pm.Normal("mu", initval=-0.2), pm.HalfNormal("alpha", initval=1.5)
        sigma = pm.HalfNormal("sigma", initval=0.8)
        x = pm.NegativeBinomial("x", mu=pt.exp(mu), alpha=alpha)
        y = pm.Binomial("y", n=[3, 4], p=pm.math.sigmoid(mu))
        z = pm.BetaBinomial("z", n=3, alpha=alpha, beta=1.0)
        pm.Normal("all", x + y.sum() + z, sigma + 1, observed=6.0)
        pm.Normal("some", y.sum(), 1.5, observed=3.0)
        pm.Normal("one", x, 1.0, observed=2.0)
    return model


MODELS = {
    "known total": known_total,
    "levels": levels,
    "latent totals": latent_totals,
    "families": families,
}
COUNTS = {
    "known total": ["x"],
    "levels": ["x"],
    "latent totals": ["n", "x"],
    "families": ["x", "y", "z"],
}
START = {
    "known total": [2, 3, 4],
    "levels": [1, 3, 2, 1],
    "latent totals": [4, 2, 2, 2, 1, 1],
    "families": [2, 1, 2, 1],
}
"""Possible counts."""


def tables_of(name):
    """All tables; of counts without an end, beyond what rounding leaves."""
    if name == "known total":
        tables = [x for x in product(range(10), repeat=3) if sum(x) == 9]
    elif name == "levels":
        tables = [(a, 4 - a, b, 3 - b) for a in range(5) for b in range(4)]
    elif name == "latent totals":
        cells = product(range(13), repeat=4)
        tables = [(a + b, c + d, a, b, c, d) for a, b, c, d in cells]
    else:
        tables = list(product(range(16), range(4), range(5), range(4)))
    return np.array(tables)


def read(model, *names):
    values = [model.rvs_to_values[model[name]] for name in names]
    return read_counts(model, values)


def log_densities(name, model):
    """The model's log-density at each of some tables, as a function of a point and of these."""
    values = [model.rvs_to_values[model[each]] for each in COUNTS[name]]
    shapes = [model.initial_point()[x.name].shape for x in values]
    flat, tables, start, at = pt.lvector(), pt.lmatrix(), 0, {}
    for value, shape in zip(values, shapes, strict=True):
        stop = start + int(np.prod(shape))
        at[value] = flat[start:stop].reshape(shape).astype(value.dtype)
        start = stop
    of_tables = vectorize_graph(clone_replace(model.logp(), at), {flat: tables})
    others = [x for x in model.value_vars if x not in values]
    function = pm.compile(
        [*others, tables], of_tables, mode="FAST_COMPILE", on_unused_input="ignore"
    )
    return lambda point, tables: function(*(point[x.name] for x in others), tables)


def given_of(reading, point):
    data = [np.asarray(x.get_value()) for x in reading.data]
    return [np.asarray(point[x.name]) for x in reading.parameters] + data


def tree_of(model, names, **changed):
    """The tree of a model, with ``changed`` parts of its reading."""
    reading = read(model, *names)
    tree = read_tree(reading)
    assert not isinstance(tree, str), tree
    return compile_tree(reading, replace(tree, **changed), {})
