"""Models that several tests share."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

RELEASED = np.array([110.0, 131.0, 47.0, 110.0])
SIGMA = 6.32
N_APPLICANTS = 400


def admissions_model(released=RELEASED, *, shared=False, n=N_APPLICANTS):
    """Example 2 of the dapper paper: 400 applicants, or as many as are said, four noisy counts."""
    with pm.Model(
        coords={"cell": ["male/admit", "male/reject", "female/admit", "female/reject"]}
    ) as m:
        if shared:
            released = pm.Data("released", released, dims="cell")
        p = pm.Dirichlet("p", np.ones(4), dims="cell")
        record = pm.Categorical("record", p=p, shape=n)
        table = pt.eye(4)[record].sum(axis=0)
        pm.Potential("privacy", -0.5 * (((released - table) / SIGMA) ** 2).sum())
        pm.Deterministic("log_odds_ratio", pt.log(p[0] * p[3] / (p[1] * p[2])))
    return m


def admissions_table():
    """The same with the table itself latent; of whoever builds it, the first compiles its sweep."""
    with pm.Model() as m:
        released = pm.Data("released", RELEASED)
        p = pm.Dirichlet("p", np.ones(4))
        x = pm.Multinomial("x", n=N_APPLICANTS, p=p)
        pm.Potential("privacy", -0.5 * (((released - x) / SIGMA) ** 2).sum())
        pm.Deterministic("log_odds_ratio", pt.log(p[0] * p[3] / (p[1] * p[2])))
    return m


WEIGHTS = np.array([1.0, 2.0, 4.0])
TINY_PRIOR = 0.3
TINY_RELEASED = 2.6
TINY_SIGMA = 1.1


def tiny_log_mechanism(records):
    """Log-density of the tiny model's mechanism, written once more without PyTensor."""
    return -0.5 * ((TINY_RELEASED - float(np.dot(WEIGHTS, records))) / TINY_SIGMA) ** 2


def tiny_model():
    """Three binary records with fixed parameters: all states can be enumerated."""
    with pm.Model() as m:
        record = pm.Bernoulli("record", p=TINY_PRIOR, shape=3)
        weighted = (WEIGHTS * record).sum()
        pm.Potential("privacy", -0.5 * ((TINY_RELEASED - weighted) / TINY_SIGMA) ** 2)
    return m


TABLE_PRIOR = np.array([0.5, 0.2, 0.3])
TABLE_RELEASED = np.array([3.3, 2.1, 0.4])


def tiny_log_table_mechanism(records, weights=WEIGHTS):
    """Log-density of the tiny table's mechanism, written once more without PyTensor."""
    table = np.array([weights[np.asarray(records) == k].sum() for k in range(3)])
    return -np.abs(TABLE_RELEASED - table).sum() / 1.5


def tiny_table_model(weights=WEIGHTS, n_records=3):
    """Three records of three categories, weighted counts with Laplace noise.

    Without weights (None), each record is counted in one cell.
    """
    with pm.Model() as m:
        record = pm.Categorical("record", p=TABLE_PRIOR, shape=n_records)
        rows = pt.eye(3)[record]
        table = (rows if weights is None else weights[:, None] * rows).sum(axis=0)
        pm.Potential("privacy", -pt.abs(TABLE_RELEASED - table).sum() / 1.5)
    return m


CELLS_RELEASED = np.array([[1.3, 0.1, -0.4], [2.1, 0.4, 3.2]])
GROUPS = np.array([1, -1, 0])


def tiny_log_cells_mechanism(records):
    """Log-density of the mechanism of the tiny cells, written once more without PyTensor."""
    table = np.zeros((2, 3))
    for group, record, weight in zip(GROUPS, records, WEIGHTS, strict=False):
        table[group, record] += weight
    return -np.abs(CELLS_RELEASED - table).sum() / 1.5


def tiny_cells_model(n_records):
    """Weighted counts by group and category, added up at two indices, with Laplace noise."""
    with pm.Model() as m:
        record = pm.Categorical("record", p=TABLE_PRIOR, shape=n_records)
        at = GROUPS[:n_records], record
        table = pt.zeros((2, 3))[at].inc(WEIGHTS[:n_records])
        pm.Potential("privacy", -pt.abs(CELLS_RELEASED - table).sum() / 1.5)
    return m


NORM_RELEASED = np.array([4.1, 11.0])


def tiny_log_norm_mechanism(records, weights=WEIGHTS):
    """Log-density of the tiny norm model's mechanism, written once more without PyTensor."""
    weighted = weights * np.asarray(records)
    sums = np.array([weighted.sum(), (weighted**2).sum()])
    return -np.linalg.norm(NORM_RELEASED - sums) / 1.5


def tiny_norm_model(weights=WEIGHTS):
    """Three binary records, two sums of them, and noise that has no term for each."""
    with pm.Model() as m:
        record = pm.Bernoulli("record", p=TINY_PRIOR, shape=3)
        weighted = weights * record
        sums = pt.stack([weighted.sum(), (weighted**2).sum()])
        pm.Potential("privacy", -pt.sqrt(((NORM_RELEASED - sums) ** 2).sum()) / 1.5)
    return m
