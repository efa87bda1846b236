"""Modes of latent classes behind noisy counts of pairs: how likely each is, and if moves cross.

    python -m benchmarks.class_modes ../shared/data/adult.csv.gz --fits 8
    python -m benchmarks.class_modes ../shared/data/adult.csv.gz --nuts 2 --classes 20

Classes are fitted to the tables from random starts, with the priors of `latent_classes`. Of each
fit: its marginal likelihood, by Laplace's approximation with people marginalised; then two classes
are joined, given people drawn by the fit (Dahl 2005: people are put into one of two classes in
turn). With ``--nuts``, so many chains of PyMC's NUTS start at fits, with people marginalised: how
much their pair probabilities differ.

Counts of cells are taken as normal, with their exact mean and covariance, but for NUTS, which takes
cells as independent. Parameters are logarithms of probabilities, in which the density of a
Dirichlet table is the product of its entries, each to the power of its weight.
"""

import argparse
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from time import process_time

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
from arviz_stats.base import array_stats
from numba import njit
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import gammaln, softmax

import pymc_dapper as pmd
from pymc_dapper.kernels.effective_draws import effective_draws
from pymc_dapper.microdata.columns import read_columns
from pymc_dapper.microdata.latent_classes import LEAST

CLASSES, SIGMA, ITERATIONS = 50, 50.0, 2_500
TUNE, DRAWS = 600, 600
LEFT_OUT = ["fnlwgt", "capital-gain", "capital-loss", "native-country"]


def name(columns):
    return " ".join(map(str, columns))


@dataclass(frozen=True)
class Problem:
    """Noisy counts of all pairs of columns of n people."""

    n: int
    sizes: tuple[int, ...]
    released: tuple[np.ndarray, ...]
    sigma: float = SIGMA

    @property
    def pairs(self):
        return list(combinations(range(len(self.sizes)), 2))

    @cached_property
    def weights(self):
        """Of each column: the prior weights of its categories in a class."""
        tables = {name(at): x for at, x in zip(self.pairs, self.released, strict=True)}
        noise = pmd.GaussianMechanism(self.sigma)
        queries = [pmd.Query(key, x, noise, key.split()) for key, x in tables.items()]
        columns = read_columns(pmd.Release(queries), self.n)
        return [LEAST + columns.shares(str(c)) for c in range(len(self.sizes))]

    def split(self, logits, classes):
        """Probabilities of classes, and a table of each column."""
        shapes = [(classes,), *((classes, size) for size in self.sizes)]
        ends = np.cumsum([np.prod(shape) for shape in shapes])[:-1]
        parts = np.split(logits, ends)
        return [softmax(x.reshape(s), axis=-1) for x, s in zip(parts, shapes, strict=True)]


def people_of(path):
    """Ten columns of the Adult data, age and hours in steps of ten."""
    table = pd.read_csv(path).drop(columns=LEFT_OUT)
    table["age"] //= 10
    table["hours-per-week"] //= 10
    return table.to_numpy()


def adult(path, seed=1):
    """Noisy counts of all pairs of these columns, with noise of 50 a cell."""
    people, rng = people_of(path), np.random.default_rng(seed)
    sizes, released = tuple(int(k) + 1 for k in people.max(axis=0)), []
    for j, k in combinations(range(len(sizes)), 2):
        counts = np.zeros((sizes[j], sizes[k]))
        np.add.at(counts, (people[:, j], people[:, k]), 1)
        released.append(counts + rng.normal(0, SIGMA, counts.shape))
    return Problem(len(people), sizes, tuple(released))


def loss(logits, problem, classes, weight):
    """Half the squared errors of cells in units of noise, less the log prior, and its gradient."""
    p, *tables = problem.split(logits, classes)
    every = np.concatenate(tables, axis=1)
    ends = np.cumsum((0, *problem.sizes))
    at = [slice(*each) for each in pairwise(ends)]
    expected = problem.n * (every * p[:, None]).T @ every
    slope, value = np.zeros_like(expected), 0.0
    for (j, k), cells in zip(problem.pairs, problem.released, strict=True):
        error = cells - expected[at[j], at[k]]
        value += (error**2).sum() / (2 * problem.sigma**2)
        slope[at[j], at[k]] = -error / problem.sigma**2
    slope = problem.n * (slope + slope.T)
    of_tables = p[:, None] * (every @ slope)
    of_p = 0.5 * np.einsum("ka,ab,kb->k", every, slope, every)
    gradient, parts = [], [of_p, *(of_tables[:, a] for a in at)]
    priors = [np.ones(classes), *problem.weights]
    for x, by, prior in zip((p, *tables), parts, priors, strict=True):
        value -= weight * (prior * np.log(x)).sum()
        gradient.append(x * (by - (x * by).sum(axis=-1, keepdims=True)))
        gradient[-1] -= weight * (prior - prior.sum() * x)
    return value, np.concatenate([x.ravel() for x in gradient])


def fit(problem, seed, classes=CLASSES):
    """Logits of classes that fit the tables best, from a random start."""
    rng, logits = np.random.default_rng(seed), [np.zeros(classes)]
    for c, size in enumerate(problem.sizes):
        margin = np.zeros(size)
        for (j, k), cells in zip(problem.pairs, problem.released, strict=True):
            if c in (j, k):
                margin += cells.sum(axis=1 if c == j else 0)
        start = np.log(np.maximum(margin, problem.sigma))
        logits.append((start + rng.normal(size=(classes, size))).ravel())
    logits = np.concatenate(logits)
    for weight in (0.3, 1.0):  # at first, classes are kept that the whole prior would empty
        given, options = (problem, classes, weight), {"maxiter": ITERATIONS, "maxcor": 20}
        logits = minimize(loss, logits, args=given, jac=True, method="L-BFGS-B", options=options).x
    return logits


def within(tables, first, second):
    """Probability of a class's person to be in a cell of one table and in one of another."""
    operands, letters = [], {}
    for place, column in enumerate((*first, *second)):
        letters.setdefault(column, []).append(place + 1)
    for column, places in letters.items():
        table = tables[column]
        if len(places) == 2:  # both tables see the column: its category is the same in both
            table = table[:, :, None] * np.eye(table.shape[1])
        operands += [table, [0, *places]]
    joint = np.einsum(*operands, [0, 1, 2, 3, 4], optimize=True)
    return joint.reshape(len(joint), np.prod(joint.shape[1:3]), -1)


def moments(problem, p, tables):
    """Means of cells by class, and mean and covariance of all of them, with the noise."""
    by_class = [
        (tables[j][:, :, None] * tables[k][:, None, :]).reshape(len(p), -1)
        for j, k in problem.pairs
    ]
    starts = np.cumsum([0, *(x.shape[1] for x in by_class)])
    at = [slice(*each) for each in pairwise(starts)]
    by_class = np.concatenate(by_class, axis=1)
    mean = p @ by_class
    covariance = np.empty((len(mean), len(mean)))
    for (one, first), (two, second) in combinations(enumerate(problem.pairs), 2):
        both = np.tensordot(p, within(tables, first, second), axes=1)
        covariance[at[one], at[two]], covariance[at[two], at[one]] = both, both.T
    for a in at:
        covariance[a, a] = np.diag(mean[a])  # a person is in one cell of a table
    covariance = problem.n * (covariance - np.outer(mean, mean))
    covariance[np.diag_indices(len(mean))] += problem.sigma**2
    return by_class, problem.n * mean, covariance


def slopes(problem, p, tables, by_class):
    """Derivatives of the cells' means by all logits."""
    parts = [problem.n * (p[:, None] * (by_class - p @ by_class)).T]
    weighted = problem.n * (p[:, None] * by_class).T[:, :, None]
    for c, table in enumerate(tables):
        own, part = np.eye(problem.sizes[c])[:, None] - table, []
        for j, k in problem.pairs:
            if c == j:
                part.append(np.repeat(own, problem.sizes[k], axis=0))
            elif c == k:
                part.append(np.tile(own, (problem.sizes[j], 1, 1)))
            else:
                part.append(np.zeros((problem.sizes[j] * problem.sizes[k], *table.shape)))
        parts.append((np.concatenate(part) * weighted).reshape(len(weighted), -1))
    return np.concatenate(parts, axis=1)


def log_marginal(problem, logits, classes=CLASSES):
    """Laplace's approximation to the log probability of the tables, near one mode.

    Up to a constant that is the same for all modes.
    """
    p, *tables = problem.split(logits, classes)
    by_class, mean, covariance = moments(problem, p, tables)
    lower = np.linalg.cholesky(covariance)
    released = np.concatenate([x.ravel() for x in problem.released])
    error = solve_triangular(lower, released - mean, lower=True)
    value = -0.5 * error @ error - np.log(np.diag(lower)).sum()
    weighted = solve_triangular(lower, slopes(problem, p, tables, by_class), lower=True)
    information, start = weighted.T @ weighted, 0
    rows = [(p, np.ones(classes))]
    rows += [(x, w) for table, w in zip(tables, problem.weights, strict=True) for x in table]
    for row, prior in rows:
        size = len(row)
        here = slice(start, start + size)
        # The last part is along the logits' common level, which nothing depends on.
        information[here, here] += prior.sum() * (np.diag(row) - np.outer(row, row)) + 1 / size
        value, start = value + (prior * np.log(row)).sum(), start + size
    return value - 0.5 * np.linalg.slogdet(information)[1]


@njit
def share_out(people, of_second, weights):
    """Log probability that people put into two classes in turn end where they are.

    Prior weights have a row for each column, and zeros after its categories.
    """
    counts, total, found = np.stack((weights, weights)), np.zeros(2), 0.0
    whole = weights.sum(axis=1)
    for i in range(len(people)):
        if i > 1:  # the first two are one of each class
            log_odds = np.log((total[1] + 1) / (total[0] + 1))
            for j in range(len(weights)):
                log_odds += np.log(counts[1, j, people[i, j]] / (total[1] + whole[j]))
                log_odds -= np.log(counts[0, j, people[i, j]] / (total[0] + whole[j]))
            found -= np.log1p(np.exp(-log_odds if of_second[i] else log_odds))
        total[of_second[i]] += 1
        for j in range(len(weights)):
            counts[of_second[i], j, people[i, j]] += 1
    return found


def log_classes(people, weights):
    """Log probability of a class's people, its probabilities marginalised, and its weight's."""
    found = gammaln(len(people) + 1)
    for column, prior in zip(people.T, weights, strict=True):
        counts = np.bincount(column, minlength=len(prior))
        found += (gammaln(counts + prior) - gammaln(prior)).sum()
        found += gammaln(prior.sum()) - gammaln(len(people) + prior.sum())
    return found


def joined(problem, logits, rng, least=100, classes=CLASSES):
    """Log acceptance of joining two classes of people drawn by a fit: the best pair, and sizes."""
    p, *tables = problem.split(logits, classes)
    of = rng.choice(classes, problem.n, p=p)
    people = np.stack(
        [
            (rng.random((problem.n, 1)) > np.cumsum(x, axis=1)[of][:, :-1]).sum(axis=1)
            for x in tables
        ],
        axis=1,
    )
    padded = np.zeros((len(problem.sizes), max(problem.sizes)))
    for row, prior in zip(padded, problem.weights, strict=True):
        row[: len(prior)] = prior
    groups = [rng.permutation(people[of == k]) for k in range(classes) if (of == k).sum() >= least]
    found = []
    for one, two in combinations(groups, 2):
        both = np.concatenate([one, two])
        gain = log_classes(both, problem.weights)
        gain -= log_classes(one, problem.weights) + log_classes(two, problem.weights)
        of_second = np.repeat([0, 1], [len(one), len(two)])
        rest = rng.permutation(np.delete(np.arange(len(both)), [0, len(one)]))
        order = np.concatenate([[0, len(one)], rest])
        back = share_out(both[order], of_second[order], padded)
        found.append((gain + back, len(one), len(two)))
    return max(found)


def by_nuts(problem, chains, classes=CLASSES, tune=TUNE, draws=DRAWS):
    """Draws of all cells' probabilities, people marginalised; shape (chains, draws, cells)."""
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(classes))
        tables = [
            pm.Dirichlet(f"table{c}", np.tile(prior, (classes, 1)))
            for c, prior in enumerate(problem.weights)
        ]
        pairs = [pt.dot((tables[j] * p[:, None]).T, tables[k]) for j, k in problem.pairs]
        cells = problem.n * pt.concatenate([x.ravel() for x in pairs])
        spread = pt.sqrt(problem.sigma**2 + cells)  # each count is nearly a Poisson one
        released = np.concatenate([x.ravel() for x in problem.released])
        pm.Normal("released", cells, spread, observed=released)
    names, found = [x.name for x in model.free_RVs], []
    for seed in range(chains):
        fitted = [np.maximum(x, 1e-6) for x in problem.split(fit(problem, seed, classes), classes)]
        start = {x: t / t.sum(axis=-1, keepdims=True) for x, t in zip(names, fitted, strict=True)}
        options = {"random_seed": seed, "progressbar": False, "compute_convergence_checks": False}
        idata = pm.sample(draws, tune=tune, chains=1, model=model, initvals=start, **options)
        p, *tables = (idata.posterior[x].values[0] for x in names)
        pairs = [np.einsum("dk,dka,dkb->dab", p, tables[j], tables[k]) for j, k in problem.pairs]
        found.append(np.concatenate([x.reshape(draws, -1) for x in pairs], axis=1))
    return np.array(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--fits", type=int, default=8)
    parser.add_argument("--classes", type=int, default=CLASSES)
    parser.add_argument("--nuts", type=int, metavar="CHAINS")
    given = parser.parse_args()
    problem = adult(given.path)
    if given.nuts:
        began, cells = process_time(), by_nuts(problem, given.nuts, given.classes)
        r_hat = array_stats.rhat(cells, chain_axis=0, draw_axis=1, method="rank")
        each = [min(effective_draws(x[:, None])[0] for x in chain.T) for chain in cells]
        print(
            f"{given.nuts} chains of NUTS, people marginalised: R-hat above 1.1 for "
            f"{100 * (r_hat > 1.1).mean():.0f} of 100 pair probabilities, at most "
            f"{r_hat.max():.1f}; fewest effective draws within a chain "
            f"{', '.join(f'{x:.0f}' for x in each)} ({process_time() - began:.0f} CPU s)"
        )
        return
    best = None
    for seed in range(given.fits):
        began = process_time()
        logits = fit(problem, seed, given.classes)
        p = problem.split(logits, given.classes)[0]
        value = log_marginal(problem, logits, given.classes)
        best = value if best is None else best
        accepted, one, two = joined(
            problem, logits, np.random.default_rng(seed), classes=given.classes
        )
        print(
            f"start {seed}: {(problem.n * p > 50).sum()} classes of 50 people or more, log "
            f"marginal likelihood {value - best:+.0f} to start 0's; classes of {one:,} and "
            f"{two:,} join with log acceptance {accepted:,.0f}, the best of all pairs "
            f"({process_time() - began:.0f} CPU s)"
        )


if __name__ == "__main__":
    main()
