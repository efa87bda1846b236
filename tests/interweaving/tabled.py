"""People of several columns behind released tables, each column drawn by a conditional table."""

import numpy as np
import pymc as pm

import pymc_dapper as pmd
from pymc_dapper.context import model_to_read
from pymc_dapper.graphs.asked_once import initial_point
from pymc_dapper.interweaving.reading.tables import read_tables
from pymc_dapper.records.reading.model import read_model

N = 30


def people_in_tables(n=N, sd=4.0, more=None):
    """A class, three columns within it, the last also given the first; tables of two pairs."""
    rng = np.random.default_rng(4)
    with pm.Model() as model:
        p_class = pm.Dirichlet("p_class", [1.0, 2.0])
        p_a = pm.Dirichlet("p_a", np.full((2, 3), 0.7))
        p_b = pm.Dirichlet("p_b", np.ones((2, 2)))
        p_c = pm.Dirichlet("p_c", np.ones((3, 2, 2)))
        z = pm.Categorical("z", p_class, shape=n)
        a = pm.Categorical("a", p_a[z], shape=n)
        b = pm.Categorical("b", p_b[z], shape=n)
        c = pm.Categorical("c", p_c[a, z], shape=n)
        noise = pmd.GaussianMechanism(sd)
        for name, columns, sizes in (("ab", [a, b], [3, 2]), ("bc", [b, c], [2, 2])):
            released = n / np.prod(sizes) + rng.normal(0, sd, sizes)
            table = pmd.statistics.joint_counts(columns, sizes)
            noise.potential(name, table, released=released)
        if more is not None:
            more(model)
    return model


def read(model, columns=("z", "a", "b", "c")):
    """What `BoundaryStep` reads, and a point."""
    model = model_to_read(model)
    point = initial_point(model)
    people = read_model(model, [model.rvs_to_values[model[x]] for x in columns], point)
    free = [rv for rv in model.free_RVs if rv.name not in columns]
    return read_tables(people, free), point
