"""A sweep over records of which quantiles were released: time per record, beside a table of counts.

    python -m benchmarks.quantiles            a million records, and a thousand
    python -m benchmarks.quantiles --short    fewer, for trying out

Run it alone on the machine. Times are of processor time, of a sweep in compiled code: proposals,
and decisions on them. A ratio is to example 2 of the dapper paper, with as many records.
"""

import argparse
import warnings
from time import process_time

import numpy as np
import pymc as pm

import pymc_dapper as pmd
from benchmarks.workloads import admissions
from pymc_dapper.records.compiled.sweep import compile_sweep


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


def example_2(n):
    workload = admissions(n)
    return workload.build(), workload.records


QUARTERS = (0.25, 0.5, 0.75)
MODELS = {
    "example 2: a table of 4 counts": example_2,
    "histogram of 21 bins": lambda n: histogram(n, 21),
    "median of 20 candidates, Gumbel noise": lambda n: quantiles(n, 20, 2.0, "gumbel"),
    "median of 20 candidates, exponential noise": lambda n: quantiles(n, 20, 2.0, "exponential"),
    "median of 100 candidates, Gumbel noise": lambda n: quantiles(n, 100, 2.0, "gumbel"),
    "median of 100 candidates, exponential noise": lambda n: quantiles(n, 100, 2.0, "exponential"),
    "three quartiles of 20 candidates": lambda n: quantiles(n, 20, 2.0, "gumbel", QUARTERS),
}


def per_record(model, names, n, times):
    """Nanoseconds per record of a sweep, the shortest of some, after two."""
    step = pmd.DapperStep([model[name] for name in names], model=model)
    reading, point = step._reading, model.initial_point(1)
    sweep = compile_sweep(reading)
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
    short = parser.parse_args().short
    warnings.simplefilter("ignore")  # releases are simulated
    for n, times in [(10_000, 3)] if short else [(1_000_000, 10), (1_000, 2_000)]:
        print(f"\n| {n:,} records | ns per record | times example 2 |\n| --- | ---: | ---: |")
        base = None
        for what, build in MODELS.items():
            ns = per_record(*build(n), n, times)
            base = base or ns
            print(f"| {what} | {ns:.0f} | {ns / base:.1f} |", flush=True)


if __name__ == "__main__":
    main()
