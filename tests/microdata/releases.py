"""Releases of three columns of few people, and what they say by enumeration."""

from itertools import product

import numpy as np

import pymc_dapper as pmd
from tests.evaluated_in_python import REWRITTEN

SIGMA = 1.5
LABELS = {"a": ["no", "yes"], "b": ["f", "m"], "c": ["x", "y"]}
CHAIN = (("a", "b"), ("b", "c"))
ALL_PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))


def release(n, cliques, seed=1, sigma=SIGMA):
    """Noisy tables of n people of three columns that depend on each other."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    b = np.where(rng.random(n) < 0.8, a, 1 - a)
    c = np.where(rng.random(n) < 0.8, b, 1 - b)
    people = {"a": a, "b": b, "c": c}
    queries = []
    for clique in cliques:
        table = pmd.statistics.joint_counts([people[x] for x in clique], [2] * len(clique)).value
        values = table + rng.normal(0, sigma, table.shape)
        coords = {x: LABELS[x] for x in clique}
        mechanism = pmd.GaussianMechanism(sigma)
        queries.append(pmd.Query(" * ".join(clique), values, mechanism, clique, coords))
    return pmd.Release(queries)


def prior_of(given, columns="abc"):
    """Weights of the categories of each column in a class: 0.1, and shares by the tables' margins.

    Tables are of two columns, and shown whole.
    """
    found = {column: [] for column in columns}
    for query in given:
        if not query.dims:
            continue
        table = np.where(np.asarray(query.values) > 0, query.values, 0)
        for column, people in zip(query.dims, (table.sum(axis=1), table.sum(axis=0)), strict=True):
            found[column].append((people + 0.5) / (people.sum() + 1))
    return {column: 0.1 + np.mean(shares, axis=0) for column, shares in found.items()}


def log_likelihood(given, cells, columns="abc"):
    """Of each assignment of people to joint cells, shape (assignments, n): of the release."""
    size = len(columns)
    values = np.array(list(product(range(2), repeat=size)))[cells]
    total = np.zeros(len(cells))
    for query in given:
        own = [values[..., columns.index(x)] for x in query.dims]
        for at in product(range(2), repeat=len(own)):
            count = np.all([x == k for x, k in zip(own, at, strict=True)], axis=0).sum(axis=1)
            total -= 0.5 * ((query.values[at] - count) / SIGMA) ** 2 + np.log(SIGMA)
            total -= 0.5 * np.log(2 * np.pi)
    return total


def assignments(n, n_cells):
    """All assignments of n people to cells, shape (n_cells ** n, n)."""
    return np.array(list(product(range(n_cells), repeat=n)))


def likelihood_of_model(model, names, tables, n):
    """Sum a model's density over all that people may be, at given tables of probabilities."""
    people = [model[f"person_{name}"] for name in names]
    values = [model.rvs_to_values[x] for x in people]
    density = sum(x.sum() for x in model.logp(vars=[*people, *model.potentials], sum=False))
    parameters = [x for x in model.free_RVs if x.name.startswith("p_")]
    given = {}
    for rv in parameters:
        transform = model.rvs_to_transforms[rv]
        given[model.rvs_to_values[rv].name] = transform.forward(
            tables[rv.name], *rv.owner.inputs
        ).eval(mode="FAST_COMPILE")
    function = model.compile_fn(density, inputs=model.value_vars, mode=REWRITTEN)
    states = product(range(2), repeat=n * len(people))
    total = 0.0
    for state in states:
        at = np.array(state).reshape(len(people), n)
        total += np.exp(
            function({**given, **{x.name: row for x, row in zip(values, at, strict=True)}})
        )
    return float(total)
