"""Models of many columns beside NAPSU-MQ (twinify) and private-pgm (mbi), on the same tables.

    python -m benchmarks.microdata_peers --twinify twin/bin/python   twinify's own example
    python -m benchmarks.microdata_peers --adult ../shared/data/adult.csv.gz

`benchmarks/napsu_mq.py` says how that Python is made. Without it NAPSU-MQ is left out. Errors are
total variation distances of tables, in points: half of what the shares of all cells are off by.
"""

import argparse
import logging
from functools import partial
from itertools import combinations
from math import prod
from pathlib import Path
from time import process_time

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

import pymc_dapper as pmd
from benchmarks import napsu_mq, private_pgm
from benchmarks.class_modes import CLASSES, adult, people_of
from benchmarks.microdata_coverage import PROB, Ours, percent
from examples._markdown import fill_file, table
from pymc_dapper.kernels.effective_draws import effective_draws


def name(columns):
    return " * ".join(map(str, columns))


def release(sizes, tables, sigma):
    """Tables by numbers of columns, as a release."""
    noise = pmd.GaussianMechanism(sigma)
    labels = {str(k): tuple(range(size)) for k, size in enumerate(sizes)}
    return pmd.Release(
        [
            pmd.Query(name(at), x, noise, dims := tuple(map(str, at)), {c: labels[c] for c in dims})
            for at, x in tables.items()
        ]
    )


def margin(cells, columns, of):
    """A margin of tables of so many columns, whose axes come last."""
    first = cells.ndim - of
    return cells.sum(axis=tuple(first + k for k in range(of) if k not in columns))


def one_way(sizes, tables, n):
    """Shares of each column's categories: means of all tables' margins, none below 0."""
    found = []
    for c, size in enumerate(sizes):
        total, weight = np.zeros(size), 0.0
        for at, x in tables.items():
            if c in at:  # a margin has the noise of all cells that it adds up
                total += margin(x, (at.index(c),), len(at)) * size / x.size
                weight += size / x.size
        share = np.maximum(total / weight / n, 0)
        found.append(share / share.sum())
    return found


def product_of(shares):
    return prod(np.ix_(*shares))


def off(p, q):
    """The total variation distance of two tables, in points."""
    return 50 * np.abs(p - q).sum()


def held(draws, truth):
    """Which cells' intervals hold the truth."""
    low, high = np.quantile(draws, [(1 - PROB) / 2, (1 + PROB) / 2], axis=0)
    return (low <= truth) & (truth <= high)


# twinify's example: six binary columns ------------------------------------------------------------

PEOPLE, BUDGET = 10_000, pmd.ApproxDP(1.0, 1e-8)
COEFFICIENTS = (1.0, 3.0, -4.0, 2.0, 1.0)
SIZES = (2,) * 6
PAIRS = tuple(combinations(range(6), 2))
CHOSEN = ((0, 1), (0, 5), (2, 5), (3, 5), (4, 5))
"""The pairs that a run of the example takes: three that it demands, two that twinify chooses."""
CASES = ((CHOSEN, 500, 1), (PAIRS, 3_000, 5))
"""Pairs that are released, draws of our chain, and of how many releases one is analysed."""


def truth():
    """Probabilities of all cells: five fair coins, and a sixth column by a logistic regression."""
    x = np.indices(SIZES)
    yes = 1 / (1 + np.exp(-np.tensordot(COEFFICIENTS, x[:5], axes=1)))
    return np.where(x[5] == 1, yes, 1 - yes) / 32


def noise(pairs):
    """Of each table's cells: a change of person changes two of them."""
    sensitivity = np.sqrt(2 * len(pairs))
    return float(pmd.budget.analytic_gaussian_sigma(BUDGET, sensitivity=sensitivity))


def ours(tables, sigma, rng, draws):
    """Draws of all cells' probabilities by `graphical`, and CPU seconds, of each release."""
    coords, found, seconds = {str(k): [0, 1] for k in range(6)}, [], []
    for k in range(len(next(iter(tables.values())))):
        began = process_time()
        given = {at: x[k] for at, x in tables.items()}
        if not found:
            model = Ours(pmd.microdata.graphical(release(SIZES, given, sigma), n=PEOPLE), coords)
        idata = model.draws({name(at): x for at, x in given.items()}, rng, draws)
        found.append(pmd.microdata.shares(idata, [str(c) for c in range(6)]).values[0])
        seconds.append(process_time() - began)
    return found, seconds


def scores(cells, released):
    """Of draws of all cells, or one estimate: the error of 3-way margins, and coverage.

    Coverage is of pairs that were released, of other pairs, and of 3-way margins.
    """
    true, cells = truth(), np.reshape(cells, (-1, *SIZES))
    triples = list(combinations(range(6), 3))
    mean = cells.mean(axis=0)
    found = [np.mean([off(margin(mean, at, 6), margin(true, at, 6)) for at in triples])]
    if len(cells) > 1:
        for tables in (released, [at for at in PAIRS if at not in released], triples):
            each = [held(margin(cells, at, 6), margin(true, at, 6)) for at in tables]
            found.append(np.mean(each) if each else np.nan)
    return found


def six_columns(replicates, twinify=None, seed=1):
    """Of each way: pairs released, scores of each release, and CPU seconds of each."""
    rng, sizes = np.random.default_rng(seed), {str(k): size for k, size in enumerate(SIZES)}
    people = rng.multinomial(PEOPLE, truth().ravel(), size=replicates).reshape(-1, *SIZES)

    def scored(way, pairs, cells, seconds=None):
        return way, len(pairs), np.array([scores(x, pairs) for x in cells]), seconds

    yield scored("the people themselves", (), people / PEOPLE)
    for pairs, draws, of in CASES:
        sigma, some = noise(pairs), people[::of]
        tables = {at: (x := margin(some, at, 6)) + rng.normal(0, sigma, x.shape) for at in pairs}
        each = [{at: x[k] for at, x in tables.items()} for k in range(len(some))]
        alone = [product_of(one_way(SIZES, given, PEOPLE)) for given in each]
        yield scored("columns as if independent", pairs, alone)
        named = {name(at): x for at, x in tables.items()}
        sigmas = dict.fromkeys(named, sigma)
        found = private_pgm.estimates(sizes, named, sigmas, [list(sizes)], PEOPLE)
        yield scored("private-pgm", pairs, found[name(sizes)], found["seconds"])
        cells, seconds = ours(tables, sigma, rng, draws)
        yield scored("`graphical`", pairs, cells, seconds)
        worst = [min(effective_draws(x.reshape(draws, -1))) for x in cells]
        print(f"{len(pairs)} pairs: {min(worst):.0f} effective draws or more", flush=True)
        if twinify and pairs == CHOSEN:
            found = napsu_mq.posteriors(twinify, SIZES, named, sigma, PEOPLE)
            yield scored("NAPSU-MQ", pairs, found["cells"], found["seconds"])


SIX_HEADER = (
    "way", "pairs released", "error of 3-way margins", "coverage: released pairs", "other pairs",
    "3-way margins", "CPU s, first release", "a further one",
)  # fmt: skip


def six_row(way, pairs, scored, seconds):
    """Means over releases, of coverage with its Monte Carlo error."""
    means, spread = scored.mean(axis=0), scored.std(axis=0) / np.sqrt(len(scored))
    covered = [
        "" if np.isnan(x) else f"{percent(x)} ± {percent(e)}"
        for x, e in zip(means[1:], spread[1:], strict=True)
    ]
    times = [""] * 2 if seconds is None else [f"{seconds[0]:.1f}", f"{np.mean(seconds[1:]):.1f}"]
    return [way, str(pairs or ""), f"{means[0]:.2f}", *(covered or [""] * 3), *times]


# Ten columns of the Adult data --------------------------------------------------------------------


def strengths(problem):
    """By how much pairs' tables differ from those of independent columns, but for noise."""
    tables = dict(zip(problem.pairs, problem.released, strict=True))
    alone = one_way(problem.sizes, tables, problem.n)
    return {
        (j, k): np.abs(x - problem.n * np.outer(alone[j], alone[k])).sum()
        - np.sqrt(2 / np.pi) * problem.sigma * x.size
        for (j, k), x in tables.items()
    }


def tree(strength, columns):
    """The pairs of the strongest spanning tree, as MST takes them."""
    weights = np.zeros((columns, columns))
    for at, x in strength.items():
        weights[at] = max(strength.values()) + 1 - x
    return list(zip(*(map(int, x) for x in minimum_spanning_tree(weights).nonzero()), strict=True))


class Counted:
    """Tables of the latent people at every so many draws of `pmd.sample`."""

    def __init__(self, sizes, wanted, thin=5):
        self.sizes, self.thin = sizes, thin
        self.found = {at: [] for at in wanted}

    def __call__(self, trace, draw):
        if draw.tuning or draw.draw_idx % self.thin:
            return
        for at, found in self.found.items():
            shape = [self.sizes[c] for c in at]
            cell = np.ravel_multi_index([draw.point[f"person_{c}"] for c in at], shape)
            found.append(np.bincount(cell, minlength=np.prod(shape)).reshape(shape))


def sampled(model, problem, wanted, chains, tune, draws):
    """Draws of tables of the latent people, and CPU seconds with all that comes before."""
    tables = dict(zip(problem.pairs, problem.released, strict=True))
    given, began = release(problem.sizes, tables, problem.sigma), process_time()
    counted = Counted(problem.sizes, wanted)
    options = {"chains": chains, "cores": 1, "random_seed": 1, "progressbar": False}
    with model(given, n=problem.n):
        pmd.sample(draws, tune=tune, callback=counted, **options)
    return {at: np.array(x) for at, x in counted.found.items()}, process_time() - began


def by_classes(problem, wanted, classes=CLASSES, chains=2, tune=700, draws=1_800):
    """Draws of tables of people of latent classes."""
    model = partial(pmd.microdata.latent_classes, classes=classes)
    return sampled(model, problem, wanted, chains, tune, draws)


def by_regressions(problem, wanted, chains=2, tune=300, draws=1_800):
    """Draws of tables of people by a sequence of regressions."""
    return sampled(pmd.microdata.regressions, problem, wanted, chains, tune, draws)


def by_graphical(problem, wanted, pairs, chains=2, tune=500, draws=1_000):
    """Draws of tables of people, from what is likely given these pairs alone."""
    known = dict(zip(problem.pairs, problem.released, strict=True))
    given = release(problem.sizes, {at: known[at] for at in pairs}, problem.sigma)
    began = process_time()
    with pmd.microdata.graphical(given, n=problem.n):
        idata = pmd.sample(draws, tune=tune, chains=chains, cores=1, random_seed=1)
    found = {}
    for at in wanted:
        shares = pmd.microdata.shares(idata, [str(c) for c in at]).values
        found[at] = problem.n * shares.reshape(-1, *shares.shape[2:])
    return found, process_time() - began


def of_adult(path, triples=40, seed=1, chains=2, **options):
    """Rows of the table: for each way, errors of pairs and of 3-way margins, and coverage."""
    problem, people = adult(path), people_of(path)
    n, sizes, pairs = problem.n, problem.sizes, problem.pairs
    every = list(combinations(range(len(sizes)), 3))
    chosen = np.random.default_rng(seed).choice(len(every), triples, replace=False)
    wanted = [*pairs, *(every[k] for k in sorted(chosen))]
    true = {}
    for at in wanted:
        true[at] = np.zeros([sizes[c] for c in at])
        np.add.at(true[at], tuple(people[:, at].T), 1)
    strength = strengths(problem)
    strongest = sorted(strength, key=strength.get, reverse=True)
    tables = dict(zip(pairs, problem.released, strict=True))
    named, asked = {str(c): k for c, k in enumerate(sizes)}, [[str(c) for c in at] for at in wanted]

    def pgm(which, way=None):
        given = {name(at): tables[at][None] for at in which}
        sigmas = dict.fromkeys(given, problem.sigma)
        found = private_pgm.estimates(named, given, sigmas, asked, n, way=way)
        return {at: n * found[name(at)][0] for at in wanted}, found["used"], found["seconds"][0]

    def row(way, found, used, seconds):
        errors = [
            np.mean([off(found[at] / n, true[at] / n) for at in wanted if len(at) == k])
            for k in (2, 3)
        ]
        shown = "" if seconds is None else f"{seconds:.0f}"
        return [way, str(used), *(f"{x:.1f}" for x in errors), shown]

    rng, alone = np.random.default_rng(seed), one_way(sizes, tables, n)
    noisy = {at: x + rng.normal(0, problem.sigma, x.shape) for at, x in true.items()}
    independent = {at: n * product_of([alone[c] for c in at]) for at in wanted}
    yield row("a table released with this noise", noisy, "", None)
    yield row("columns as if independent", independent, "", None)
    edges = [tuple(sorted(at)) for at in tree(strength, len(sizes))]
    yield row("private-pgm, a tree", *pgm(edges))
    yield row("private-pgm, up to 5 MB", *pgm(strongest, 5))
    yield row("mbi's mixture of 100 products", *pgm(pairs, "mixture"))
    ways = {
        "`graphical`, a tree": (partial(by_graphical, pairs=edges), edges),
        f"`latent_classes`, {CLASSES}": (by_classes, pairs),
        "`regressions`": (by_regressions, pairs),
    }
    for way, (draw, used) in ways.items():
        draws, seconds = draw(problem, wanted, chains=chains, **options)
        means = {at: x.mean(axis=0) for at, x in draws.items()}
        yield row(way, means, len(used), seconds)
        # One chain after the other.
        by_chain = (np.split(draws[at].reshape(len(draws[at]), -1), chains) for at in used)
        each = np.concatenate([sum(map(effective_draws, x)) for x in by_chain])
        worst, median = np.nanmin(each), np.nanmedian(each)
        print(f"{way}: effective draws of a pair's cells: {worst:.0f} or more, median {median:.0f}")
        for k, least in ((2, 0), (2, 100), (3, 0), (3, 100)):
            cells = [held(draws[at], true[at])[true[at] >= least] for at in wanted if len(at) == k]
            cells = np.concatenate(cells)
            share = percent(cells.mean())
            print(f"{way}: {k} columns, cells of {least} or more: {share} of {cells.size:,}")


ADULT_HEADER = ("way", "tables used", "error of pairs", "of 3-way margins", "CPU s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adult", metavar="PATH")
    parser.add_argument("--twinify", metavar="PYTHON")
    parser.add_argument("--replicates", type=int, default=30)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    if given.adult:
        text = table(ADULT_HEADER, list(of_adult(given.adult)), words=1)
        found = {"Adult beside mbi": text}
    else:
        rows = [six_row(*way) for way in six_columns(given.replicates, given.twinify)]
        text = table(SIX_HEADER, rows, words=1)
        found = {"six columns beside twinify": text}
    print(text)
    fill_file(given.page, found)


if __name__ == "__main__":
    main()
