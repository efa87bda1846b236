"""Models sampled as they come: effective draws, R-hat and divergences of 4 chains by defaults.

    python -m benchmarks.as_they_come                 all of them
    python -m benchmarks.as_they_come random_walk     some
    python -m benchmarks.as_they_come --thin 1        as they were before draws were thinned
    python -m benchmarks.as_they_come --page docs/evidence/measured.md     all, as a table of a page

Eight models from descriptions alone, neighbours of them, and those of `benchmarks.divergent` and
`benchmarks.untuned`.
"""

import argparse
import json
import logging
import warnings
from pathlib import Path
from time import perf_counter, process_time

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dapper as pmd
from benchmarks import untuned
from benchmarks.divergent import DIVERGENT
from benchmarks.nameless import without_names
from benchmarks.neighbours import NEIGHBOURS
from benchmarks.untuned import areas_by_time, noisy
from examples._markdown import fill_file, table


def five_answers(n=400):
    """Five randomised yes-no answers a person."""
    rng = np.random.default_rng(21)
    truth = rng.random((n, 5)) < [0.1, 0.3, 0.5, 0.6, 0.8]
    lies = rng.random((n, 5)) < 0.25
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=5)
        x = pm.Bernoulli("x", p, shape=(n, 5))
        answers = (truth ^ lies).astype(int)
        pmd.RandomizedResponse(0.75, categories=2).observe("answers", x, released=answers)
    return model


def group_means(n=300, groups=8, scale=4.0, bound=5.0):
    """Means of public groups whose spread is unknown, as is that of persons, from noisy sums."""
    rng = np.random.default_rng(22)
    group = rng.integers(groups, size=n)
    values = rng.normal(rng.normal(0, 1, groups)[group], 1).clip(-bound, bound)
    with pm.Model() as model:
        mean, spread = pm.Normal("mean", 0, 2), pm.HalfNormal("spread", 2)
        mu, sigma = pm.Normal("mu", mean, spread, shape=groups), pm.HalfNormal("sigma", 2)
        x = pm.Normal("x", mu[group], sigma, shape=n)
        inside = pt.clip(x, -bound, bound)
        mechanism = pmd.GaussianMechanism(scale)
        sums = pt.stack([inside[group == k].sum() for k in range(groups)])
        released = noisy(np.bincount(group, values, groups), scale, rng)
        mechanism.potential("sums", sums, released=released)
        released = (values**2).sum() + rng.normal(0, 5 * scale)
        pmd.GaussianMechanism(5 * scale).potential("squares", (inside**2).sum(), released=released)
    return model


def mixture(n=500, scale=5.0):
    """Two normal parts with unknown share, means and spreads, from a noisy histogram."""
    rng, edges = np.random.default_rng(23), np.linspace(-5, 5, 17)
    values = np.where(rng.random(n) < 0.35, rng.normal(-2, 0.7, n), rng.normal(1, 1.2, n))
    counts = np.histogram(values.clip(-4.9, 4.9), edges)[0]
    with pm.Model() as model:
        share = pm.Dirichlet("share", np.ones(2))
        mu = pm.Normal("mu", [-1, 1], 2, shape=2)
        sigma = pm.HalfNormal("sigma", 2, shape=2)
        x = pm.NormalMixture("x", share, mu, sigma, shape=n)
        table = pmd.statistics.histogram(x, edges)
        pmd.GaussianMechanism(scale).potential("table", table, released=noisy(counts, scale, rng))
    return model


def ten_coefficients(n=500, k=10, scale=10.0):
    """Ten coefficients of public covariates with a common scale, from noisy cross products."""
    rng = np.random.default_rng(24)
    covariates = rng.normal(size=(n, k))
    y = covariates @ rng.normal(0, 0.5, k) + rng.normal(size=n)
    with pm.Model() as model:
        tau, sigma = pm.HalfNormal("tau", 1), pm.HalfNormal("sigma", 2)
        beta = pm.Normal("beta", 0, tau, shape=k)
        y_ = pm.Normal("y", covariates @ beta, sigma, shape=n)
        products = noisy(covariates.T @ y, scale, rng)
        pmd.GaussianMechanism(scale).potential("products", covariates.T @ y_, released=products)
        squares = (y**2).sum() + rng.normal(0, 3 * scale)
        pmd.GaussianMechanism(3 * scale).potential("squares", (y_**2).sum(), released=squares)
    return model


def three_histograms(n=400, scale=5.0):
    """Trivariate normal values with unknown covariance, from a noisy histogram of each."""
    rng, edges = np.random.default_rng(25), np.linspace(-4, 4, 9)
    values = rng.multivariate_normal([0, 0.5, -0.5], [[1, 0.5, 0], [0.5, 1, 0.3], [0, 0.3, 1]], n)
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1, shape=3)
        deviations = pm.Exponential.dist(1, size=3)
        chol, _, _ = pm.LKJCholeskyCov("chol", n=3, eta=2, sd_dist=deviations)
        x = pm.MvNormal("x", mu, chol=chol, shape=(n, 3))
        mechanism = pmd.GaussianMechanism(scale)
        for k in range(3):
            counts = np.histogram(values[:, k].clip(-3.9, 3.9), edges)[0]
            table = pmd.statistics.histogram(x[:, k], edges)
            mechanism.potential(f"table{k}", table, released=noisy(counts, scale, rng))
    return model


def spline(n=600, k=20, scale=5.0):
    """A curve of 20 hat functions of a public covariate, whose coefficients have a common scale."""
    rng = np.random.default_rng(27)
    at = rng.random(n)
    knots = np.linspace(0, 1, k)
    basis = np.maximum(0, 1 - np.abs(at[:, None] - knots) * (k - 1))
    y = np.sin(6 * at) + rng.normal(0, 0.5, n)
    with pm.Model() as model:
        tau, sigma = pm.HalfNormal("tau", 1), pm.HalfNormal("sigma", 1)
        b = pm.Normal("b", 0, tau, shape=k)
        y_ = pm.Normal("y", basis @ b, sigma, shape=n)
        products = noisy(basis.T @ y, scale, rng)
        pmd.GaussianMechanism(scale).potential("products", basis.T @ y_, released=products)
        squares = (y**2).sum() + rng.normal(0, 3 * scale)
        pmd.GaussianMechanism(3 * scale).potential("squares", (y_**2).sum(), released=squares)
    return model


def random_walk(times=60, scale=5.0, *, by_steps=False):
    """Counts at times whose log rates are a Gaussian random walk, with noise on each count."""
    rng = np.random.default_rng(28)
    counts = rng.poisson(np.exp(3 + 0.1 * rng.normal(size=times).cumsum()))
    with pm.Model() as model:
        spread = pm.HalfNormal("spread", 0.3)
        if by_steps:
            steps = spread * pm.Normal("z", shape=times - 1)
            walk = pm.Normal("start", 3, 1) + pt.concatenate([[0.0], pt.cumsum(steps)])
        else:
            start = pm.Normal.dist(3, 1)
            walk = pm.GaussianRandomWalk("walk", sigma=spread, init_dist=start, shape=times)
        events = pm.Poisson("events", pt.exp(walk), shape=times)
        released = np.rint(noisy(counts, scale, rng)).astype(int)
        pmd.DiscreteGaussianMechanism(scale).potential("privacy", events, released=released)
    return model


def random_walk_by_steps():
    """Write the random walk as the log says: by steps of scale 1."""
    return random_walk(by_steps=True)


def areas_by_steps():
    """Write the areas' autoregressions as the log says: by steps of scale 1."""
    return areas_by_time(by_steps=True)


MODELS = {
    x.__name__: x
    for x in (
        five_answers, group_means, mixture, ten_coefficients,
        three_histograms, random_walk, spline, random_walk_by_steps, areas_by_steps,
    )
}  # fmt: skip


SHOWN = ("effective draws", "R-hat", "divergences", "CPU seconds")
HEADER = ("model", "slowest variable", *SHOWN)


def row(found):
    """A row of the table."""
    return [f"`{found['model']}`", f"`{found['of']}`", *(str(found[key]) for key in SHOWN)]


def judged(name, posterior, **sampling):
    """Fewest effective draws with the variable's name, and the largest R-hat."""
    fewest = {key: float(x.min()) for key, x in az.ess(posterior).data_vars.items()}
    worst = min(fewest, key=fewest.get)
    rhat = max(float(x.max()) for x in az.rhat(posterior).data_vars.values())
    found = {"model": name, "effective draws": round(fewest[worst]), "of": worst}
    return found | {"R-hat": round(rhat, 3)} | sampling


def sampled(name, **options):
    """What was found of a model: of its parameters, and of what nameless classes don't change."""
    own = MODELS | NEIGHBOURS | DIVERGENT
    model = own[name]() if name in own else untuned.build(name)
    began, began_cpu = perf_counter(), process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        idata = pmd.sample(
            model=model, chains=4, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False, **options,
        )  # fmt: skip
    seconds, of_cpu = perf_counter() - began, process_time() - began_cpu
    diverging = idata.sample_stats.get("diverging")
    sampling = {
        "divergences": 0 if diverging is None else int(diverging.sum()),
        "CPU seconds": round(of_cpu, 1),
        "seconds": round(seconds, 1),
    }
    judge = [idata.posterior.to_dataset(), without_names(name, idata.posterior)]
    return [judged(name, posterior, **sampling) for posterior in judge if posterior is not None]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="MODEL")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--no-tables", dest="tabulate", action="store_false")
    parser.add_argument("--thin", type=int)
    given, rows = parser.parse_args(), []
    logging.getLogger("pymc").setLevel(logging.CRITICAL)
    for name in given.names or dict.fromkeys([*MODELS, *NEIGHBOURS, *DIVERGENT, *untuned.UNTUNED]):
        for found in sampled(name, tabulate=given.tabulate, thin=given.thin):
            print(json.dumps(found), flush=True)
            rows.append(row(found))
    fill_file(given.page, {"as they come": table(HEADER, rows, words=2)})


if __name__ == "__main__":
    main()
