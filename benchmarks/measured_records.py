"""Private records of which something public is measured with an error of unknown size.

Each model is sampled by defaults, once as it is and once with the noise of the records' prior held
fixed in place of the noise of their law given what is measured.

    python -m benchmarks.measured_records [MODEL ...] [--seeds 1 2]

Effective draws of 4 x 1,000, of the error's scale and of the slowest parameter, and CPU seconds
with compilation; before and now, 2026-11-28:

=========== ==== ========== ========== ======
model       seed error      slowest    CPU s
=========== ==== ========== ========== ======
normal      1    42, 2326   42, 2326   14, 11
normal      2    27, 2344   27, 2059   5, 5
heavy_tails 1    105, 1048  105, 1048  18, 14
heavy_tails 2    76, 1210   76, 1210   9, 9
calibrated  1    5, 772     5, 772     6, 9
calibrated  2    5, 964     5, 964     5, 8
twice       1    831, 3527  572, 2317  14, 12
twice       2    626, 3486  626, 2850  6, 8
known_sizes 1    23, 2409   23, 2409   15, 14
known_sizes 2    55, 2804   55, 2804   6, 8
=========== ==== ========== ========== ======
"""

import argparse
import logging
import warnings
from time import process_time
from unittest.mock import patch

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dapper as pmd
from pymc_dapper.interweaving.reading import model as reading

N, NOISE = 500, 20.0


def with_sums(measure):
    """Private x and y, their noisy sums, squares and products, and what is measured of x."""
    rng = np.random.default_rng(0)
    truth = rng.normal(1, 1, N)
    y = 0.5 + truth + rng.normal(0, 0.7, N)
    sums = np.array([truth.sum(), y.sum(), (truth * y).sum(), (truth**2).sum(), (y**2).sum()])
    released = sums + rng.normal(0, NOISE, 5)
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 2), pm.HalfNormal("tau", 2)
        alpha, beta = pm.Normal("alpha", 0, 2), pm.Normal("beta", 0, 2)
        s, error = pm.HalfNormal("s", 2), pm.HalfNormal("error", 1)
        x = pm.Normal("x", mu, tau, shape=N)
        measure(rng, truth, x, error)
        y = pm.Normal("y", alpha + beta * x, s, shape=N)
        sums = pt.stack([x.sum(), y.sum(), (x * y).sum(), (x**2).sum(), (y**2).sum()])
        pmd.GaussianMechanism(NOISE).potential("privacy", sums, released=released)
    return model


def normal(rng, truth, x, error):
    """W = x + error."""
    pm.Normal("w", x, error, observed=truth + 0.5 * rng.normal(size=N))


def heavy_tails(rng, truth, x, error):
    """Errors of Student's t with four degrees of freedom."""
    pm.StudentT("w", nu=4, mu=x, sigma=error, observed=truth + 0.5 * rng.standard_t(4, N))


def calibrated(rng, truth, x, error):
    """Intercept and slope aren't known, either."""
    a, b = pm.Normal("intercept", 0, 1), pm.Normal("slope", 1, 0.5)
    pm.Normal("w", a + b * x, error, observed=0.2 + 0.8 * truth + 0.5 * rng.normal(size=N))


def twice(rng, truth, x, error):
    """Each record is measured twice."""
    pm.Normal("w", x[:, None], error, observed=truth[:, None] + 0.5 * rng.normal(size=(N, 2)))


def known_sizes(rng, truth, x, error):
    """Errors of known sizes times an unknown factor."""
    sizes = rng.uniform(0.5, 2, N)
    pm.Normal("w", x, error * sizes, observed=truth + 0.4 * sizes * rng.normal(size=N))


MODELS = {f.__name__: f for f in (normal, heavy_tails, calibrated, twice, known_sizes)}


def effective_draws(model, seed, draws=1_000):
    """Of the error's scale, and of the slowest parameter; and CPU seconds."""
    began = process_time()
    with model, warnings.catch_warnings(action="ignore"):
        found = pmd.sample(
            draws, tune=1_000, chains=4, cores=1, random_seed=seed, progressbar=False
        ).posterior
    seconds = process_time() - began
    ess = {name: float(x.min()) for name, x in az.ess(found).data_vars.items()}
    return ess["error"], min(ess.values()), seconds


def row(name, seed, draws=1_000):
    """Both ways, one after the other."""
    without = patch.object(reading, "laws_given_measurements", lambda *_: {})
    with without:
        before = effective_draws(with_sums(MODELS[name]), seed, draws)
    now = effective_draws(with_sums(MODELS[name]), seed, draws)
    numbers = [f"{x:,.0f}" for both in zip(before, now, strict=True) for x in both]
    return f"| {name} | {seed} | {' | '.join(numbers)} |"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help=", ".join(MODELS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    given = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.CRITICAL)
    print("| model | seed | error, before | now | slowest, before | now | CPU s, before | now |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in given.models or MODELS:
        for seed in given.seeds:
            print(row(name, seed), flush=True)


if __name__ == "__main__":
    main()
