"""People with many columns, as linked tables of counts and one by one, in one run.

    python -m benchmarks.clique_tables ../shared/data/adult.csv.gz

Released are noisy counts of pairs of ten columns of the Adult data: those of a tree (as MST takes
them), and three more, so that triples are counted. `pmd.microdata.graphical` is sampled as linked
tables (`pmd.sample`'s choice), and with `tabulate=False`. Printed are effective draws of the
probabilities of all released cells, and CPU seconds, with compiling and tuning.
"""

import argparse
from time import process_time

import numpy as np
from arviz_stats.base import array_stats

import pymc_dapper as pmd
from benchmarks.class_modes import adult
from benchmarks.microdata_peers import release, strengths, tree

TRIANGLES = (0, 5), (3, 7), (4, 5)
"""Pairs beside the tree's: each closes a circle of three columns."""


def shares(problem, pairs, *, tabulate, tune=700, draws=1_000, chains=2):
    """Draws of the probabilities of released cells, and CPU seconds."""
    began, tables = process_time(), dict(zip(problem.pairs, problem.released, strict=True))
    given = release(problem.sizes, {at: tables[at] for at in pairs}, problem.sigma)
    options = {"chains": chains, "cores": 1, "random_seed": 1, "progressbar": False}
    with pmd.microdata.graphical(given, n=problem.n):
        drawn = pmd.sample(draws, tune=tune, tabulate=tabulate, **options)
    of_pairs = [pmd.microdata.shares(drawn, [str(c) for c in at]).to_numpy() for at in pairs]
    found = [x.reshape(chains, draws, -1) for x in of_pairs]
    return np.concatenate(found, axis=2), process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", help="the Adult data")
    problem = adult(parser.parse_args().path)
    of_tree = tree(strengths(problem), len(problem.sizes))
    for name, pairs in (("tree", of_tree), ("tree and triples", [*of_tree, *TRIANGLES])):
        for way, tabulate in (("linked tables", True), ("people", False)):
            drawn, seconds = shares(problem, pairs, tabulate=tabulate)
            worth = array_stats.ess(drawn, chain_axis=0, draw_axis=1)
            worst, low, median = np.quantile(worth, [0, 0.05, 0.5])
            print(
                f"{name}, {way}: {seconds:.0f} CPU seconds, effective draws of {worth.size} cells: "
                f"worst {worst:.0f}, one in twenty {low:.0f}, median {median:.0f}; a second: "
                f"{worst / seconds:.2g}, {low / seconds:.2g}, {median / seconds:.2g}",
                flush=True,
            )


if __name__ == "__main__":
    main()
