"""A state's noisy measurements of 2020, as `CountStep` takes them: cost, memory, effective draws.

Replicas have the noise of 2020's production settings on four queries of the state, of each county
and each tract: `total`, `votingage`, `hispanic` and `hispanic * cenrace`. Latent are the tables of
all tracts, by 2 x 2 x 63 cells or, with group quarters, by 2,016. Each size runs in a process of
its own.

With `--races` they are tables by 2 x 63 cells, with the queries `total`, `hispanic`, `cenrace` and
`hispanic * cenrace`, of people whose numbers differ from tract to tract as negative binomial ones
do. What is told then is how many effective draws an hour of CPU brings of the cell that has the
fewest.

    python -m benchmarks.noisy_measurements --page docs/evidence/measured.md
    python -m benchmarks.noisy_measurements --state 23 160     these counties and tracts
    python -m benchmarks.noisy_measurements --state 5 30 --by-quarters
    python -m benchmarks.noisy_measurements --races --page docs/evidence/measured.md
    python -m benchmarks.noisy_measurements --races --state 60 1100 --draws 500
"""

import argparse
import resource
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import arviz as az
import numpy as np
import pymc as pm

import pymc_dapper as pmd
from benchmarks._models import example
from pymc_dapper.kernels.effective_draws import effective_draws
from pymc_dapper.releases import read_census
from tests.releases.census_replica import SHAPE, drawn, model_of, noisy_rows, state

markdown = example("_markdown")

STATES = ((2, 6, False), (5, 30, False), (5, 30, True), (23, 160, False))
"""Counties, tracts, and whether by group quarters; the last has the size of Wyoming."""

HEADER = (
    "counties",
    "tracts",
    "cells",
    "CPU seconds before the first draw",
    "for 100 sweeps",
    "GiB",
    "effective draws per 100: of tracts' populations",
    "of races in a tract",
)


DISPERSION = 1.0
"""How much tracts differ: a cell's people vary by as much as there are."""

RACES = ((3, 60, 500), (23, 160, 800))
"""Counties, tracts and draws. The second has the size of Wyoming; the median state has 1,100."""

RACES_HEADER = (
    "counties",
    "tracts",
    "cells",
    "CPU seconds before the first draw",
    "for 100 sweeps",
    "GiB",
    "sweeps",
    "effective draws: of the cell with the fewest",
    "of the median cell",
    "of the fewest in an hour",
    "cells that never changed",
)


def effective(draws):
    """Effective draws per 100 of an array's entries: the median of those that vary."""
    columns = draws.reshape(len(draws), -1)
    columns = columns[:, columns.std(axis=0) > 0]
    picked = columns[:, np.linspace(0, columns.shape[1] - 1, 200).astype(int)]
    return 100 / len(draws) * np.median([float(az.ess(each[None])) for each in picked.T])


def measured(n_counties, n_tracts, by_quarters, draws):
    """Measure one state, as a row of the table."""
    silence()
    rng, tracts = np.random.default_rng(4), state(n_counties, n_tracts)
    rate, people = drawn(tracts, 3000, rng, by_quarters)
    began = time.process_time()
    release = read_census(
        noisy_rows(people, tracts, rng), levels={"state": 2, "county": 5, "tract": 11}
    )
    with model_of(release, tracts, rate, people.sum()) as model:
        step = pmd.CountStep([model["table"]])
        ready = time.process_time()
        table = (
            pm.sample(
                draws,
                tune=draws,
                chains=1,
                step=[step],
                random_seed=1,
                progressbar=False,
                compute_convergence_checks=False,
            )
            .posterior["table"]
            .values[0]
        )
    done = time.process_time()
    totals, races = table.sum(axis=(2, 3, 4, 5)), table.sum(axis=(2, 3))
    return (
        str(n_counties),
        str(n_tracts),
        f"{people.size:,}",
        f"{ready - began:.0f}",
        f"{100 * (done - ready) / (2 * draws):.0f}",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f}",
        f"{effective(totals):.0f}",
        f"{effective(races):.0f}",
    )


def measured_races(n_counties, n_tracts, draws):
    """Measure one state by 126 cells, as a row of the table."""
    silence()
    rng, tracts = np.random.default_rng(4), state(n_counties, n_tracts)
    # A few cells hold most people, most cells hardly anyone.
    weights = rng.lognormal(0, 3.5, size=(1, 1, 2, 63))
    rate, shape = 3000 * weights / weights.sum(), (n_tracts, 1, 1, 2, 63)
    people = rng.poisson(rate * rng.gamma(DISPERSION, 1 / DISPERSION, size=shape))
    began = time.process_time()
    queries = ("total", "hispanic", "cenrace", "hispanic * cenrace")
    noisy = noisy_rows(people, tracts, rng, queries)
    release = read_census(noisy, levels={"state": 2, "county": 5, "tract": 11})
    within = {
        level: ("tract", [tract[:length] for tract in tracts])
        for level, length in (("state", 2), ("county", 5))
    }
    with pm.Model(coords=release.coords):
        table = pm.NegativeBinomial("table", mu=rate, alpha=DISPERSION, shape=shape)
        pmd.invariant("state population", table.sum(), people.sum())
        release.potential(release.margins(table, ("tract", *SHAPE), within=within))
        step = pmd.CountStep([table])
        ready = time.process_time()
        found = pm.sample(
            draws,
            tune=draws // 2,
            chains=1,
            step=[step],
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    done = time.process_time()
    cells = found.posterior["table"].values[0].reshape(draws, -1)
    parts = np.array_split(cells, -(-cells.shape[1] // 1000), axis=1)
    fewest = np.concatenate([effective_draws(part.astype(float)) for part in parts])
    a_sweep = (done - ready) / (draws + draws // 2)
    least = np.nanmin(fewest)
    return (
        str(n_counties),
        f"{n_tracts:,}",
        f"{people.size:,}",
        f"{ready - began:.0f}",
        f"{100 * a_sweep:.0f}",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f}",
        f"{draws:,}",
        f"{least:.0f}",
        f"{np.nanmedian(fewest):.0f}",
        f"{least / draws * 3600 / a_sweep:,.0f}",
        f"{np.isnan(fewest).sum():,}",
    )


def silence():
    """Silence warnings about noise for simulations: these are simulations."""
    warnings.filterwarnings("ignore", message=r"release\(\) simulates")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--state", type=int, nargs=2, metavar=("COUNTIES", "TRACTS"))
    parser.add_argument("--by-quarters", action="store_true")
    parser.add_argument("--races", action="store_true")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--page", type=Path, help="write the table into this page")
    arguments = parser.parse_args()
    measure, states, header, name = measured, STATES, HEADER, "noisy measurements"
    if arguments.races:
        measure, states, header, name = measured_races, RACES, RACES_HEADER, "state races"
    if arguments.state:
        states = [(*arguments.state, arguments.by_quarters)]
    if arguments.state and arguments.races:
        states = [(*arguments.state, arguments.draws)]
    elif not arguments.races:
        states = [(*each, arguments.draws) for each in states]
    rows = []
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as executor:
        for each in states:
            rows.append(executor.submit(measure, *each).result())
            print(*rows[-1], sep="  ", flush=True)
    table = markdown.table(header, rows)
    print(table)
    if arguments.page:
        markdown.fill_file(arguments.page, {name: table})


if __name__ == "__main__":
    main()
