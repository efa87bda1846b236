"""How often intervals by models of people drawn one by one hold the truth.

    python -m benchmarks.people_coverage runs                      all studies, hours
    python -m benchmarks.people_coverage runs --study regressions  one
    python -m benchmarks.people_coverage runs --page docs/evidence/measured.md

`benchmarks.microdata_coverage` has the same of `graphical`. Here all pairs of columns are released.
Either the truth is fixed, or parameters are drawn from the model's prior for each release: then
intervals hold the truth as often as they say, whatever the prior is. Each release is a line of a
file in the folder, so that a study can be stopped and gone on with.
"""

import argparse
import json
import logging
from functools import partial
from itertools import combinations
from math import prod
from pathlib import Path
from time import process_time

import arviz as az
import numpy as np
import pymc as pm
from arviz_stats.base import array_stats

import pymc_dapper as pmd
from benchmarks import microdata_coverage as five
from benchmarks.microdata_coverage import COEFFICIENTS, PAIRS, PROB, SIZES, percent
from examples._markdown import fill_file, table
from pymc_dapper.steps.thinning import ThinnedStep
from tests.short_chains import chain

EPSILON, CLASSES, SETS = 1.0, 3, 20
TUNE, DRAWS = 500, {"regressions": 1_000, "latent_classes": 700}
MODELS = {
    "regressions": pmd.microdata.regressions,
    "latent_classes": partial(pmd.microdata.latent_classes, classes=CLASSES),
}
ROUNDING = 1e-9
FEW = ("age", "school", "income")
"""Columns whose truth is drawn from the prior."""
STUDIES = {
    "regressions": ("regressions", "regressions", 1_500, 200),
    "regressions, prior": ("regressions", "prior", 300, 600),
    "latent_classes": ("latent_classes", "latent_classes", 1_500, 200),
    "latent_classes, prior": ("latent_classes", "prior", 300, 200),
    "latent_classes of regressions": ("latent_classes", "regressions", 1_500, 60),
}
"""The model, the model of the truth, people, and releases."""


def of_classes():
    """Probabilities of all cells: of three classes, in each of which columns are independent."""
    yes = {
        "school": (0.2, 0.5, 0.8),
        "income": (0.15, 0.5, 0.7),
        "sex": (0.4, 0.7, 0.5),
        "region": (0.3, 0.4, 0.7),
    }
    age = [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]
    others = [np.stack([1 - np.array(p), p], axis=-1) for p in yes.values()]
    return np.einsum("k,ka,ks,ki,kx,kr->asixr", [0.5, 0.3, 0.2], age, *others)


TRUTHS = {"regressions": five.truth, "latent_classes": of_classes}


def noise(epsilon, tables):
    """Of each of so many tables: an even part of the budget. A change of person changes two."""
    log = np.log(1 / five.DELTA)
    rho = (np.sqrt(log + epsilon) - np.sqrt(log)) ** 2  # zCDP that implies (epsilon, delta)
    part = pmd.ZCDP(rho).split(tables)[0]
    return pmd.GaussianMechanism.calibrate(part, sensitivity=np.sqrt(2))


def counts(people, pair):
    """Counts of a pair of columns, of people as a dict of columns of category numbers."""
    found = np.zeros([SIZES[x] for x in pair])
    np.add.at(found, tuple(people[x] for x in pair), 1)
    return found


class Study:
    """A model that is read and compiled once, and sampled for each release.

    `latent_classes` centres its prior near the shares of the release that it is written for. Here
    this is one of even tables, or that of ``expected``, for all releases.
    """

    def __init__(self, name, columns, n, expected=None):
        self.n, self.n_draws, self.pairs = n, DRAWS[name], list(combinations(columns, 2))
        self.of_people = name == "regressions"
        self.mechanism = noise(EPSILON, len(self.pairs))
        cells = expected
        if cells is None:
            cells = np.full(tuple(SIZES.values()), 1 / prod(SIZES.values()))
        given = [five.query(x, n * five.margin(cells, x), self.mechanism) for x in self.pairs]
        self.model = MODELS[name](pmd.Release(given), n=n)
        others = [x for x in self.model.unobserved_RVs if not x.name.startswith("person_")]
        self.names = [x.name for x in others]
        self.values_of = self.model.compile_fn(
            self.model.replace_rvs_by_values(others),
            inputs=self.model.value_vars,
            on_unused_input="ignore",
        )
        parameters = [x for x in others if x in self.model.free_RVs]
        judged = [self.model.rvs_to_values[x].name for x in parameters]
        self.step = ThinnedStep(pmd.assign_steps(model=self.model, progressbar=False), judged)

    def draws(self, released, rng):
        """Draws of parameters and shares, given a release."""
        data = {f"table_{' * '.join(x)}_released": values for x, values in released.items()}
        pm.set_data(data, self.model)
        points = chain(self.model.initial_point(), [self.step], rng, tune=TUNE, draws=self.n_draws)
        found = zip(*(self.values_of(point) for point in points), strict=True)
        return self.result({x: np.stack(y) for x, y in zip(self.names, found, strict=True)})

    def result(self, draws):
        dims = {x: list(self.model.named_vars_to_dims[x]) for x in self.names}
        posterior = {x: draws[x][None] for x in self.names}
        coords = {x: list(y) for x, y in self.model.coords.items()}
        return az.from_dict({"posterior": posterior}, dims=dims, coords=coords)

    def shares(self, idata):
        """Probabilities, or shares of the people, of all pairs, shape (draws, cells)."""
        each = [pmd.microdata.shares(idata, pair).values[0] for pair in self.pairs]
        return np.concatenate([x.reshape(len(x), -1) for x in each], axis=1)

    def released(self, people, rng):
        """Noisy counts of all pairs of people."""
        tables = {pair: counts(people, pair) for pair in self.pairs}
        return {x: y + rng.normal(0, self.mechanism.sigma, y.shape) for x, y in tables.items()}

    def replicate(self, people, true, rng, synthetic):
        """Simulate a release of people and analyse it."""
        began = process_time()
        if self.of_people:
            true = np.concatenate([counts(people, x).ravel() for x in self.pairs]) / self.n
        idata = self.draws(self.released(people, rng), rng)
        shares = self.shares(idata)
        ess = [array_stats.ess(x[None], chain_axis=0, draw_axis=1, method="bulk") for x in shares.T]
        tails = np.quantile(shares, [(1 - PROB) / 2, (1 + PROB) / 2], axis=0)
        ties = np.isclose(shares, true)
        below = ((shares < true) & ~ties).mean(axis=0)
        found = {
            "true": true.tolist(),
            "posterior": tails.T.tolist(),
            "rank": (below + rng.random(true.shape) * ties.mean(axis=0)).tolist(),
            "ess": [float(x) for x in ess],
            "thin": self.step.iterations,
        }
        if synthetic:
            sets = pmd.synthetic_data(idata, self.model, sets=SETS, n=5 * self.n, random_seed=rng)
            combined = pmd.combine(
                *zip(*(five.analysed(five.counted(people)) for people in sets), strict=True)
            )
            found["combine"] = combined.interval(PROB).tolist()
        return found | {"seconds": process_time() - began}


def of_cells(cells, n, rng):
    """People of given probabilities of cells."""
    at = np.unravel_index(rng.choice(cells.size, size=n, p=cells.ravel()), cells.shape)
    return dict(zip(SIZES, at, strict=True))


def releases(model, truth, n, replicates, file):
    """Analyse releases, but for those that the file has already."""
    if truth == "prior":
        study = Study(model, FEW, n)
        drawn = [study.model[x] for x in (*study.names, *(f"person_{x}" for x in FEW))]
    else:
        cells = TRUTHS[truth]()
        study = Study(model, tuple(SIZES), n, cells)
        true = np.concatenate([five.margin(cells, x).ravel() for x in PAIRS])
    for k in range(len(read(file)), replicates):
        rng = np.random.default_rng([1, k])
        if truth == "prior":
            values = pm.draw(drawn, random_seed=rng)
            found = dict(zip((x.name for x in drawn), values, strict=True))
            people = {x: found[f"person_{x}"] for x in FEW}
            true = study.shares(study.result({x: y[None] for x, y in found.items()}))[0]
        else:
            people = of_cells(cells, n, rng)
        line = study.replicate(people, true, rng, synthetic=truth != "prior")
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")


def read(file):
    """What was found of each release."""
    return [json.loads(x) for x in file.read_text("utf-8").splitlines()] if file.exists() else []


def held(intervals, true):
    """Which intervals hold the truth, shape (releases, quantities)."""
    low, high = np.moveaxis(np.array(intervals), -1, 0)
    return (low - ROUNDING <= true) & (true <= high + ROUNDING)


def of_pairs(hits, intervals):
    """Coverage of all cells with its Monte Carlo error, of the worst and best cell, and widths."""
    error = hits.mean(axis=1).std(ddof=1) / np.sqrt(len(hits))
    worst, *_, best = sorted(hits.mean(axis=0))
    width = np.diff(intervals).mean()
    ends = f"{percent(worst)} to {percent(best)}"
    return f"{percent(hits.mean())} ± {percent(error)}", ends, percent(width)


def rows(name, found):
    """Coverage of a study: by the posterior, and by `combine`."""
    model, truth, n, _ = STUDIES[name]
    of_study = [model, truth, f"{n:,}", str(len(found))]
    intervals, true, ranks = (
        np.array([x[what] for x in found]) for what in ("posterior", "true", "rank")
    )
    # Shares of few people are often equal to the truth: a lot decides.
    hits = abs(ranks - 0.5) <= PROB / 2 if truth == "prior" else held(intervals, true)
    few = np.median([min(x["ess"]) for x in found])
    lines = [
        [
            *of_study,
            "posterior",
            *of_pairs(hits, intervals),
            *[""] * len(COEFFICIENTS),
            f"{few:.0f}",
        ]
    ]
    if truth != "prior":
        true = five.analysed(n * TRUTHS[truth]())[0]
        intervals = np.array([x["combine"] for x in found])
        hits, beta = held(intervals, true), len(true) - len(COEFFICIENTS)
        of_beta = [percent(x) for x in hits[:, beta:].mean(axis=0)]
        pairs = of_pairs(hits[:, :beta], intervals[:, :beta])
        lines.append([*of_study, "combine", *pairs, *of_beta, ""])
    return lines


HEADER = (
    "model", "truth", "people", "releases", "intervals", "pairs", "worst and best cell",
    "width (points)", *COEFFICIENTS, "effective draws",
)  # fmt: skip


def main(folder, studies=tuple(STUDIES), page=None):
    logging.getLogger("pymc").setLevel(logging.ERROR)  # a line for each data set
    folder.mkdir(exist_ok=True)
    files = {x: folder / f"{x.replace(',', '').replace(' ', '_')}.jsonl" for x in STUDIES}
    for name in studies:
        releases(*STUDIES[name], files[name])
    found = {name: lines for name in STUDIES if (lines := read(files[name]))}
    text = table(HEADER, [row for x, lines in found.items() for row in rows(x, lines)], words=5)
    print(text)
    fill_file(page, {"coverage of people": text})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--study", nargs="*", choices=STUDIES, default=tuple(STUDIES))
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    main(given.folder, given.study, given.page)
