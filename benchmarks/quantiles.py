"""A sweep over records of which quantiles were released: time per record, beside a table of counts.

    python -m benchmarks.quantiles --page docs/quantiles.md    a million records, and a thousand
    python -m benchmarks.quantiles --short                     fewer, for trying out

Run it alone on the machine. Times are of processor time, of a sweep in compiled code: proposals,
and decisions on them. A ratio is to example 2 of the dapper paper, with as many records.
"""

import argparse
import warnings
from pathlib import Path
from time import process_time

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dapper as pmd
from benchmarks._models import example
from benchmarks.workloads import admissions
from pymc_dapper.records.compiled.sweep import compile_sweep

markdown = example("_markdown")


def quantiles(n, m, scale, noise, alphas=(0.5,)):
    """Normal records, and quantiles of them that were chosen among m candidates."""
    candidates = np.linspace(-2, 2, m)
    rng = np.random.default_rng(1)
    people = rng.standard_normal(n)
    with pm.Model() as model:
        x = pm.Normal("x", pm.Normal("mu", 0, 1), 1, shape=n)
        for alpha in alphas:
            mechanism = pmd.QuantileMechanism(candidates, alpha, scale, noise)
            released = mechanism.release(mechanism.statistic(people), random_seed=1)
            mechanism.observe(f"q{alpha}", mechanism.statistic(x), released=released)
    return model, ["x"]


def histogram(n, bins):
    """Normal records, and their noisy histogram."""
    edges = np.concatenate([[-np.inf], np.linspace(-2, 2, bins - 1), [np.inf]])
    people = np.random.default_rng(1).standard_normal(n)
    mechanism = pmd.GaussianMechanism(6.0)
    with pm.Model() as model:
        x = pm.Normal("x", pm.Normal("mu", 0, 1), 1, shape=n)
        released = np.histogram(people, edges)[0].astype(float)
        mechanism.observe("bins", pmd.statistics.histogram(x, edges), released=released)
    return model, ["x"]


def order_statistics(n, *shares):
    """Normal records, and some of their order statistics with noise."""
    mechanism, at = pmd.LaplaceMechanism(0.01), [int(share * (n - 1)) for share in shares]
    people = np.sort(np.random.default_rng(1).standard_normal(n))
    with pm.Model() as model:
        x = pm.Normal("x", pm.Normal("mu", 0, 1), 1, shape=n)
        mechanism.observe("ordered", pt.sort(x)[at], released=people[at])
    return model, ["x"]


def example_2(n):
    workload = admissions(n)
    return workload.build(), workload.records


QUARTERS = (0.25, 0.5, 0.75)
MODELS = {
    "a table of 4 counts (example 2)": example_2,
    "a histogram of 21 bins": lambda n: histogram(n, 21),
    "the median, of 20 candidates, Gumbel noise": lambda n: quantiles(n, 20, 2.0, "gumbel"),
    "the same, exponential noise": lambda n: quantiles(n, 20, 2.0, "exponential"),
    "the median, of 100 candidates, Gumbel noise": lambda n: quantiles(n, 100, 2.0, "gumbel"),
    "the same, of 100, exponential noise": lambda n: quantiles(n, 100, 2.0, "exponential"),
    "three quartiles, of 20 candidates each": lambda n: quantiles(n, 20, 2.0, "gumbel", QUARTERS),
    "the median itself, plus noise": lambda n: order_statistics(n, 0.5),
    "the maximum itself, plus noise": lambda n: order_statistics(n, 1.0),
    "three quartiles themselves, plus noise": lambda n: order_statistics(n, *QUARTERS),
}


def per_record(model, names, n, times):
    """Nanoseconds per record of a sweep, the shortest of some, after two."""
    step = pmd.DapperStep([model[name] for name in names], model=model)
    reading, point = step._reading, model.initial_point(1)
    sweep = compile_sweep(reading, {})
    rng = np.random.default_rng(1)
    given = step._given(point)
    records = step._records(point)
    taken = []
    for _ in range(times + 2):
        began = process_time()
        records = list(sweep.update(rng, records, given)[: len(records)])
        taken.append(process_time() - began)
    return 1e9 * min(taken[2:]) / n


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--page", type=Path, help="page to write the table into")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # releases are simulated
    header, rows = ["released"], [[what] for what in MODELS]
    for n, times in [(10_000, 3)] if given.short else [(1_000_000, 10), (1_000, 2_000)]:
        header += [f"{n:,} records, ns", "times example 2"]
        taken = [per_record(*build(n), n, times) for build in MODELS.values()]
        for row, ns in zip(rows, taken, strict=True):
            row += [f"{ns:.0f}", f"{ns / taken[0]:.1f}"]
    table = markdown.table(header, rows, 1)
    print(table)
    markdown.fill_file(given.page, {"time of quantiles": table})


if __name__ == "__main__":
    main()
