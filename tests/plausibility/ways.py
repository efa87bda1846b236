"""The same release, written in several ways."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dapper as pmd
from pymc_dapper.plausibility.check import check_releases

RELEASED = np.array([110.0, 131.0, 47.0, 110.0])


def by_hand(table, released):
    pm.Potential("privacy", -0.5 * (((released - table) / 4.0) ** 2).sum())


def by_hand_laplace(table, released):
    pm.Potential("privacy", (-pt.abs(table - released) / 4.0).sum())


def as_pymc_distribution(table, released):
    pm.Normal("privacy", table, 4.0, observed=released)


def laplace(table, released):
    pmd.LaplaceMechanism(4.0).potential("privacy", table, released=released)


def discrete(table, released):
    pmd.DiscreteGaussianMechanism(4.0).potential("privacy", table, released=np.rint(released))


def clamped(table, released):
    mechanism = pmd.GaussianMechanism(4.0).rounded().clamped(0, None)
    mechanism.potential("privacy", table, released=np.maximum(0, np.rint(released)))


def joint(table, released):
    pmd.LInfMechanism(4.0).potential("privacy", table, released=released)


WAYS = [by_hand, by_hand_laplace, as_pymc_distribution, laplace, discrete, clamped, joint]


def applicants(way, released, n=400):
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(4))
        record = pm.Categorical("record", p=p, shape=n)
        way(pt.eye(4)[record].sum(axis=0), released)
    return model


def check(model, name="record", latent="400 records"):
    check_releases(model, [model.rvs_to_values[model[name]]], latent)
