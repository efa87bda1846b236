"""Counts on a tree, drawn anew at once, beside CountStep's moves.

Tracts in counties in states, with noise at each level and known rates. All in processor time, one
after the other.

Run it alone on the machine: python -m benchmarks.trees [--page docs/evidence/latent-counts.md]
"""

import argparse
from pathlib import Path
from time import process_time

import numpy as np
import pymc as pm
from arviz_stats.base import array_stats

import pymc_dapper as pmd
from benchmarks._models import example

markdown = example("_markdown")

SHAPES = ((2, 4, 5), (3, 10, 30))
NOISE = (10.0, 60.0)


def noisy(rng, truth, sigma):
    return truth + np.round(rng.normal(0, sigma, np.shape(truth))).astype(int)


def levels(shape, sigma, rate=30.0):
    """Counts of tracts, with noisy releases of all levels and an exact total."""
    rng = np.random.default_rng(0)
    truth = rng.poisson(rate, shape)
    with pm.Model() as model:
        x = pm.Poisson("x", rate, shape=shape)
        tracts, counties, states = x, x.sum(axis=2), x.sum(axis=(1, 2))
        told = ((tracts, truth, sigma), (counties, truth.sum(2), 2.5))
        for k, (statistic, exact, scale) in enumerate((*told, (states, truth.sum((1, 2)), 2.0))):
            mechanism = pmd.DiscreteGaussianMechanism(scale)
            mechanism.potential(f"level{k}", statistic, released=noisy(rng, exact, scale))
        pmd.invariant("all", x.sum(), int(truth.sum()))
    return model


def rate_of(steps, model, names, tune, draws):
    """Milliseconds for a draw; effective draws of the slowest, for a draw and in a second."""
    for step in steps:
        step.setup_chain(np.random.default_rng(1), tune, draws)
    point, kept, began = model.initial_point(), [], 0.0
    for k in range(tune + draws):
        if k == tune:
            for step in steps:
                step.stop_tuning()
            began = process_time()
        for step in steps:
            point, _ = step.step(point)
        if k >= tune:
            kept.append([np.ravel(point[name]) for name in names])
    each = (process_time() - began) / draws
    columns = [np.array([row[k] for row in kept], dtype=float) for k in range(len(names))]
    x = np.concatenate([column[:, :40] for column in columns], axis=1)
    if "x" in names:
        table = columns[names.index("x")].reshape(draws, *point["x"].shape)
        x = np.concatenate([x, table.sum(axis=-1).reshape(draws, -1)], axis=1)
    share = min(
        float(array_stats.ess(column[None], chain_axis=0, draw_axis=1, method="mean"))
        for column in x.T
    )
    return [f"{float(f'{v:.2g}'):g}" for v in (1e3 * each, share / draws, share / draws / each)]


def compare_draws(draws):
    rows = []
    for shape in SHAPES:
        for sigma in NOISE:
            model = levels(shape, sigma)
            for name, tree in (("drawn anew", True), ("moved", False)):
                step = pmd.CountStep([model["x"]], model=model, tree=tree)
                label = f"{np.prod(shape):,} tracts, noise {sigma:g}"
                rows.append([label, name, *rate_of([step], model, ["x"], 300, draws)])
    return markdown.table(["counts", "are", *HEADER], rows, words=2)


HEADER = ["ms per draw", "effective draws per draw", "per second"]


def main(*, draws, page):
    """Measure and print; write what stands there into a page if one is given."""
    tables = {"trees": compare_draws(draws)}
    print("\n\n".join(tables.values()))
    markdown.fill_file(page, tables)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=800, help="of each way")
    parser.add_argument("--page", type=Path, help="page to write the tables into")
    main(**vars(parser.parse_args()))
