"""Every block of a synthetic state: exact intervals from noisy counts at four levels.

A state has counties, these have tracts, tracts have block groups, and block groups have blocks. How
many people live in each is released with discrete Gaussian noise, whose scale at each level is that
of the query for total populations in the 2020 redistricting data (P.L. 94-171); the state's total
is published exactly. Many blocks are empty, and some are large.

CountTree says what all of these releases together tell about each area, exactly and without a
chain. Beside it are the noisy count alone, generalised least squares of all releases, which takes
counts for any numbers, and CountTree without what was released above tracts.

The script prints widths and coverage of 95 % intervals, and saves a figure to
examples/output/census_blocks.png (another place: --output PATH).
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _figures import COLOURS, OTHERS, save
from _markdown import fill_file, table
from matplotlib.figure import Figure
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.reference import tree_least_squares

OUTPUT = Path(__file__).parent / "output" / "census_blocks.png"
LEVELS = ("state", "county", "tract", "block group", "block")
# The Census Bureau's published production settings of 2020: the global scale, and which shares of
# the budget the levels have, and the query for totals at each.
GLOBAL_SCALE = 339 / 542
SHARES = {
    "county": 447 / 4099 * 3126 / 4097,
    "tract": 687 / 4099 * 1567 / 4102,
    "block group": 1256 / 4099 * 1705 / 4099,
    "block": 165 / 4099 * 5 / 4097,
}
SIGMA = {"state": 0.0, **{level: GLOBAL_SCALE / share**0.5 for level, share in SHARES.items()}}
# How many areas one of the level above has, on average.
SPLITS = {"county": 62, "tract": 27, "block group": 2.85, "block": 34}
EMPTY, MEDIAN, SPREAD, LARGEST = 0.35, 25, 1.3, 20_000


def log_prior():
    """Log-probabilities of a block's population: many are empty, others log-normal."""
    ends = np.arange(LARGEST + 2) + 0.5
    p = np.diff(stats.lognorm.cdf(ends - 1, SPREAD, scale=MEDIAN).clip(0))
    p *= (1 - EMPTY) / p.sum()
    p[0] += EMPTY
    return np.log(p)


@dataclass(frozen=True)
class Census:
    """What is public, and the truth. Nodes come level by level, from states to blocks."""

    parent: np.ndarray
    released: np.ndarray
    sigma: np.ndarray
    level: np.ndarray
    truth: np.ndarray


def replicate(blocks, rng, splits=SPLITS):
    """Draw about so many blocks with the levels above them, and their release."""
    sizes = [blocks]
    for split in list(splits.values())[::-1]:
        sizes.insert(0, max(1, round(sizes[0] / split)))
    starts = np.cumsum([0, *sizes])
    parent = np.full(starts[-1], -1)
    for k in range(1, len(sizes)):
        # Each area has one part at least; the others lie anywhere, more of them in some areas.
        above, n = sizes[k - 1], sizes[k]
        weights = rng.gamma(2.0, size=above)
        more = rng.choice(above, n - above, p=weights / weights.sum())
        parent[starts[k] : starts[k + 1]] = starts[k - 1] + np.sort(
            np.append(np.arange(above), more)
        )
    level = np.repeat(np.arange(len(sizes)), sizes)
    truth = np.zeros(starts[-1], dtype=np.int64)
    truth[level == 4] = rng.choice(LARGEST + 1, blocks, p=np.exp(log_prior()))
    for k in range(len(sizes) - 1, 0, -1):
        np.add.at(truth, parent[level == k], truth[level == k])
    sigma = np.array(list(SIGMA.values()))[level]
    released = truth.astype(float)
    for k, name in enumerate(LEVELS[1:], start=1):
        mechanism = pmd.DiscreteGaussianMechanism(SIGMA[name])
        released[level == k] = mechanism.release(truth[level == k], random_seed=rng)
    return Census(parent, released, sigma, level, truth)


def by_tree(census, above=True):
    """95 % intervals from all releases; or without those above tracts."""
    parent = census.parent.copy()
    released = census.released.copy()
    if not above:
        parent[census.level == LEVELS.index("tract")] = -1
        kept = census.level >= LEVELS.index("tract")
        parent = np.where(parent >= 0, parent - (~kept).sum(), -1)[kept]
        tree = pmd.CountTree(parent, released[kept], census.sigma[kept], prior=log_prior())
    else:
        kept = np.ones(len(parent), dtype=bool)
        tree = pmd.CountTree(parent, released, census.sigma, prior=log_prior())
    bounds = np.full((2, len(kept)), np.nan)
    bounds[:, kept] = tree.marginals((0.025, 0.975)).quantiles.T
    return bounds


def intervals(census):
    """95 % intervals by four analyses."""
    half = stats.norm.ppf(0.975)
    squares = tree_least_squares(census.parent, census.released, census.sigma)
    return {
        "noisy count alone": census.released + half * census.sigma * np.array([[-1], [1]]),
        "least squares": squares.estimate + half * squares.sd * np.array([[-1], [1]]),
        "tree, tracts and below": by_tree(census, above=False),
        "tree": by_tree(census),
    }


def draw(widths):
    """Mean widths of intervals, by level and analysis."""
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    colours = (COLOURS["naive"], OTHERS[0], OTHERS[1], COLOURS["private"])
    shown = LEVELS[1:]
    for k, ((name, of_level), colour) in enumerate(zip(widths.items(), colours, strict=True)):
        place = np.arange(len(shown)) + (k - 1.5) * 0.12
        axes.plot(place, [of_level[level] for level in shown], "o", color=colour, label=name)
    axes.set_yscale("log")
    axes.set_ylim(4, 500)
    axes.set_xticks(np.arange(len(shown)), shown)
    axes.set_ylabel("people")
    axes.set_title("Mean widths of 95 % intervals of populations", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    return figure


def main(blocks=6_000, output=OUTPUT, page=None):
    """Simulate, solve, print the table, save the figure; write the table into a page if given."""
    census = replicate(blocks, np.random.default_rng(1))
    found = intervals(census)
    rows, widths = [], {}
    for name, (low, high) in found.items():
        inside = (low <= census.truth) & (census.truth <= high)
        of = {level: census.level == k for k, level in enumerate(LEVELS) if k}
        widths[name] = {level: float(np.mean((high - low)[at])) for level, at in of.items()}
        told = {level: at for level, at in of.items() if np.isfinite(widths[name][level])}
        cells = [
            f"{widths[name][level]:.1f}, {100 * inside[at].mean():.1f} %" if level in told else ""
            for level, at in of.items()
        ]
        rows.append([name, *cells])
    printed = table(["analysis", *LEVELS[1:]], rows)
    print(f"{blocks} blocks, {census.truth[0]:,} people in the first state\n")
    print(printed)
    fill_file(page, {"census blocks": printed})
    save(draw(widths), Path(output))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to save the figure")
    parser.add_argument("--page", type=Path, help="page to write the table into")
    arguments = parser.parse_args()
    main(output=arguments.output, page=arguments.page)
