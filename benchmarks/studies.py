"""Cells per minute of a study with 1 and 2 workers, and a large study on paper.

The cells are those of examples/budget_study.py: 400 applicants, four noisy counts, two chains of
500 draws after 300 of tuning. What is measured here is then put together, on paper, to a study of
10,000 cells on 100 nodes.

Run it alone on the machine: .venv/bin/python benchmarks/studies.py
"""

import argparse
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from _models import EXAMPLES

from pymc_dapper.studies import study
from pymc_dapper.studies.grid import read_grid
from pymc_dapper.studies.store import Store

sys.path.insert(0, str(EXAMPLES))  # where worker processes find the functions, too
import budget_study

GRID = {"mechanism": ["discrete Gaussian"], "epsilon": [1.0]}
SAMPLE = {"draws": 500, "tune": 300}


@dataclass
class Measured:
    """Seconds, and bytes, of one worker or of one cell."""

    start: float
    compile: float
    cell: float
    write: float
    size: float


def run(executor, replicates, **options):
    """A study with one setting; the seconds it took."""
    began = perf_counter()
    result = study(
        budget_study.simulate,
        budget_study.build,
        GRID,
        replicates=replicates,
        seed=1,
        executor=executor,
        sample_kwargs=SAMPLE,
        progressbar=False,
        **options,
    )
    return result, perf_counter() - began


def measure(workers, replicates):
    """Start workers, let them compile, and then run cells."""
    with (
        ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as executor,
        tempfile.TemporaryDirectory() as folder,
    ):
        began = perf_counter()
        executor.submit(budget_study.response, 1.0).result()
        start = perf_counter() - began
        first, _ = run(executor, 4 * workers)
        result, seconds = run(executor, replicates, store=folder)
        store, cells = Store(Path(folder)), read_grid(GRID, replicates).cells
        results = store.read(cells)
        began = perf_counter()
        for cell in cells:
            store.write(cell, results[cell])
        write = (perf_counter() - began) / replicates
        size = sum(file.stat().st_size for file in Path(folder).glob("*.parquet")) / replicates
    measured = Measured(
        start, float(first["build_seconds"].max()), float(result["seconds"].mean()), write, size
    )
    return measured, 60 * replicates / seconds


def plan(measured, settings=100, replicates=100, nodes=100, per_node=1):
    """Seconds of a large study, if a worker meets one setting only, and if it meets many."""
    workers = nodes * per_node
    cells = settings * replicates
    each = -(-cells // workers)
    models = {"one setting to a worker": 1, "another setting in each cell": each}
    return {
        case: measured.start + number * measured.compile + each * measured.cell
        for case, number in models.items()
    }


def main(replicates=40, workers=(1, 2)):
    """Measure, plan and print."""
    rates = {}
    for number in workers:
        measured, rates[number] = measure(number, replicates)
        print(f"{number} worker{'s' * (number > 1)}: {rates[number]:6.1f} cells per minute")
        if number == 1:
            alone = measured
    print(f"ratio: {rates[workers[-1]] / rates[workers[0]]:.2f}\n")

    print(f"start of a worker (import)        {alone.start:8.1f} s")
    print(f"steps of a new model (warm cache) {alone.compile:8.1f} s")
    print(f"a cell                            {alone.cell:8.2f} s")
    print(f"writing a cell                    {1e3 * alone.write:8.1f} ms")
    print(f"a cell's file                     {alone.size / 1e3:8.1f} kB\n")

    print("On paper: 100 settings, 100 replicates, 100 nodes")
    print(f"{'workers per node':18}{'case':30}{'minutes':>9}")
    for per_node in (1, 16):
        for case, seconds in plan(alone, per_node=per_node).items():
            print(f"{per_node:<18}{case:30}{seconds / 60:>9.1f}")
    print(f"main process, writing: {10_000 * alone.write / 60:.1f} minutes")
    print(f"store: {10_000 * alone.size / 1e6:.0f} MB in 10,000 files")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicates", type=int, default=40)
    main(parser.parse_args().replicates)
