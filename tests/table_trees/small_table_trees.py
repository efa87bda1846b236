"""Small trees of tables whose posterior can be listed: crossing queries, and structural zeros."""

import numpy as np

import pymc_dapper as pmd
from tests.monte_carlo import z_score_of_mean
from tests.table_trees.tables_by_enumeration import Enumerated

NAN = np.nan
PARENT = [-1, 0, 0, 1, 1, 2, 2]
INSIDE = [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], *np.eye(4, dtype=int)]
ALPHA = np.array([0.5, 0.3, 1.0, 0.7])
CELLS = [0, 1, 2, 3]


def log_prior(most):
    """Many blocks are empty, and many have two people."""
    n = np.arange(most + 1)
    p = 0.6**n * (1 + 3 * (n == 0) + 5 * (n == 2))
    return np.log(p / p.sum())


def example(known):
    """A tree of tables of 4 blocks and 4 cells, and its posterior: 3 people, or 3 at most.

    Known are the total of the "state" (or True), those of its "halves", too, or none (False). With
    those of halves, the state's cells are nearly known.
    """
    most, in_halves = 3, known == "halves"
    total = [[most if known else 2], [2], [1 if in_halves else NAN], [1], [0], [2], [1]]
    scale = [0 if known else 1, *((0, 0) if in_halves else (1.5, 1)), 2, 2, 2, 2]
    of_state = 0.1 if in_halves else 0.8
    queries = {
        "total": pmd.TableQuery([0] * 4, total, scale),
        "age": pmd.TableQuery(
            [0, 0, 1, 1],
            [[2, 1], [1, 1], [0, 1], [1, 0], [0, 0], [NAN, 1], [2, -1]],
            [1.5 * of_state, *[1.2] * 6],
        ),
        "race": pmd.TableQuery(
            [0, 1, 0, -1],
            [[1, 1], [0, 1], [1, 1], [1, 0], [0, 1], [0, 1], [NAN, NAN]],
            [of_state, 1, 1, 2, 2, 2, 2],
        ),
    }
    impossible = np.zeros((7, 4), dtype=bool)
    impossible[2, 1] = True
    prior = log_prior(most if known else 1)
    tree = pmd.TableTree(PARENT, queries, prior=prior, concentration=ALPHA, impossible=impossible)
    padded = np.append(prior, np.full(9, -np.inf))
    posterior = Enumerated(
        [most] if known else range(5),
        INSIDE,
        [query[:3] for query in queries.values()],
        padded,
        np.array([ALPHA, ALPHA * [1, 0, 1, 1]]),
        np.array([0, 0, 1, 1]),
    )
    return tree, posterior


def largest_z(draws, posterior):
    """Compare means and squares of all counts, in units of Monte Carlo standard errors.

    ``draws`` have shape (draws, areas, cells).
    """
    x = draws.reshape(len(draws), -1).astype(float)
    exact = posterior.areas.reshape(len(posterior.p), -1)
    largest = 0.0
    for power in (1, 2):
        expected = posterior.p @ exact**power
        for drawn, mean in zip((x**power).T, expected, strict=True):
            if np.ptp(drawn) > 0:
                largest = max(largest, abs(z_score_of_mean(drawn, mean)))
            elif abs(drawn[0] - mean) > 1e-4:
                largest = np.inf
    return largest
