"""Models whose people have several latent variables, and the steps that a model gets."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dapper as pmd


def assigned(model, *args, **kwargs):
    steps = pmd.assign_steps(*args, model=model, **kwargs)
    return [(type(step).__name__, sorted(x.name for x in step.vars)) for step in steps]


def of_each_person(write, n=6):
    """A model in which ``write`` says what mechanisms see of persons, and what they don't."""
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pmd.LaplaceMechanism(2.0).potential("s", write(mu, n).sum(), released=9.0)
    return model


def class_that_ties_columns(mu, n):
    share = pm.Dirichlet("share", np.ones((2, 3)))
    z = pm.Bernoulli("z", pm.math.sigmoid(mu), shape=n)
    columns = [pm.Categorical(f"c{k}", share[z], shape=n) for k in range(2)]
    return pt.eq(columns[0], columns[1])


def abilities(mu, n):
    theta = pm.Normal("theta", mu, 1, shape=n)
    return pm.Bernoulli("x", logit_p=theta[:, None] - np.arange(3), shape=(n, 3))


def column_that_nothing_sees(mu, n):
    x = pm.Normal("x", mu, 1, shape=n)
    pm.Poisson("y", pt.exp(x), shape=n)
    return x


def counts_with_a_column_below(mu, n):
    visits = pm.Poisson("visits", pt.exp(mu), shape=n)
    pm.Poisson("bills", 1.0 + visits, shape=n)
    return visits


def with_public_data(mu, n):
    """Of which most values from the prior would be refused."""
    theta = pm.Normal("theta", mu, 1, shape=n)
    pm.Normal("seen", theta, 0.1, observed=np.zeros(n))
    return pm.Bernoulli("x", logit_p=theta, shape=n)


def parameters_of_one_length(mu, n):
    effect = pm.Normal("effect", mu, 1, shape=n)
    return pm.Normal("x", effect[np.arange(n)[::-1]], 1, shape=n)


def with_table_and_records():
    """A model of a table, of a total, and of records."""
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        table = pm.Multinomial("table", 60, p)
        total = pm.Poisson("total", 5)
        x = pm.Bernoulli("x", 0.3, shape=7)
        pmd.LaplaceMechanism(2.0).potential("cells", table, released=[20.0, 25.0, 13.0])
        pmd.LaplaceMechanism(2.0).potential("sum", total + x.sum(), released=7.0)
    return model
