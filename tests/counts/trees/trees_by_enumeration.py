"""Posteriors of small trees, by going through all tables."""

from itertools import product

import numpy as np
from scipy import special, stats


def log_noise(kind, released, scale, count):
    if np.isnan(released):
        return 0.0
    if scale == 0:
        return 0.0 if released == count else -np.inf
    if kind == "discrete_gaussian":
        k = np.arange(-400, 401)
        total = special.logsumexp(-((k / scale) ** 2) / 2)
        return -(((released - count) / scale) ** 2) / 2 - total
    laws = {
        "discrete_laplace": lambda: stats.dlaplace.logpmf(released - count, 1 / scale),
        "gaussian": lambda: stats.norm.logpdf(released, count, scale),
        "laplace": lambda: stats.laplace.logpdf(released, count, scale),
    }
    return laws[kind]()


def enumerate_tree(parent, released, scale, noise, log_prior, largest):
    """Log-evidence, and each node's pmf on 0, 1, ..., where leaves are at most ``largest``.

    ``log_prior`` has a row of log-probabilities for each leaf.
    """
    n = len(parent)
    leaves = [i for i in range(n) if i not in parent]
    order = sorted(range(n), key=lambda i: -depth(parent, i))
    noises = [
        [log_noise(noise[i], released[i], scale[i], x) for x in range(len(leaves) * largest + 1)]
        for i in range(n)
    ]
    tables, logs = [], []
    for counts in product(range(largest + 1), repeat=len(leaves)):
        table = np.zeros(n, dtype=int)
        table[leaves] = counts
        for i in order:
            if parent[i] >= 0:
                table[parent[i]] += table[i]
        prior = sum(row[x] for row, x in zip(log_prior, counts, strict=True))
        tables.append(table)
        logs.append(prior + sum(noises[i][table[i]] for i in range(n)))
    logs, tables = np.array(logs), np.array(tables)
    log_evidence = special.logsumexp(logs)
    p = np.exp(logs - log_evidence)
    return log_evidence, [np.bincount(tables[:, i], p) for i in range(n)]


def depth(parent, i):
    return 0 if parent[i] < 0 else 1 + depth(parent, parent[i])
