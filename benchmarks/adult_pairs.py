"""Effective draws of all pair probabilities of ten columns of the Adult data, by regressions.

    python -m benchmarks.adult_pairs ../shared/data/adult.csv.gz

All 45 pairs were counted, with noise of 50 a cell. Two chains run in two processes. The least of
2,778 estimates of effective draws is mostly the estimator's error. So the cells that look worst in
one chain are judged by the other, by which they weren't chosen.
"""

import argparse
from time import perf_counter

import numpy as np
from arviz_stats.base import array_stats

import pymc_dapper as pmd
from benchmarks.class_modes import adult
from benchmarks.microdata_peers import release
from pymc_dapper.kernels.effective_draws import effective_draws


def sampled(path, draws, tune):
    """Shares of all pairs' cells, (2, draws, cells), and the seconds that sampling took."""
    problem = adult(path)
    tables = dict(zip(problem.pairs, problem.released, strict=True))
    options = {"chains": 2, "cores": 2, "random_seed": 1, "progressbar": False}
    with pmd.microdata.regressions(release(problem.sizes, tables, problem.sigma), n=problem.n):
        idata = pmd.sample(draws, tune=tune, **options)
    shares = [pmd.microdata.shares(idata, list(map(str, at))).values for at in problem.pairs]
    found = np.concatenate([x.reshape(2, draws, -1) for x in shares], axis=2)
    return found, idata["posterior"].attrs["sampling_time"]


def judged_by_the_other(chains, worst=0.01):
    """Effective draws of two chains, of the cells that look worst in one, judged by the other.

    Of the one worst cell, and of the worst hundredth (by their mean autocorrelation time).
    """
    first, second = (effective_draws(x) for x in chains)
    for chosen, other in ((first, second), (second, first)):
        cells = np.argsort(chosen)[: round(worst * len(chosen))]
        yield 2 * other[cells[0]], 2 / np.mean(1 / other[cells])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--draws", type=int, default=6_000)
    parser.add_argument("--tune", type=int, default=500)
    given, began = parser.parse_args(), perf_counter()
    chains, sampling = sampled(given.path, given.draws, given.tune)
    each = array_stats.ess(chains, chain_axis=0, draw_axis=1, method="bulk")
    rhat = array_stats.rhat(chains, chain_axis=0, draw_axis=1)
    print(f"{perf_counter() - began:.0f} s, of which sampling took {sampling:.0f}")
    print(f"effective draws (ArviZ, bulk): {(each >= 100).sum():,} of {each.size:,} cells have 100")
    for share in (0, 0.001, 0.01, 0.5):
        print(f"  quantile {share:g}: {np.quantile(each, share):.0f}")
    print(f"R-hat is at most {rhat.max():.3f}")
    for one, some in judged_by_the_other(chains):
        print(f"worst in one chain, by the other: {one:.0f}; worst hundredth: {some:.0f}")


if __name__ == "__main__":
    main()
