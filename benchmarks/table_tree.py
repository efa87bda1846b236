"""Tables of a made-up state, block by block, from all queries of the 2020 redistricting data.

Areas are as many as Wyoming's, or a share of them, and people are drawn from the prior: totals of
blocks as in examples/census_blocks.py, proportions shared by a block group. All queries of persons
but those by group quarters are released, with the noise of 2020's production settings, and the
state's total exactly. Told are seconds of CPU, effective draws and R-hat, and how wide 90 %
intervals are and how many hold the truth, by level and size; beside generalised least squares.

    python -m benchmarks.table_tree --share 0.02        a fiftieth, for some minutes
    python -m benchmarks.table_tree --growth            seconds of set-up and of a sweep, by size
    python -m benchmarks.table_tree --minutes 60        all, for an hour
"""

import argparse
import json
import resource
from fractions import Fraction
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from scipy import stats

import pymc_dapper as pmd
from benchmarks._models import example

BLOCKS, COUNTIES, TRACTS, GROUPS = 30_000, 23, 160, 450
SETTINGS = Path(__file__).with_name("census_2020_pl94_budget.json")
LEVELS = ("State", "County", "Tract", "Block_Group", "Block")
AXES = {"votingage": 2, "hispanic": 2, "cenrace": 63}
CELLS = np.indices(tuple(AXES.values())).reshape(3, -1)
MEDIAN = 12.7
"""Of the people of a block that isn't empty: 19 on average for all blocks."""
CONCENTRATION = 3.0
"""Of a group's proportions around those of the nation, in people for each cell, on average."""


def classes_of(query):
    """The class of each of the 252 cells in a query such as "hispanic * cenrace"."""
    found = np.zeros(CELLS.shape[1], dtype=int)
    for axis, size in AXES.items() if query != "total" else ():
        if axis in query.split(" * "):
            found = found * size + CELLS[list(AXES).index(axis)]
    return found


def sigmas(settings):
    """Sigma of each query by level, without those of group quarters."""
    scale = float(Fraction(settings["global_scale"]))
    queries = settings["query_share"]["County"]
    names = [x for x in queries if x == "total" or set(x.split(" * ")) <= set(AXES)]
    return {
        name: [
            scale
            / float(
                Fraction(settings["level_share"][level])
                * Fraction(settings["query_share"][level][name])
            )
            ** 0.5
            for level in LEVELS
        ]
        for name in names
    }


def geography(share, rng):
    """Parents and levels of areas, level by level."""
    sizes = [1, *(max(1, round(share * n)) for n in (COUNTIES, TRACTS, GROUPS, BLOCKS))]
    starts = np.cumsum([0, *sizes])
    parent = np.full(starts[-1], -1)
    for k in range(1, len(sizes)):
        more = rng.choice(sizes[k - 1], sizes[k] - sizes[k - 1])
        parent[starts[k] : starts[k + 1]] = starts[k - 1] + np.sort(
            np.append(np.arange(sizes[k - 1]), more)
        )
    return parent, np.repeat(np.arange(len(sizes)), sizes)


def concentrations():
    """The Dirichlet prior of cells: few are common."""
    weights = 1 / (1 + np.arange(63.0)) ** 2.5
    p = np.outer([0.25, 0.75], np.outer([0.9, 0.1], weights / weights.sum()).ravel()).ravel()
    return CONCENTRATION * 252 * p / p.sum()


def simulate(share, settings, rng):
    """Draw people from the prior, and what is released of them: parents, levels, queries, truth."""
    parent, level = geography(share, rng)
    blocks_example = example("census_blocks")
    blocks_example.MEDIAN = MEDIAN
    log_prior = blocks_example.log_prior()
    blocks = np.flatnonzero(level == 4)
    totals = rng.choice(log_prior.size, blocks.size, p=np.exp(log_prior))
    group, which = np.unique(parent[blocks], return_inverse=True)
    shares = rng.dirichlet(concentrations(), group.size)
    truth = np.zeros((level.size, 252), dtype=np.int64)
    truth[blocks] = rng.multinomial(totals, shares[which])
    for k in range(4, 0, -1):
        np.add.at(truth, parent[level == k], truth[level == k])
    queries = {}
    for name, sigma in sigmas(settings).items():
        of = classes_of(name)
        scale = np.array(sigma)[level]
        counts = np.zeros((of.max() + 1, level.size), dtype=np.int64)
        np.add.at(counts, of, truth.T)
        released = np.empty(counts.T.shape)
        for k, one in enumerate(sigma):
            noise = pmd.DiscreteGaussianMechanism(one)
            released[level == k] = noise.release(counts.T[level == k], random_seed=rng)
        if name == "total":
            scale[0], released[0] = 0, counts[:, 0]
        queries[name] = pmd.TableQuery(of, released, scale)
    return parent, level, queries, truth, log_prior


def tree_of(parent, queries, log_prior):
    return pmd.TableTree(parent, queries, prior=log_prior, concentration=concentrations())


def growth(settings, shares):
    """CPU seconds of set-up and of a sweep, by number of areas."""
    rows = []
    for share in (shares[0], *shares):  # the first compiles
        parent, level, queries, truth, log_prior = simulate(
            share, settings, np.random.default_rng(1)
        )
        keep = {"total": ("total", np.flatnonzero(level < 4))}
        costs = []
        for thin in (1, 11):
            begin = process_time()
            tree = tree_of(parent, queries, log_prior)
            tree.sample(1, thin=thin, tune=0, chains=1, keep=keep, random_seed=1)
            costs.append(process_time() - begin)
        set_up, sweep = costs[0], (costs[1] - costs[0]) / 10
        rows.append((level.size, int(truth[0].sum()), set_up, sweep))
        print(f"{level.size:7,} areas, {rows[-1][1]:8,} people: {set_up:.2f} s, {sweep:.3f} s")
    n, _, *costs = np.array(rows[1:]).T
    for name, cost in zip(("set-up", "a sweep"), costs, strict=True):
        print(f"power of {name} in areas: {np.polyfit(np.log(n), np.log(cost), 1)[0]:.2f}")
    return rows


def report(drawn, truth, level, names, squares):
    """Widths and coverage by level, effective draws and R-hat."""
    print("query, level, true counts: how many; width, that of least squares; coverage, and with")
    print("counts at the ends of intervals counted by half; fewest effective draws, largest R-hat")
    for name, of in names.items():
        found, areas = drawn.summary(name, (0.05, 0.95)), drawn.areas[name]
        counts = np.zeros((of.max() + 1, len(areas)), dtype=np.int64)
        np.add.at(counts, of, truth[areas].T)
        counts = counts.T
        low, high = found.quantiles[..., 0], found.quantiles[..., 1]
        inside = (low <= counts) & (counts <= high)
        half = inside - 0.5 * ((counts == low) | (counts == high)) * inside
        for k, label in enumerate(LEVELS):
            here = (level[areas] == k)[:, None]
            for least, most in ((0, 10), (10, 100), (100, 10**9)):
                some = here & (counts >= least) & (counts < most)
                moved = some & np.isfinite(found.r_hat)
                if moved.any():
                    width = squares[name][areas][some].mean()
                    print(
                        f"{name:9} {label:11} from {least:3}: {some.sum():8,}; "
                        f"{(high - low)[some].mean():7.1f} {width:7.1f}; "
                        f"{inside[some].mean():6.1%} {half[some].mean():6.1%}; "
                        f"{found.ess[moved].min():6.0f} {np.median(found.ess[moved]):6.0f} "
                        f"{found.r_hat[moved].max():.3f} {np.median(found.r_hat[moved]):.3f}",
                        flush=True,
                    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--thin", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--settings", type=Path, default=SETTINGS)
    parser.add_argument("--growth", action="store_true")
    options = parser.parse_args()
    settings = json.loads(options.settings.read_text())
    if options.growth:
        growth(settings, [options.share * k for k in (0.03, 0.1, 0.3, 1)])
        return
    rng = np.random.default_rng(options.seed)
    parent, level, queries, truth, log_prior = simulate(options.share, settings, rng)
    print(f"{level.size:,} areas, {truth[0].sum():,} people")
    begin = perf_counter()
    tree = tree_of(parent, queries, log_prior)
    print(f"made in {perf_counter() - begin:.1f} s")
    finest = "votingage * hispanic * cenrace"
    keep = {
        "total": ("total", np.arange(level.size)),
        "table": (finest, np.flatnonzero(level <= 3)),
        "hispanic": ("votingage * hispanic", np.flatnonzero(level == 4)),
    }
    costs = []
    for thin in (1, 2, 12):
        begin = process_time()
        tree.sample(1, tune=0, chains=1, thin=thin, keep=keep, random_seed=1)
        costs.append(process_time() - begin)
    each = (costs[2] - costs[1]) / 10  # the first compiles
    sweeps = max(100, round(60 * options.minutes / 2 / each))
    print(f"a sweep takes {each:.3f} s; two chains of {sweeps:,}, the first fifth for tuning")
    begin = process_time()
    drawn = tree.sample(
        max(1, sweeps * 4 // 5 // options.thin),
        tune=sweeps // 5,
        thin=options.thin,
        keep=keep,
        random_seed=options.seed,
    )
    print(f"sampled in {process_time() - begin:.0f} s; accepted {drawn.accepted}")
    margins = {name: classes_of(of) for name, (of, _) in keep.items()}
    squares = pmd.reference.table_tree_least_squares(parent, queries, margins)
    widths = {name: 2 * stats.norm.ppf(0.95) * found.sd for name, found in squares.items()}
    report(drawn, truth, level, margins, widths)
    print(f"memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
