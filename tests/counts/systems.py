"""Small systems of known totals, and models of counts as they are read."""

from itertools import product

import numpy as np

from pymc_dapper.counts.reading.model import read_counts


def read(model, *names):
    values = [model.rvs_to_values[model[name]] for name in names]
    return read_counts(model, values)


def tables(equations, known, largest):
    """All tables that satisfy equations."""
    cells = product(range(largest + 1), repeat=len(equations[0]))
    return [x for x in cells if np.array_equal(np.array(equations) @ x, known)]


ROWS = [[1, 1, 0, 0], [0, 0, 1, 1]]
COLUMNS = [[1, 0, 1, 0], [0, 1, 0, 1]]
SYSTEMS = {
    "one total": ([[1, 1, 1]], [4]),
    "disjoint totals": ([[1, 1, 0, 0], [0, 0, 1, 1]], [2, 3]),
    "nested totals": ([[1, 1, 1, 1], [1, 1, 0, 0]], [4, 1]),
    "a total of some": ([[0, 1, 1]], [3]),
    "a latent total": ([[1, 1, -1]], [0]),
    "two margins": (ROWS + COLUMNS, [1, 1, 1, 1]),
    "two margins and what follows": ([*ROWS, COLUMNS[0], [1, 1, 1, 1]], [2, 1, 1, 3]),
    "margins of pairs": ([[1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 1, 0], [0, 0, 1, 1, 0, 1]], [2, 2, 1]),
}
