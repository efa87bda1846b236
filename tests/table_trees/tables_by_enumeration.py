"""The posterior of small trees of tables: all tables of all blocks, listed."""

from itertools import combinations, product

import numpy as np
from scipy.special import gammaln


def parts(n, places):
    """All ways to have n people in so many places."""
    for bars in combinations(range(n + places - 1), places - 1):
        ends = np.array([-1, *bars, n + places - 1])
        yield np.diff(ends) - 1


class Enumerated:
    """All tables, shape (tables, blocks, cells), and their probabilities.

    ``log_prior`` is of a block's total; ``group`` has the group of each block, ``inside`` which
    blocks are in which area; queries are (classes, released, scale).
    """

    def __init__(self, n, inside, queries, log_prior, alpha, group):
        inside = np.asarray(inside)
        blocks, cells = inside.shape[1], len(queries[0][0])
        of_n = [np.array(list(parts(k, blocks * cells))) for k in n]
        self.tables = x = np.concatenate(of_n).reshape(-1, blocks, cells)
        logs = np.zeros(len(x))
        totals = x.sum(axis=2)
        logs += log_prior[totals].sum(axis=1) + gammaln(totals + 1).sum(axis=1)
        logs -= gammaln(x + 1).sum(axis=(1, 2))
        for g in np.unique(group):
            a = alpha[g]
            counts = x[:, group == g].sum(axis=1)
            logs[(counts[:, a == 0] > 0).any(axis=1)] = -np.inf
            counts, a = counts[:, a > 0], a[a > 0]
            logs += gammaln(counts + a).sum(axis=1) - gammaln(a).sum()
            logs += gammaln(a.sum()) - gammaln(counts.sum(axis=1) + a.sum())
        self.areas = np.einsum("ab,tbc->tac", inside, x)
        for classes, released, scale in queries:
            classes, released = np.asarray(classes), np.asarray(released, dtype=float)
            scale = np.broadcast_to(scale, len(inside))
            for a, k in product(range(len(inside)), range(released.shape[1])):
                if np.isnan(released[a, k]):
                    continue
                error = released[a, k] - self.areas[:, a, classes == k].sum(axis=1)
                if scale[a] == 0:
                    logs[error != 0] = -np.inf
                else:
                    logs -= 0.5 * (error / scale[a]) ** 2
        self.p = np.exp(logs - logs.max())
        self.p /= self.p.sum()
