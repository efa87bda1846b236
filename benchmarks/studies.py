"""Cells per minute of a study with 1 and 2 workers, and a large study on paper.

The cells are those of examples/budget_study.py: 400 applicants, four noisy counts, two chains of
500 draws after 300 of tuning. What is measured here is then put together, on paper, to a study of
10,000 cells on 100 nodes.

Run it alone on the machine: .venv/bin/python benchmarks/studies.py
"""

import argparse
import json
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from _models import EXAMPLES, example

from pymc_dapper.studies import study
from pymc_dapper.studies.fingerprint import fingerprint
from pymc_dapper.studies.grid import read_grid
from pymc_dapper.studies.store import IDENTITY, Store

sys.path.insert(0, str(EXAMPLES))  # where worker processes find the functions, too
import budget_study

markdown = example("_markdown")

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
        store = Store(Path(folder), fingerprint(budget_study.simulate, budget_study.build))
        store.take_over(json.loads((Path(folder) / IDENTITY).read_text()))
        cells = read_grid(GRID, replicates).cells
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
    models = {
        "each worker meets one setting only": 1,
        "each worker meets another setting in each cell": each,
    }
    return {
        case: measured.start + number * measured.compile + each * measured.cell
        for case, number in models.items()
    }


def measured_table(alone, rates):
    """What was measured of one worker, and how many cells a minute workers run."""
    rows = [
        [f"cells per minute with {n} worker{'s' * (n > 1)}", f"{rate:.0f}"]
        for n, rate in rates.items()
    ]
    rows += [
        ["start of a worker", f"{alone.start:.1f} s"],
        ["steps of a new model, with PyTensor's cache on disk", f"{alone.compile:.1f} s"],
        ["a cell, once its model is there", f"{alone.cell:.2f} s"],
        ["writing a cell, by the main process", f"{1e3 * alone.write:.1f} ms"],
        ["a cell's file", f"{alone.size / 1e3:.1f} kB"],
    ]
    return markdown.table(["measured", ""], rows, words=1)


def planned_table(alone, per_node=(1, 16)):
    """The large study, on paper."""
    plans = [plan(alone, per_node=n) for n in per_node]
    rows = [[case, *(f"{p[case] / 60:.1f} min" for p in plans)] for case in plans[0]]
    rows.append(
        ["the main process, writing", *[f"{10_000 * alone.write / 60:.1f} min"] * len(plans)]
    )
    rows.append(["the store", *[f"{10_000 * alone.size / 1e6:.0f} MB"] * len(plans)])
    columns = [f"{n} worker{'s' * (n > 1)} per node" for n in per_node]
    return markdown.table(["on paper: 10,000 cells, 100 nodes", *columns], rows, words=1)


def main(replicates=40, workers=(1, 2), page=None):
    """Measure, plan and print; write the tables into a page if one is given."""
    found = {number: measure(number, replicates) for number in workers}
    alone, _ = found[workers[0]]
    tables = {
        "measured": measured_table(alone, {n: rate for n, (_, rate) in found.items()}),
        "on paper": planned_table(alone),
    }
    print("\n\n".join(tables.values()))
    markdown.fill_file(page, tables)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicates", type=int, default=40)
    parser.add_argument("--page", type=Path, help="page to write the tables into")
    main(**vars(parser.parse_args()))
