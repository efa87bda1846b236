"""Tables of a made-up state, block by block, from all queries of the 2020 redistricting data.

Areas are as many as Wyoming's, or a share of them, and people are drawn from the prior: totals of
blocks as in examples/census_blocks.py, proportions shared by a block group. All queries of persons
but those by group quarters are released, with the noise of 2020's production settings, and the
state's total exactly. Told are seconds of CPU, effective draws and R-hat, and how wide 90 %
intervals are and how many hold the truth, by level and size; beside generalised least squares.

    python -m benchmarks.table_tree --run DIR           two hours of CPU in two threads, to files
    python -m benchmarks.table_tree --tell DIR          what was drawn until now, to the page, too
    python -m benchmarks.table_tree --calibrate 100 --coverage FILE
                                                        many states: is coverage as it should be?
    python -m benchmarks.table_tree --growth            seconds of set-up and of a sweep, by size
    python -m benchmarks.table_tree --group-quarters    what queries by group quarters cost

All but the last take ``--share``: a part of the state.
"""

import argparse
import json
import os
import resource
import warnings
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from time import perf_counter, process_time, sleep

import numpy as np
from scipy import optimize, stats

import pymc_dapper as pmd
from benchmarks._models import example

markdown = example("_markdown")
PAGE = Path(__file__).parents[1] / "docs" / "census.md"
WYOMING = (23, 160, 450, 30_000)
"""Counties, tracts, block groups and about the blocks."""
SETTINGS = Path(__file__).with_name("census_2020_pl94_budget.json")
LEVELS = ("State", "County", "Tract", "Block_Group", "Block")
AXES = {"votingage": 2, "hispanic": 2, "cenrace": 63}
FINEST = "votingage * hispanic * cenrace"
KINDS = [0.97, 0.005, 0.0005, 0.006, 0.0005, 0.014, 0.002, 0.002]
"""People in households, and in kinds of group quarters: the fourth is nursing facilities."""
RESULTS = Path(__file__).with_name("table_tree_results.json")
SIZES = ((0, 1), (1, 10), (10, 100), (100, np.inf))
MEANS = ((0, 0.1), (0.1, 1), *SIZES[1:])
LONGEST = 4_000
"""Draws of each chain, at most."""
MEDIAN = 12.7
"""Of the people of a block that isn't empty: 19 on average for all blocks."""
CONCENTRATION = 3.0
"""Of a group's proportions around those of the nation, in people for each cell, on average."""


def cells(axes):
    """The value of each attribute in each cell."""
    return dict(zip(axes, np.indices(tuple(axes.values())).reshape(len(axes), -1), strict=True))


def classes_of(query, axes=AXES):
    """The class of each cell in a query such as "hispanic * cenrace"."""
    value = cells(axes)
    if query == "hhinstlevels":
        return np.repeat([0, 1, 2], [1, 4, 3])[value["hhgq"]]
    found = np.zeros(np.prod(list(axes.values())), dtype=int)
    for axis, size in axes.items() if query != "total" else ():
        if query == "detailed" or axis in query.split(" * "):
            found = found * size + value[axis]
    return found


def sigmas(settings, axes=AXES):
    """Sigma of each query by level, without those of attributes that are left out."""
    scale = float(Fraction(settings["global_scale"]))
    queries, known = settings["query_share"]["County"], {"total", *axes}
    if "hhgq" in axes:
        known |= {"hhinstlevels", "detailed"}
    names = [x for x in queries if set(x.split(" * ")) <= known]
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


def geography(share, rng, areas=None):
    """Parents and levels of areas, level by level."""
    sizes = [1, *(areas or (max(1, round(share * n)) for n in WYOMING))]
    starts = np.cumsum([0, *sizes])
    parent = np.full(starts[-1], -1)
    for k in range(1, len(sizes)):
        more = rng.choice(sizes[k - 1], sizes[k] - sizes[k - 1])
        parent[starts[k] : starts[k + 1]] = starts[k - 1] + np.sort(
            np.append(np.arange(sizes[k - 1]), more)
        )
    return parent, np.repeat(np.arange(len(sizes)), sizes)


def concentrations(axes=AXES):
    """The Dirichlet prior of cells: few are common."""
    weights = 1 / (1 + np.arange(63.0)) ** 2.5
    p = np.outer([0.25, 0.75], np.outer([0.9, 0.1], weights / weights.sum()).ravel()).ravel()
    p = np.outer(KINDS, p).ravel() if "hhgq" in axes else p
    return CONCENTRATION * 252 * p / p.sum()


def impossible(axes=AXES):
    """Nobody under age lives in a nursing facility."""
    value = cells(axes)
    return (value["hhgq"] == 3) & (value["votingage"] == 0) if "hhgq" in axes else None


def simulate(share, settings, rng, areas=None, axes=AXES):
    """Draw people from the prior, and what is released of them: parents, levels, queries, truth."""
    parent, level = geography(share, rng, areas)
    blocks_example = example("census_blocks")
    blocks_example.MEDIAN = MEDIAN
    log_prior = blocks_example.log_prior()
    blocks = np.flatnonzero(level == 4)
    totals = rng.choice(log_prior.size, blocks.size, p=np.exp(log_prior))
    group, which = np.unique(parent[blocks], return_inverse=True)
    zero = impossible(axes)
    alpha = np.where(False if zero is None else zero, 0.0, concentrations(axes))
    shares = rng.standard_gamma(alpha, (group.size, alpha.size))
    shares /= shares.sum(axis=1, keepdims=True)
    truth = np.zeros((level.size, alpha.size), dtype=np.int64)
    truth[blocks] = rng.multinomial(totals, shares[which])
    for k in range(4, 0, -1):
        np.add.at(truth, parent[level == k], truth[level == k])
    queries = {}
    for name, sigma in sigmas(settings, axes).items():
        of = classes_of(name, axes)
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


def tree_of(parent, queries, log_prior, axes=AXES):
    return pmd.TableTree(
        parent,
        queries,
        prior=log_prior,
        concentration=concentrations(axes),
        impossible=impossible(axes),
    )


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


def wanted(level):
    """The margins that are kept: totals of all areas; tables down to groups; a part at blocks."""
    return {
        "total": ("total", np.arange(level.size)),
        "table": (FINEST, np.flatnonzero(level <= 3)),
        "part": ("votingage * hispanic", np.flatnonzero(level == 4)),
    }


def share_inside(draws, truth):
    """How often intervals from 5 to 95 % hold the truth, if ties are broken at random.

    Of integers many intervals hold more: both ends count. A rank drawn evenly among the places that
    the truth may have between its ties is uniform for a posterior that is right, for truths that
    are drawn from the prior.
    """
    below, up_to = (draws < truth).mean(axis=0), (draws <= truth).mean(axis=0)
    # The rank of the truth among the draws and itself.
    n = len(draws)
    low, high = below * n / (n + 1), (up_to * n + 1) / (n + 1)
    return (np.minimum(high, 0.95) - np.maximum(low, 0.05)).clip(0) / (high - low)


def largest_by_chance(effective):
    """About the largest R-hat of as many counts with so many effective draws each, by chance alone.

    Of four halves of two chains, means of m effective draws each differ by chance: R-hat is about
    1 + (chi2 / 3 - 1) / (2 m), with three degrees of freedom. Returned is the median of the largest
    of independent ones.
    """

    def missing(at):
        """Log-probability that all are below, beyond that of the median."""
        return stats.chi2.logcdf(3 * (1 + (at - 1) * effective / 2), 3).sum() - np.log(0.5)

    return float(optimize.brentq(missing, 1, 2))


def groups_of(summary, draws, truth, level, width):
    """Rows of figures of a margin: by level, of all counts and by size, known or true."""
    inside = share_inside(draws.reshape(-1, *truth.shape), truth)
    low, high = summary.quantiles[..., 0], summary.quantiles[..., 1]
    held = (low <= truth) & (truth <= high)
    rows = []
    for k, label in enumerate(LEVELS):
        here = np.broadcast_to((level == k)[:, None], truth.shape)
        for by, size in (("", truth), ("mean", summary.mean), ("truth", truth)):
            for least, most in SIZES if by else ((0, np.inf),):
                some = here & (size >= least) & (size < most)
                moved = some & ~np.isnan(summary.r_hat)
                if not moved.any():
                    continue
                effective, r_hat = summary.ess[moved], summary.r_hat[moved]
                row = {
                    "level": label,
                    "by": by,
                    "from": least,
                    "counts": int(some.sum()),
                    "moving": int(moved.sum()),
                    "fewest effective": float(effective.min()),
                    "median effective": float(np.median(effective)),
                    "largest R-hat": float(r_hat.max()),
                    "R-hat above 1.02": float((r_hat > 1.02).mean()),
                    "width": float((high - low)[some].mean()),
                    "width of least squares": float(width[some].mean()),
                    "held": float(held[some].mean()),
                    "held, ties at random": float(inside[some].mean()),
                }
                if not by and k < 4:
                    row["largest R-hat by chance"] = largest_by_chance(effective)
                rows.append(row)
    return rows


def figures(made, drawn):
    """Figures of all margins."""
    parent, level, queries, truth, _ = made
    margins = {name: classes_of(of) for name, (of, _) in wanted(level).items()}
    squares = pmd.reference.table_tree_least_squares(parent, queries, margins)
    found = {}
    for name, of in margins.items():
        areas = drawn.areas[name]
        counts = np.zeros((of.max() + 1, areas.size), dtype=np.int64)
        np.add.at(counts, of, truth[areas].T)
        width = 2 * stats.norm.ppf(0.95) * np.asarray(squares[name].sd)[areas]
        summary = drawn.summary(name, (0.05, 0.95))
        found[name] = groups_of(summary, drawn[name], counts.T, level[areas], width)
    return found


def show(found):
    """Print figures."""
    for name, rows in found.items():
        for row in rows:
            label = f"by {row['by']} from {row['from']}" if row["by"] else "all"
            chance = row.get("largest R-hat by chance")
            print(
                f"{name:5} {row['level']:11} {label:17} {row['counts']:7,}, {row['moving']:7,} move"
                f"; ess {row['fewest effective']:5.0f} {row['median effective']:5.0f};"
                f" R-hat {row['largest R-hat']:.3f}{f' ({chance:.3f})' if chance else ''}"
                f" {row['R-hat above 1.02']:.3%};"
                f" width {row['width']:6.1f} {row['width of least squares']:6.1f};"
                f" held {row['held']:.1%} {row['held, ties at random']:.1%}",
                flush=True,
            )


def run(made, options):
    """Draw until the time is over. What is drawn is in the directory."""
    options.run.mkdir(parents=True, exist_ok=True)
    level, begin = made[1], perf_counter()
    tree = tree_of(made[0], made[2], made[4])

    keep = {"keep": wanted(level), "results": options.run, "random_seed": options.seed}
    with ThreadPoolExecutor(2) as chains, ThreadPoolExecutor(1) as beside:
        drawing = beside.submit(
            tree.sample, LONGEST, tune=options.tune, every=20, executor=chains, **keep
        )
        while not drawing.done() and process_time() < options.cpu:
            sleep(0.5)
            if perf_counter() - begin > options.wall:
                break
        usage = resource.getrusage(resource.RUSAGE_SELF)
        spent = {
            "cpu seconds": usage.ru_utime + usage.ru_stime,
            "wall seconds": perf_counter() - begin,
            "peak memory, GiB": usage.ru_maxrss / 2**20,
        }
        (options.run / "spent.json").write_text(json.dumps(spent))
        if not drawing.done():
            os._exit(0)
        drawing.result()


def tell(made, options):
    """Figures of what was drawn, to a file and to the page."""
    tree = tree_of(made[0], made[2], made[4])
    drawn = tree.so_far(options.tell, keep=wanted(made[1]))
    spent = options.tell / "spent.json"
    found = {
        "areas": int(made[1].size),
        "people": int(made[3][0].sum()),
        "draws of each chain": int(drawn["total"].shape[1]),
        "tuning sweeps": options.tune,
        "seed": options.seed,
        "accepted": drawn.accepted,
        "spent": json.loads(spent.read_text()) if spent.is_file() else {},
        "figures": figures(made, drawn),
    }
    show(found["figures"])
    print({name: value for name, value in found.items() if name != "figures"})
    (options.tell / "figures.json").write_text(json.dumps(found, indent=1) + "\n")
    if options.page:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        fill(found)


def fill(found):
    """Fill the page's table."""
    rows = [
        [
            f"{row['level'].replace('_', ' ').lower()}: {says}",
            f"{row['moving']:,}",
            f"{row['fewest effective']:.0f}",
            f"{row['largest R-hat']:.3f}",
            f"{row['R-hat above 1.02']:.2%}",
            f"{row['width']:.1f}",
            f"{row['width of least squares']:.1f}",
            f"{row['held']:.1%}",
            f"{row['held, ties at random']:.1%}",
        ]
        for name, says in (("total", "totals"), ("table", "tables of 252"), ("part", "tables of 4"))
        for row in found["figures"][name]
        if not row["by"]
    ]
    header = ["counts", "that move", "fewest effective draws", "largest R-hat", "above 1.02"]
    header += ["width", "by least squares", "held", "ties at random"]
    markdown.fill_file(PAGE, {"a state of tables": markdown.table(header, rows, words=1)})


def coverage_of(made, drawn, thin):
    """How many counts there are, and how many hold the truth, by margin, level and posterior mean.

    The last is of every ``thin``-th draw: these are nearly independent, and ranks are uniform only
    among draws that are. With all of few draws, ends of intervals are uncertain, and hold less.
    """
    level, truth = made[1], made[3]
    found = {}
    for name, (of, areas) in wanted(level).items():
        counts = np.zeros((classes_of(of).max() + 1, areas.size), dtype=np.int64)
        np.add.at(counts, classes_of(of), truth[areas].T)
        draws = drawn[name]
        every = draws[:, ::thin].reshape(-1, *counts.T.shape)
        draws = draws.reshape(-1, *counts.T.shape)
        low, high = np.quantile(draws, (0.05, 0.95), axis=0, method="inverted_cdf")
        mean = draws.mean(axis=0)
        numbers = (
            (low <= counts.T) & (high >= counts.T),
            share_inside(draws, counts.T),
            share_inside(every, counts.T),
        )
        for k in range(len(LEVELS)):
            here = np.broadcast_to((level[areas] == k)[:, None], mean.shape)
            for least, most in ((0, np.inf), *MEANS):
                some = here & (mean >= least) & (mean < most)
                if some.any():
                    label = f"{name} {LEVELS[k]} {least if most < np.inf or least else 'all'}"
                    found[label] = [int(some.sum()), *(float(x[some].sum()) for x in numbers)]
    return found


def calibrate(options, settings):
    """Coverage over several states drawn from the prior, a line of a file for each."""
    done = [json.loads(line) for line in lines_of(options.coverage)]
    for seed in sorted(set(range(options.calibrate)) - {one["seed"] for one in done}):
        begin = process_time()
        made = simulate(options.share, settings, np.random.default_rng(seed), options.areas)
        tree = tree_of(made[0], made[2], made[4])
        drawn = tree.sample(
            options.draws,
            tune=options.tune,
            chains=options.chains,
            keep=wanted(made[1]),
            random_seed=seed,
        )
        one = {
            "seed": seed,
            "areas": options.areas or options.share,
            "draws": [options.chains, options.tune, options.draws, options.thin],
            "seconds": process_time() - begin,
            "found": coverage_of(made, drawn, options.thin),
        }
        with options.coverage.open("a") as file:
            file.write(json.dumps(one) + "\n")
        done.append(one)
    return pooled(done)


def group_quarters(options, settings):
    """Cost and mixing with and without group quarters: 2,016 cells, of which 126 must be empty."""
    rows = []
    for name, axes in (("without", AXES), ("with", {"hhgq": 8, **AXES})):
        rng = np.random.default_rng(options.seed)
        parent, level, queries, truth, log_prior = simulate(options.share, settings, rng, axes=axes)
        tree = tree_of(parent, queries, log_prior, axes)
        keep = {"total": ("total", np.flatnonzero(level == 4))}
        keep["votingage * hispanic * cenrace"] = (
            classes_of(FINEST, axes),
            np.flatnonzero(level == 2),
        )
        if "hhgq" in axes:
            keep["hhgq"] = (classes_of("hhgq", axes), np.flatnonzero(level == 2))
            keep["detailed"] = (classes_of("detailed", axes), np.flatnonzero(level == 2))
        tree.sample(1, keep=keep, tune=0, chains=1)  # compiles
        begin = process_time()
        tree.sample(1, keep=keep, tune=0, chains=1)
        set_up = process_time() - begin
        drawn = tree.sample(options.draws, tune=options.tune, keep=keep, random_seed=1)
        sweep = (process_time() - begin - 3 * set_up) / (2 * (options.draws + options.tune))
        print(
            f"{name} group quarters: {level.size:,} areas, {truth[0].sum():,} people, "
            f"{truth.shape[1]:,} cells; set-up {set_up:.2f} s, a sweep {sweep:.3f} s; accepted "
            f"{drawn.accepted}"
        )
        for margin in keep:
            found = drawn.summary(margin)
            known = found.ess[~np.isnan(found.ess)] / (2 * options.draws)
            print(
                f"  {margin}: {known.size:,} counts move; effective draws per draw: fewest "
                f"{known.min():.3f}, of one in twenty {np.quantile(known, 0.05):.3f}, median "
                f"{np.median(known):.2f}; largest R-hat {np.nanmax(found.r_hat):.3f}"
            )
        rows.append((name, set_up, sweep))
    return rows


def lines_of(file):
    return file.read_text().splitlines() if file.is_file() else []


def pooled(done):
    """Coverage over states; standard errors are between them, as of a ratio of sums."""
    rows = []
    for label in sorted({label for one in done for label in one["found"]}):
        each = np.array([one["found"][label] for one in done if label in one["found"]])
        n, m = each[:, 0], len(each)
        shares = each[:, 1:].sum(axis=0) / n.sum()
        off = each[:, 1:] - n[:, None] * shares
        errors = np.sqrt((off**2).sum(axis=0) * m / max(m - 1, 1)) / n.sum()
        rows.append([label, m, int(n.sum()), *shares, *errors])
        print(
            f"{label:22} {m:3} states {rows[-1][2]:9,} counts; held {shares[0]:.1%}; ties at random"
            f" {shares[1]:.2%} +- {errors[1]:.2%}, thinned {shares[2]:.2%} +- {errors[2]:.2%}",
            flush=True,
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tune", type=int, default=200)
    parser.add_argument("--settings", type=Path, default=SETTINGS)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--cpu", type=int, default=7200, help="seconds, of all threads")
    parser.add_argument("--wall", type=int, default=4200, help="seconds")
    parser.add_argument("--tell", type=Path)
    parser.add_argument("--page", action="store_true", help="fill the page")
    parser.add_argument("--calibrate", type=int, help="states, with seeds from 0")
    parser.add_argument("--coverage", type=Path, help="its file, a line for each state")
    parser.add_argument("--areas", type=int, nargs=4, help="numbers of areas by level")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--thin", type=int, default=10)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--group-quarters", action="store_true")
    options = parser.parse_args()
    settings = json.loads(options.settings.read_text())
    warnings.filterwarnings("ignore", "release\\(\\) simulates")
    if options.growth:
        growth(settings, [options.share * k for k in (0.03, 0.1, 0.3, 1)])
    elif options.group_quarters:
        group_quarters(options, settings)
    elif options.calibrate:
        calibrate(options, settings)
    else:
        made = simulate(options.share, settings, np.random.default_rng(options.seed))
        print(f"{made[1].size:,} areas, {made[3][0].sum():,} people", flush=True)
        if options.run:
            run(made, options)
        else:
            tell(made, options)


if __name__ == "__main__":
    main()
