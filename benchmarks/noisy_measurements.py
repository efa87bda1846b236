"""A state's noisy measurements of 2020, as `CountStep` takes them: cost, memory, effective draws.

Replicas have the noise of 2020's production settings on four queries of the state, of each county
and each tract: `total`, `votingage`, `hispanic` and `hispanic * cenrace`. Latent are the tables of
all tracts, by 2 x 2 x 63 cells or, with group quarters, by 2,016. Each size runs in a process of
its own.

    python -m benchmarks.noisy_measurements --page docs/releases.md
    python -m benchmarks.noisy_measurements --state 23 160     these counties and tracts
    python -m benchmarks.noisy_measurements --state 5 30 --by-quarters
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
from pymc_dapper.releases import read_census
from tests.releases.census_replica import drawn, model_of, noisy_rows, state

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


def effective(draws):
    """Effective draws of the entries of an array, per 100: the median of those that vary."""
    columns = draws.reshape(len(draws), -1)
    columns = columns[:, columns.std(axis=0) > 0]
    picked = columns[:, np.linspace(0, columns.shape[1] - 1, 200).astype(int)]
    return 100 / len(draws) * np.median([float(az.ess(each[None])) for each in picked.T])


def measured(n_counties, n_tracts, by_quarters, draws):
    """Measure one state, as a row of the table."""
    warnings.simplefilter("ignore")
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--state", type=int, nargs=2, metavar=("COUNTIES", "TRACTS"))
    parser.add_argument("--by-quarters", action="store_true")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--page", type=Path, help="write the table into this page")
    arguments = parser.parse_args()
    states = [(*arguments.state, arguments.by_quarters)] if arguments.state else STATES
    rows = []
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as executor:
        for each in states:
            rows.append(executor.submit(measured, *each, arguments.draws).result())
            print(*rows[-1], sep="  ", flush=True)
    table = markdown.table(HEADER, rows)
    print(table)
    if arguments.page:
        markdown.fill_file(arguments.page, {"noisy measurements": table})


if __name__ == "__main__":
    main()
