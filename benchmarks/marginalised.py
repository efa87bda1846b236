"""MarginalisedStep beside CountStep and NUTS in turn; and what marginalising a table would cost.

The first table: effective draws per second of the slowest parameter of areas with an effect each,
of which noisy counts are known. The second: a Dirichlet above one Multinomial, where CountStep
marginalises the probabilities, beside a single evaluation of the log-density with the table
marginalised by convolution of its cells' weights.

Alone on the machine: python benchmarks/marginalised.py [--page docs/evidence/latent-counts.md]
"""

import argparse
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
import pymc as pm
from _models import example
from arviz_stats.base import array_stats
from counts import fewest, sweep
from scipy import special, stats

import pymc_dapper as pmd
from pymc_dapper.counts.step import CountStep

markdown = example("_markdown")

# Areas -------------------------------------------------------------------------------------------

AREAS = ((200, 2_000, 10.0), (200, 2_000, 100.0))
SURVEY = (5_000, 2_000, 10.0)
WAYS = {"marginalised": {"marginalise": True}, "in turn": {"marginalise": False}}


def areas(n_areas, people, sigma):
    """Noisy counts of areas, with an effect of each."""
    rng = np.random.default_rng(1)
    counts = rng.binomial(people, special.expit(rng.normal(-1, 0.3, n_areas)))
    released = counts + np.round(rng.normal(0, sigma, n_areas)).astype(int)
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 2), pm.HalfNormal("tau", 1)
        effect = pm.Normal("effect", mu, tau, shape=n_areas)
        x = pm.Binomial("x", n=people, p=pm.math.sigmoid(effect))
        pmd.DiscreteGaussianMechanism(sigma=sigma).potential("privacy", x, released=released)
    return model


def rate(model, draws, **options):
    """Milliseconds of processor time per draw, and effective draws per second, of the slowest."""
    steps = pmd.assign_steps(model=model, progressbar=False, **options)
    began = process_time()
    tune = draws
    posterior = pm.sample(
        draws,
        tune=tune,
        chains=1,
        cores=1,
        step=steps,
        model=model,
        random_seed=1,
        progressbar=False,
        compute_convergence_checks=False,
    ).posterior
    each = (process_time() - began) / (tune + draws)
    values = [posterior[name].values.reshape(1, draws, -1) for name in ("mu", "tau", "effect")]
    columns = np.concatenate(values, axis=2)[:, :, :102]
    slowest = min(
        float(array_stats.ess(columns[..., k], chain_axis=0, draw_axis=1, method="bulk"))
        for k in range(columns.shape[2])
    )
    return 1e3 * each, slowest / draws / each


def two_digits(x):
    """A number as a cell, such as 280 or 0.82."""
    return f"{float(f'{x:.2g}'):g}" if x >= 10 else f"{x:#.2g}"


def compare_areas(draws, cases):
    rows = []
    for case in cases:
        n_areas, people, sigma = case
        for name, options in WAYS.items():
            each, per_second = rate(areas(*case), draws, **options)
            label = f"{n_areas:,} areas of {people:,}, noise {sigma:g}"
            rows.append([label, name, *(two_digits(x) for x in (each, per_second))])
    header = ["model", "counts are", "ms per draw", "effective draws per second"]
    return markdown.table(header, rows, words=2)


# One table ---------------------------------------------------------------------------------------


def log_marginalised(p, n, released, sigma):
    """Log-probability of noisy cells given their probabilities, the table marginalised.

    A Multinomial's cells are Poisson counts, given their total: the sum over all tables is an entry
    of a convolution, up to the probability of that total. Noise is cut at nine standard deviations.
    """
    first, last = (np.round(released + sign * 9 * sigma).astype(int) for sign in (-1, 1))
    size = 1 << int(np.ceil(np.log2((last - first + 1).sum())))
    transform, scale = np.ones(size // 2 + 1, dtype=complex), 0.0
    for low, high, s, share in zip(first, last, released, p, strict=True):
        k = np.arange(low, high + 1)
        logs = np.where(k >= 0, stats.poisson.logpmf(k, n * share), -np.inf)
        logs = logs + stats.norm.logpdf(s, k, sigma)
        top = logs.max()
        transform *= np.fft.rfft(np.exp(logs - top), size)
        scale += top
    return scale + np.log(np.fft.irfft(transform)[n - first.sum()]) - stats.poisson.logpmf(n, n)


def check_convolution():
    p, n, released, sigma = np.array([0.2, 0.5, 0.3]), 12, np.array([1.0, 8.0, 2.0]), 1.5
    tables = np.array([x for x in product(range(n + 1), repeat=3) if sum(x) == n])
    logs = stats.multinomial.logpmf(tables, n, p)
    logs = logs + stats.norm.logpdf(released, tables, sigma).sum(axis=1)
    np.testing.assert_allclose(log_marginalised(p, n, released, sigma), special.logsumexp(logs))


def compare_table(draws):
    check_convolution()
    rows = []
    for cells, n, sigma in product((4, 50), (10**6, 330_000_000), (10.0, 1_000.0)):
        rng = np.random.default_rng(2)
        truth = rng.multinomial(n, rng.dirichlet(np.full(cells, 5.0)))
        released = truth + np.round(rng.normal(0, sigma, cells))
        with pm.Model() as model:
            p = pm.Dirichlet("p", np.ones(cells))
            x = pm.Multinomial("x", n=n, p=p)
            pm.Normal("released", x, sigma, observed=released)
            step = CountStep([x], integrate=[p])
        point = {**model.initial_point(), "x": truth}
        began = process_time()
        found = sweep(step, point, ["p_simplex__"], draws, rng)
        each = (process_time() - began) / (draws + 200)
        began = process_time()
        for _ in range(5):
            log_marginalised(truth / n, n, released, sigma)
        once = (process_time() - began) / 5
        shown = [f"{fewest(found):.2f}", f"{1e3 * each:.3f}", f"{1e3 * once:.3f}"]
        rows.append([f"{cells} cells, {n:,} people, noise {sigma:g}", *shown])
    header = ["table", "effective draws per sweep", "ms per sweep", "ms per convolution"]
    return markdown.table(header, rows, words=1)


def main(*, draws, survey, page):
    """Measure and print; write what stands there into a page if one is given."""
    if survey:
        print(compare_areas(draws, [SURVEY]))
        return
    tables = {"marginalised": compare_areas(draws, AREAS), "convolution": compare_table(2_000)}
    print("\n\n".join(tables.values()))
    markdown.fill_file(page, tables)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=600, help="of each way")
    parser.add_argument("--survey", action="store_true", help="ten million people, alone")
    parser.add_argument("--page", type=Path, help="page to write the tables into")
    main(**vars(parser.parse_args()))
