"""Answers at once: how often do 90 % intervals hold the truth?

Thousands of releases are simulated of each kind: cells by themselves, cells that were suppressed,
clamped or rounded, cells that share strength, tables of which the total or noisy margins are known,
sums of clamped values.
True values are drawn given each, by `Release.posterior` and without a model. Intervals of cells,
margins, differences, ratios and ranks are compared with the truth: where that is drawn from the
prior, and at ten fixed truths, for which nobody promises anything.

The script prints both tables. The figure, saved to examples/output/answers.png (another place:
--output PATH), shows the intervals of one release.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from _figures import save
from _markdown import fill_file, table
from matplotlib.figure import Figure

import pymc_dapper as pmd

OUTPUT = Path(__file__).parent / "output" / "answers.png"

NOISE = pmd.LaplaceMechanism(10.0)
PROBABILITY = 0.9
TRUTHS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 400)
"""True counts of one cell of a table; all others are 50."""


class Asked(NamedTuple):
    """The questions asked of each release, and the true answers."""

    answer: Any
    truth: np.ndarray
    chosen: Any = ...
    """Which entries are meant."""


def query(name, truth, mechanism, dims, rng):
    """A simulated release of many tables at once, along a dim `release`."""
    return pmd.Query(name, mechanism.release(truth, rng), mechanism, dims)


def posterior(queries, draws, **options):
    """Draws given all simulated releases: tables along `release` are independent."""
    return pmd.Release(queries).posterior(draws=draws, random_seed=1, **options)


def comparisons(answer, truth, dim):
    """The difference and the ratio of the first two along a dim."""
    (one, other), (a, b) = (answer.isel(**{dim: k}) for k in range(2)), truth.T[:2]
    return {
        "a difference": Asked(one - other, a - b),
        "a ratio": Asked(one / (other + 1), a / (b + 1)),
    }


def of_cells(truth, mechanism, rng, draws, prior):
    """What is asked of cells by themselves."""
    released = query("cases", truth, mechanism, ("release", "cell"), rng)
    cases = posterior([released], draws, prior=prior)
    found = {"a cell": Asked(cases, truth), **comparisons(cases, truth, "cell")}
    hidden = np.ma.getmaskarray(released.values)
    return {**found, "a suppressed cell": Asked(cases, truth, hidden)} if hidden.any() else found


def cells(rng, n, draws, truth=None, mechanism=NOISE):
    """Counts by themselves, drawn from 0, ..., 300 if they aren't given."""
    if truth is not None:
        return of_cells(truth, mechanism, rng, draws, "flat")
    return of_cells(rng.integers(0, 301, (n, 2)), mechanism, rng, draws, range(301))


def suppressed(rng, n, draws, truth=None):
    """Counts that are published if their noisy values are 50 or more."""
    return cells(rng, n, draws, truth, NOISE.published_if(">=", 50))


def clamped(rng, n, draws, truth=None):
    """Counts whose noisy values were clamped at zero."""
    return cells(rng, n, draws, truth, NOISE.clamped(0, None))


def rounded(rng, n, draws, truth=None):
    """Counts whose noisy values were rounded to multiples of 20."""
    return cells(rng, n, draws, truth, NOISE.rounded(20))


def with_total(rng, n, draws, truth=None):
    """Tables of four cells with the known sum 300, all equally likely."""
    if truth is None:
        bars = np.sort([rng.permutation(303)[:3] for _ in range(n)], axis=1)
        truth = np.diff(bars, axis=1, prepend=-1, append=303) - 1
    released = query("cases", truth, NOISE, ("release", "cell"), rng)
    cases = posterior([released], draws, total=xr.DataArray(truth.sum(axis=1), dims="release"))
    ranks = 1 + (truth[:, None, :] > truth[:, :, None]).sum(axis=2)
    return {
        "a cell": Asked(cases, truth),
        **comparisons(cases, truth, "cell"),
        "a rank": Asked(cases.rank("cell"), ranks),
    }


def margins(rng, n, draws, truth=None):
    """Tables of two by three cells, with noisy counts of cells, of rows, and of all."""
    prior = "flat" if truth is not None else range(101)
    if truth is None:
        truth = rng.integers(0, 101, (n, 2, 3))
    dims, rows = ("release", "row", "cell"), truth.sum(axis=2)
    levels = {"cells": (truth, dims), "rows": (rows, dims[:2]), "all": (rows.sum(1), dims[:1])}
    queries = [query(name, value, NOISE, of, rng) for name, (value, of) in levels.items()]
    cases = posterior(queries, draws, margins=True, prior=prior)
    by_row = cases.sum("cell")
    return {
        "a cell": Asked(cases, truth),
        "a margin": Asked(by_row, rows),
        **comparisons(by_row, rows, "row"),
    }


def sums(rng, n, draws, truth=None):
    """Sums of clamped values, which are real numbers from 0 to 500."""
    truth = rng.uniform(0, 500, (n, 2)) if truth is None else truth.astype(float)
    return of_cells(truth, NOISE, rng, draws, (0, 500))


def sharing(rng, n, draws, truth=None):
    """Tables of four cells of which mean and concentration are drawn from the smooth prior."""
    truth = np.array([of_smooth_prior(rng, 4) for _ in range(n)]) if truth is None else truth
    queries = [query("cases", each, NOISE, "cell", rng) for each in truth]
    of_each = [posterior([released], draws, prior="smooth") for released in queries]
    cases = of_each[0].map(lambda _: xr.concat([one.draws for one in of_each], "release"))
    return {"a cell": Asked(cases, truth), **comparisons(cases, truth, "cell")}


def of_smooth_prior(rng, k):
    """Counts of a table, as the prior has them."""
    log_alpha = np.inf
    while not -12 < log_alpha < 23:
        log_alpha = -2 * np.log(abs(rng.standard_cauchy()))
    alpha, mu = np.exp(log_alpha), np.exp(rng.uniform(np.log(0.1), np.log(1e12)))
    return rng.poisson(rng.gamma(alpha, mu / alpha, k))


KINDS = {
    "cells by themselves": cells,
    "cells that share strength": sharing,
    "suppressed below 50": suppressed,
    "clamped at 0": clamped,
    "rounded to 20": rounded,
    "tables with their total": with_total,
    "tables with noisy margins": margins,
    "sums of clamped values": sums,
}
QUESTIONS = ("a cell", "a suppressed cell", "a margin", "a difference", "a ratio", "a rank")


def holds(asked):
    """Whether each interval holds the truth."""
    lower, upper = (end.values for end in asked.answer.interval(PROBABILITY))
    return ((lower <= asked.truth) & (asked.truth <= upper))[asked.chosen]


def holds_evenly(asked):
    """The same, but an end counts by the share of its probability that the interval needs."""
    draws, truth = asked.answer.draws.values, asked.truth[..., None]
    below, at = (draws < truth).mean(axis=-1), (draws == truth).mean(axis=-1)
    least, most = (1 - PROBABILITY) / 2, (1 + PROBABILITY) / 2
    inside = np.minimum(below + at, most) - np.maximum(below, least)
    is_inside = (least <= below) & (below <= most)
    share = np.where(at > 0, np.maximum(inside, 0) / np.maximum(at, 1e-300), is_inside)
    return share[asked.chosen]


def coverage(releases, draws):
    """Shares of intervals that hold a truth drawn from the prior: by kind, by question.

    The second of each counts ends evenly.
    """
    rng = np.random.default_rng(1)
    return {
        name: {
            question: (holds(asked).mean(), holds_evenly(asked).mean())
            for question, asked in kind(rng, releases, draws).items()
        }
        for name, kind in KINDS.items()
    }


def coverage_at(truths, releases, draws):
    """Shares of intervals of a cell that hold it, where its count is always the same: by kind."""
    found = {name: [] for name in KINDS}
    for truth in truths:
        rng = np.random.default_rng(2)
        for name, kind in KINDS.items():
            if kind is sharing:
                continue
            shape = {with_total: (releases, 4), margins: (releases, 2, 3)}.get(kind, (releases, 2))
            given = np.full(shape, 50)
            first = (slice(None), *(0 for _ in shape[1:]))
            given[first] = truth
            found[name].append(holds(kind(rng, releases, draws, given)["a cell"])[first].mean())
    # Each of these tables is drawn by itself: it has all the truths, and as many cells of 50.
    given = np.full((-(-releases // 4), 2 * len(truths)), 50)
    given[:, : len(truths)] = truths
    asked = sharing(np.random.default_rng(2), len(given), draws, given)["a cell"]
    found["cells that share strength"] = holds(asked).mean(axis=0)[: len(truths)].tolist()
    return found


def example():
    """The release of the figure: cases in six districts and two years, small ones suppressed."""
    rng = np.random.default_rng(7)
    truth = np.array([[14, 22], [48, 39], [95, 131], [27, 30], [8, 12], [61, 77]])
    mechanism = pmd.LaplaceMechanism(5.0).published_if(">=", 15)
    coords = {"district": list("ABCDEF"), "year": [2024, 2025]}
    values = mechanism.release(truth, rng)
    return pmd.Release(pmd.Query("cases", values, mechanism, ("district", "year"), coords))


def draw_figure():
    """Intervals of one release: its cells and the changes."""
    cases = example().posterior(random_seed=1)
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    cases.plot(ax=left)
    change = cases.sel(year=2025) - cases.sel(year=2024)
    change.plot(ax=right)
    right.axvline(0, color="#595959", linewidth=0.8)
    right.set_xlabel("cases: 2025 less 2024")
    return figure


def main(releases=2_000, draws=1_000, truths=TRUTHS, output=OUTPUT, page=None):
    """Print both tables, and save the figure."""
    by_prior = coverage(releases, draws)
    cells_of = {
        name: [
            "{:.1f} ({:.1f})".format(*100 * np.array(found[q])) if q in found else ""
            for q in QUESTIONS
        ]
        for name, found in by_prior.items()
    }
    fixed = coverage_at(truths, releases, draws)
    tables = {
        "coverage": table(["", *QUESTIONS], [[name, *row] for name, row in cells_of.items()], 1),
        "coverage at fixed truths": table(
            ["", *map(str, truths)],
            [[name, *(f"{100 * each:.0f}" for each in row)] for name, row in fixed.items()],
            1,
        ),
    }
    print(*tables.values(), sep="\n\n")
    fill_file(page, tables)
    save(draw_figure(), output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=2_000, help="of each kind")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--page", type=Path, help="a page whose tables are filled in")
    arguments = parser.parse_args()
    main(arguments.releases, output=arguments.output, page=arguments.page)
