"""How often intervals from many noisy tables cover the truth, beside private-pgm's point estimate.

    python -m benchmarks.microdata_coverage                     200 releases at each of two budgets
    python -m benchmarks.microdata_coverage --replicates 20

People of five columns are simulated, and three tables of them released with Gaussian noise. Each
release is analysed by `pmd.microdata.graphical` and, in an environment of its own, by private-pgm,
whose estimate is then taken for the data. What is covered are the probabilities of all pairs of
columns, and a logistic regression.
"""

import argparse
import logging
from itertools import combinations
from math import prod
from pathlib import Path
from time import process_time

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
from arviz_stats.base import array_stats
from scipy import stats

import pymc_dapper as pmd
from benchmarks import private_pgm
from examples._markdown import fill_file, table
from tests.short_chains import chain

LABELS = {
    "age": ("young", "middle", "old"),
    "school": ("no", "yes"),
    "income": ("low", "high"),
    "sex": ("f", "m"),
    "region": ("north", "south"),
}
COORDS = {column: list(labels) for column, labels in LABELS.items()}
SIZES = {column: len(labels) for column, labels in LABELS.items()}
PAIRS = list(combinations(SIZES, 2))
RELEASED = (("age", "school", "income"), ("income", "sex"), ("age", "region"))
PEOPLE, DELTA, PROB = 8_000, 1e-6, 0.9
EPSILONS = (0.2, 1.0)
TUNE, DRAWS = 500, 500
SETS, SYNTHETIC = 20, 5 * PEOPLE
"""Synthetic sets, and people in each. Of as many people as the confidential ones, estimates of one
quantity in forty differ between 20 sets by less than their own variances, and have no interval."""
COEFFICIENTS = ("intercept", "middle", "old", "school", "male")
COVARIATES = ("age", "school", "sex")


def truth():
    """Probabilities of all cells."""
    age = np.array([0.35, 0.4, 0.25])
    school = np.array([[0.5, 0.5], [0.6, 0.4], [0.75, 0.25]])
    high = 1 / (1 + np.exp(1.2 - np.array([0, 0.5, 0.2])[:, None] - 0.9 * np.arange(2)))
    income = np.stack([1 - high, high], axis=-1)
    sex = np.array([[0.55, 0.45], [0.38, 0.62]])
    region = np.array([[0.6, 0.4], [0.5, 0.5], [0.4, 0.6]])
    return np.einsum("a,as,asi,ix,ar->asixr", age, school, income, sex, region)


def margin(cells, columns):
    """A margin of tables of all columns, whose axes come last."""
    first = cells.ndim - len(SIZES)
    names = list(SIZES)
    others = tuple(first + names.index(x) for x in names if x not in columns)
    kept = [x for x in names if x in columns]
    return np.moveaxis(
        cells.sum(axis=others),
        [first + kept.index(x) for x in columns],
        range(first, first + len(columns)),
    )


def regression(counts, steps=25):
    """Coefficients of income on age, school and sex, and their variances, by maximum likelihood."""
    cells = margin(np.asarray(counts, dtype=float), (*COVARIATES, "income")).reshape(-1, 2)
    age, school, sex = np.indices([SIZES[x] for x in COVARIATES]).reshape(3, -1)
    design = np.column_stack([np.ones(age.size), age == 1, age == 2, school, sex])
    n, beta = cells.sum(axis=1), np.zeros(design.shape[1])
    for _ in range(steps):
        p = 1 / (1 + np.exp(-design @ beta))
        information = design.T @ (design * (n * p * (1 - p))[:, None])
        beta = beta + np.linalg.solve(information, design.T @ (cells[:, 1] - n * p))
    return beta, np.diag(np.linalg.inv(information))


def analysed(counts):
    """What an analyst computes of a table of all columns: estimates and variances, as one."""
    n = counts.sum()
    shares = np.concatenate([margin(counts, pair).ravel() for pair in PAIRS]) / n
    beta, variances = regression(counts)
    return np.r_[shares, beta], np.r_[shares * (1 - shares) / n, variances]


def noise(epsilon):
    """Of the noise of each table: a third of the budget. A change of person changes two counts."""
    log = np.log(1 / DELTA)
    rho = (np.sqrt(log + epsilon) - np.sqrt(log)) ** 2  # zCDP that implies (epsilon, delta)
    part = pmd.ZCDP(rho).split(len(RELEASED))[0]
    return pmd.GaussianMechanism.calibrate(part, sensitivity=np.sqrt(2))


def query(columns, values, mechanism):
    return pmd.Query(
        " * ".join(columns), values, mechanism, columns, {x: LABELS[x] for x in columns}
    )


class Ours:
    """A model that is read and compiled once, and sampled for each release."""

    def __init__(self, of_people, coords=COORDS):
        self.of_people, self.coords = of_people, coords
        self.model = pmd.tabulate(of_people)
        counts = [x for x in self.model.free_RVs if x.name.endswith("_counts")]
        self.steps = pmd.assign_steps(counts=counts, model=self.model)
        self.tables = [x for x in self.model.free_RVs if x.name.startswith("p_")]

    def draws(self, released, rng, draws=DRAWS):
        """Draws of all tables of probabilities, given a release."""
        pm.set_data(
            {f"table_{name}_released": values for name, values in released.items()}, self.model
        )
        start = self.model.initial_point()
        points = list(chain(start, self.steps, rng, tune=TUNE, draws=draws))
        found = {}
        for rv in self.tables:
            value = np.stack([point[self.model.rvs_to_values[rv].name] for point in points])
            logs = np.concatenate([value, -value.sum(axis=-1, keepdims=True)], axis=-1)
            p = np.exp(logs - logs.max(axis=-1, keepdims=True))
            found[rv.name] = p / p.sum(axis=-1, keepdims=True)
        dims = {x.name: list(self.model.named_vars_to_dims[x.name]) for x in self.tables}
        posterior = {name: p[None] for name, p in found.items()}
        return az.from_dict({"posterior": posterior}, dims=dims, coords=self.coords)

    def answers(self, released, rng):
        """Intervals of the posterior, intervals of `combine`, and the fewest effective draws."""
        idata = self.draws(released, rng)
        shares = np.concatenate(
            [pmd.microdata.shares(idata, pair).values[0].reshape(DRAWS, -1) for pair in PAIRS],
            axis=1,
        )
        ess = min(
            float(array_stats.ess(x[None], chain_axis=0, draw_axis=1, method="bulk"))
            for x in shares.T
        )
        sets = pmd.synthetic_data(idata, self.of_people, sets=SETS, n=SYNTHETIC, random_seed=rng)
        combined = pmd.combine(*zip(*(analysed(counted(people)) for people in sets), strict=True))
        tails = np.quantile(shares, [(1 - PROB) / 2, (1 + PROB) / 2], axis=0)
        return tails.T, combined.interval(PROB), ess


def counted(people):
    """The table of all columns of a data frame."""
    codes = [pd.Categorical(people[x], LABELS[x]).codes for x in SIZES]
    shape = tuple(SIZES.values())
    flat = np.ravel_multi_index(codes, shape)
    return np.bincount(flat, minlength=prod(shape)).reshape(shape).astype(float)


def naive(cells):
    """Intervals from an estimated table, as if it were of the people."""
    estimate, variance = analysed(PEOPLE * cells)
    off = stats.norm.ppf((1 + PROB) / 2) * np.sqrt(variance)
    return np.stack([estimate - off, estimate + off], axis=-1)


def simulated(rng, replicates, mechanism):
    """Releases of people drawn anew, by the names of the tables."""
    shape, p = tuple(SIZES.values()), truth()
    people = rng.multinomial(PEOPLE, p.ravel(), size=replicates).reshape(-1, *shape)
    return {
        " * ".join(x): (table := margin(people, x)) + rng.normal(0, mechanism.sigma, table.shape)
        for x in RELEASED
    }


def study(epsilon, replicates, seed=1):
    """Intervals by each analysis, shape (replicates, quantities, 2), and what they took."""
    rng, mechanism = np.random.default_rng(seed), noise(epsilon)
    released = simulated(rng, replicates, mechanism)
    first = {name: values[0] for name, values in released.items()}
    given = pmd.Release([query(x, first[" * ".join(x)], mechanism) for x in RELEASED])
    ours = Ours(pmd.microdata.graphical(given, n=PEOPLE))
    began = process_time()
    found = [
        ours.answers({name: values[k] for name, values in released.items()}, rng)
        for k in range(replicates)
    ]
    seconds = (process_time() - began) / replicates
    posterior, combined, ess = map(np.array, zip(*found, strict=True))
    sigmas = dict.fromkeys(released, float(mechanism.sigma))
    of_pgm = private_pgm.estimates(SIZES, released, sigmas, [list(SIZES)], PEOPLE)
    taken_as_data = np.array([naive(cells) for cells in of_pgm[" * ".join(SIZES)]])
    intervals = {"posterior": posterior, "combine": combined, "private-pgm": taken_as_data}
    return intervals, ess, seconds, float(of_pgm["seconds"][1:].mean())


def coverage(intervals):
    """The share of replicates whose intervals hold the truth, for each quantity."""
    true = analysed(PEOPLE * truth())[0][: intervals.shape[1]]
    return ((intervals[..., 0] <= true) & (true <= intervals[..., 1])).mean(axis=0)


def percent(x):
    return f"{100 * x:.1f}"


def rows(epsilon, intervals):
    """Coverage of all pairs together, of the worst cell and of each coefficient; mean widths."""
    pairs = sum(SIZES[a] * SIZES[b] for a, b in PAIRS)
    found = []
    for name, given in intervals.items():
        held = coverage(given)
        width = (given[..., 1] - given[..., 0]).mean(axis=0)
        of_pairs, of_beta = held[:pairs], held[pairs:]
        found.append(
            [
                f"{epsilon:g}",
                name,
                percent(of_pairs.mean()),
                f"{percent(of_pairs.min())} to {percent(of_pairs.max())}",
                percent(width[:pairs].mean()),
                *(percent(x) for x in (of_beta if of_beta.size else [])),
                *([""] * (len(COEFFICIENTS) - of_beta.size)),
                f"{width[pairs + 3]:.2f}" if of_beta.size else "",
            ]
        )
    return found


HEADER = (
    "ε", "intervals", "pairs", "worst and best cell", "width (points)", *COEFFICIENTS,
    "width (school)",
)  # fmt: skip


def main(replicates=200, epsilons=EPSILONS, page=None):
    logging.getLogger("pymc").setLevel(logging.ERROR)  # a line for each data set
    lines = []
    for epsilon in epsilons:
        intervals, ess, seconds, of_pgm = study(epsilon, replicates)
        lines += rows(epsilon, intervals)
        print(
            f"epsilon {epsilon:g}: {ess.min():.0f} effective draws or more of {DRAWS} (median "
            f"{np.median(ess):.0f}), {seconds:.1f} CPU seconds a release; private-pgm {of_pgm:.2f}",
            flush=True,
        )
    text = table(HEADER, lines, words=2)
    print(text)
    fill_file(page, {"coverage of microdata": text})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--epsilon", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    main(given.replicates, given.epsilon, given.page)
