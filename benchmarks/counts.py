"""Time per sweep of CountStep, against the number of people and of cells.

Two tables are printed. A sweep's time doesn't depend on the number of people, and grows in
proportion to that of the cells (of three levels: states, counties, tracts, all with noise).

Run it alone on the machine: .venv/bin/python benchmarks/counts.py
"""

import argparse
from time import perf_counter

import numpy as np
import pymc as pm

import pymc_dapper as pmd
from pymc_dapper.steps.counts import CountStep


def table(n, cells):
    """One multinomial with noise on each cell."""
    with pm.Model() as model:
        x = pm.Multinomial("x", n=n, p=np.full(cells, 1 / cells))
        released = np.full(cells, n // cells)
        pmd.DiscreteGaussianMechanism(6.0).potential("privacy", x, released=released)
    return model


def geography(tracts):
    """Tracts in 10 counties each, of 10 states; noise at every level, and known state totals."""
    shape = (10, 10, tracts // 100)
    with pm.Model() as model:
        x = pm.Poisson("x", 100.0, shape=shape)
        for level, axes in {"tract": (), "county": (2,), "state": (1, 2)}.items():
            statistic = x.sum(axis=axes) if axes else x
            released = np.full(shape[: 3 - len(axes)], 100 * int(np.prod(shape[3 - len(axes) :])))
            mechanism = pmd.DiscreteGaussianMechanism(10.0)
            mechanism.potential(level, statistic, released=released)
    return model


def seconds_per_sweep(model, sweeps):
    with model:
        step = CountStep([model["x"]])
    step.setup_chain(np.random.default_rng(1), tune=10, draws=sweeps)
    point = model.initial_point()
    for _ in range(10):
        point, _ = step.step(point)
    began = perf_counter()
    for _ in range(sweeps):
        point, _ = step.step(point)
    return (perf_counter() - began) / sweeps


def main(people=(10**3, 10**5, 10**7, 3 * 10**8), cells=(100, 1_000, 10_000), sweeps=200):
    """Measure and print."""
    print(f"{'people':>12}  {'ms per sweep (50 cells)':>24}")
    for n in people:
        print(f"{n:>12,}  {1e3 * seconds_per_sweep(table(n, 50), sweeps):>24.3f}")
    print(f"\n{'tracts':>12}  {'ms per sweep':>24}  {'us per cell':>12}")
    for k in cells:
        seconds = seconds_per_sweep(geography(k), max(5, sweeps // 10))
        print(f"{k:>12,}  {1e3 * seconds:>24.3f}  {1e6 * seconds / k:>12.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sweeps", type=int, default=200)
    main(sweeps=parser.parse_args().sweeps)
