"""An unknown number of records: `pmd.sample` beside reversible jumps, and beside a known number.

Three models of about 1,000 records, privacy by added or removed ones: a regression from noisy
clamped sums, as in the experiments of Awan, Barrientos and Ju (arXiv:2406.06231); a normal law, of
which location and scale aren't known; and the same with no number released at all. Each is sampled
by `pmd.sample` with room for 2,000 records; by `pymc_dapper.reference.reversible_jump`, compiled,
with parameters drawn from their conditionals; and by `pmd.sample` with the number of records given.

Each measurement is made in a process of its own, with one thread, in seconds of CPU per draw, after
compiling and tuning. Effective draws are those of the quantity that has the fewest, n among them,
and both ways' posterior means stand beside each other.

    python -m benchmarks.unknown_number                      some minutes
    python -m benchmarks.unknown_number --page docs/evidence/measured.md
"""

import argparse
import json
import logging
import math
import os
import subprocess
import sys
from pathlib import Path
from time import process_time

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dapper as pmd
from benchmarks._models import example
from pymc_dapper.reference import reversible_jump

ROOT = Path(__file__).parents[1]
N, ROOM = 1_000, 2_000
EPSILON = {"count": 0.1, "sums": 1.0}
CLAMP = 5.0
"""Numbers are clamped to [-5, 5] and scaled to [-1, 1]."""
JUMPS = 1
"""In a cycle of the reference: as many as its authors' code proposes."""

# The laws, as PyMC models and as functions for the reference --------------------------------------


def noise(entries):
    """Scales of the noise: an added record changes each entry by 1 at most."""
    return 1 / EPSILON["count"], entries / EPSILON["sums"]


class Regression:
    """x ~ N(mu, 1 / phi), y ~ N(b0 + b1 x, 1 / tau); released are five sums."""

    names = ("mu", "phi", "b0", "b1", "tau")
    start = (0.0, 1.0, 0.0, 0.0, 1.0)
    truth = (1.0, 1.0, 0.0, 2.0, 1.0)
    width, sums = 2, 5
    shown = "regression"

    def model(self, released, present):
        mu, phi = pm.Normal("mu", 0, 1), pm.Gamma("phi", 1, 0.5)
        b0, b1, tau = pm.Normal("b0", 0, 1), pm.Normal("b1", 0, 1), pm.Gamma("tau", 1, 1)
        room = present.type.shape[0]
        x = pm.Normal("x", mu, tau=phi, shape=room)
        y = pm.Normal("y", b0 + b1 * x, tau=tau, shape=room)
        u, v = (pt.clip(z / CLAMP, -1, 1) for z in (x, y))
        entries = [v, u * v, v * v, u, u * u]
        sums = pt.stack([(pt.switch(present, entry, 0)).sum() for entry in entries])
        pmd.LaplaceMechanism(noise(5)[1]).potential("sums", sums, released=released)

    @staticmethod
    def draw_record(rng, p, record):
        record[0] = p[0] + rng.standard_normal() / math.sqrt(p[1])
        record[1] = p[2] + p[3] * record[0] + rng.standard_normal() / math.sqrt(p[4])

    @staticmethod
    def contribution(record, sums):
        u = min(max(record[0] / 5.0, -1.0), 1.0)
        v = min(max(record[1] / 5.0, -1.0), 1.0)
        sums[0], sums[1], sums[2], sums[3], sums[4] = v, u * v, v * v, u, u * u

    @staticmethod
    def draw_parameters(rng, records, p):
        n, x1, x2, y1, y2, xy = float(len(records)), 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(len(records)):
            x, y = records[i, 0], records[i, 1]
            x1, x2, y1, y2, xy = x1 + x, x2 + x * x, y1 + y, y2 + y * y, xy + x * y
        precision = 1 + p[1] * n
        p[0] = p[1] * x1 / precision + rng.standard_normal() / math.sqrt(precision)
        square = x2 - 2 * p[0] * x1 + n * p[0] ** 2
        p[1] = rng.standard_gamma(1 + n / 2) / (0.5 + square / 2)
        # b0 and b1 together: normal with precision [[a, b], [b, d]], by its Cholesky factor.
        a, b, d = 1 + p[4] * n, p[4] * x1, 1 + p[4] * x2
        determinant = a * d - b * b
        centre0 = p[4] * (d * y1 - b * xy) / determinant
        centre1 = p[4] * (a * xy - b * y1) / determinant
        l11 = math.sqrt(a)
        l21 = b / l11
        z1 = rng.standard_normal() / math.sqrt(d - l21 * l21)
        p[3] = centre1 + z1
        p[2] = centre0 + (rng.standard_normal() - l21 * z1) / l11
        square = y2 + n * p[2] ** 2 + p[3] ** 2 * x2
        square += 2 * (p[2] * p[3] * x1 - p[2] * y1 - p[3] * xy)
        p[4] = rng.standard_gamma(1 + n / 2) / (1 + square / 2)


class Normal:
    """x ~ N(mu, 1 / phi); released are the sums of x and of its squares."""

    names = ("mu", "phi")
    start = truth = (1.0, 1.0)
    width, sums = 1, 2
    shown = "normal law"

    def model(self, released, present):
        mu, phi = pm.Normal("mu", 0, 1), pm.Gamma("phi", 1, 0.5)
        x = pm.Normal("x", mu, tau=phi, shape=present.type.shape[0])
        u = pt.clip(x / CLAMP, -1, 1)
        sums = pt.stack([pt.switch(present, entry, 0).sum() for entry in (u, u * u)])
        pmd.LaplaceMechanism(noise(2)[1]).potential("sums", sums, released=released)

    @staticmethod
    def draw_record(rng, p, record):
        record[0] = p[0] + rng.standard_normal() / math.sqrt(p[1])

    @staticmethod
    def contribution(record, sums):
        u = min(max(record[0] / 5.0, -1.0), 1.0)
        sums[0], sums[1] = u, u * u

    @staticmethod
    def draw_parameters(rng, records, p):
        n, x1, x2 = float(len(records)), 0.0, 0.0
        for i in range(len(records)):
            x = records[i, 0]
            x1, x2 = x1 + x, x2 + x * x
        precision = 1 + p[1] * n
        p[0] = p[1] * x1 / precision + rng.standard_normal() / math.sqrt(precision)
        square = x2 - 2 * p[0] * x1 + n * p[0] ** 2
        p[1] = rng.standard_gamma(1 + n / 2) / (0.5 + square / 2)


class NoCount(Normal):
    """The same, but no number of records is released, not even a noisy one."""

    shown = "normal law, no number released"


LAWS = {law.__name__: law() for law in (Regression, Normal, NoCount)}


def release(law):
    """The noisy number and the noisy sums of one data set."""
    rng = np.random.default_rng(1)
    sums, one, record = np.zeros(law.sums), np.zeros(law.sums), np.zeros(law.width)
    for _ in range(N):
        law.draw_record(rng, np.array(law.truth), record)
        law.contribution(record, one)
        sums += one
    count_scale, scale = noise(law.sums)
    return N + count_scale * rng.laplace(), sums + scale * rng.laplace(size=law.sums)


# Each way, in a process of its own ----------------------------------------------------------------


def unknown(law, draws, tune):
    """`pmd.sample`, with n among the unknowns."""
    count, sums = release(law)
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 0, ROOM)
        if not isinstance(law, NoCount):
            pmd.LaplaceMechanism(noise(1)[0]).potential("count", n, released=count)
        law.model(sums, pmd.present(n, ROOM))
    return ours(model, ["n", *law.names], draws, tune)


def known(law, draws, tune):
    """`pmd.sample` of the same model with the number of records given."""
    with pm.Model() as model:
        law.model(release(law)[1], pt.ones(N, dtype="bool"))
    return ours(model, list(law.names), draws, tune)


def ours(model, names, draws, tune):
    times = []
    posterior = pmd.sample(
        draws,
        tune=tune,
        chains=1,
        cores=1,
        random_seed=1,
        progressbar=False,
        model=model,
        compute_convergence_checks=False,
        callback=lambda trace, draw: times.append(process_time()),
    ).posterior
    return measured(
        {name: posterior[name].values[0] for name in names}, times[-1] - times[tune], draws
    )


def jumps(law, draws, tune):
    """The reference, compiled: a first run compiles it."""
    count, sums = release(law)
    count_scale, scale = noise(law.sums)
    weight = 0.0 if isinstance(law, NoCount) else 1 / count_scale

    def log_mechanism(total, n):
        log_density = -weight * abs(count - n)
        for k in range(len(sums)):
            log_density -= abs(sums[k] - total[k]) / scale
        return log_density

    def log_size(n):
        return 0.0

    functions = (law.draw_record, law.contribution, log_mechanism, log_size, law.draw_parameters)
    options = {"width": law.width, "sums": law.sums, "start": law.start, "jumps": JUMPS}
    options |= {"n_start": N, "n_range": (0, ROOM), "random_seed": 1}
    reversible_jump(*functions, **options, draws=1, tune=1)
    began = process_time()
    found = reversible_jump(*functions, **options, draws=draws, tune=tune)
    seconds = (process_time() - began) * draws / (draws + tune)
    values = {"n": found.n} | dict(zip(law.names, found.parameters.T, strict=True))
    return measured(values, seconds, draws)


def measured(values, seconds, draws):
    """Time per draw, effective draws per second of the slowest quantity, posterior mean and sd."""
    effective = {
        name: float(az.ess(np.asarray(x, dtype=float)[None])) for name, x in values.items()
    }
    slowest = min(effective, key=effective.get)
    return {
        "ms per draw": 1e3 * seconds / draws,
        "slowest": slowest,
        "effective draws": effective[slowest],
        "effective draws per second": effective[slowest] / seconds,
        "of n": effective["n"] / seconds if "n" in effective else None,
        "posterior": {name: [float(np.mean(x)), float(np.std(x))] for name, x in values.items()},
    }


WAYS = {"pmd.sample": unknown, "reversible jumps": jumps, "pmd.sample, n known": known}


# The table ----------------------------------------------------------------------------------------


def rows(draws, tune, jump_draws):
    """Measure all, each in a process of its own."""
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "NUMBA")}
    for law in LAWS:
        for way in WAYS:
            if way == "pmd.sample, n known" and law == "NoCount":
                continue
            few = jump_draws if way == "reversible jumps" else draws
            job = {"law": law, "way": way, "draws": few, "tune": min(tune, few)}
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.unknown_number", "--job", json.dumps(job)],
                env={**os.environ, **threads},
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            )
            result = json.loads(done.stdout.splitlines()[-1])
            print(job, result, flush=True)
            yield job, result


def table(found):
    """What was measured, and how many times as many effective draws a second as by jumps."""
    jumps_of = {
        job["law"]: result["effective draws per second"]
        for job, result in found
        if job["way"] == "reversible jumps"
    }
    lines = []
    for job, result in found:
        each = result["effective draws per second"]
        n_mean, n_sd = result["posterior"].get("n", (N, 0.0))
        lines.append(
            [
                LAWS[job["law"]].shown,
                job["way"],
                f"{result['ms per draw']:.2g}",
                f"{float(f'{each:.2g}'):g} ({result['slowest']})",
                "" if result["of n"] is None else f"{float(f'{result["of n"]:.2g}'):g}",
                "" if job["way"] == "pmd.sample, n known" else f"{each / jumps_of[job['law']]:.2g}",
                "known" if n_sd == 0 else f"{n_mean:.0f} ± {n_sd:.0f}",
            ]
        )
    header = [
        *("model", "way", "ms per draw", "effective draws/s (slowest)", "of n", "times", "n"),
    ]
    return example("_markdown").table(header, lines, words=2)


def main(*, job, draws, tune, jump_draws, page):
    """Measure and print; write the table into a page if one is given."""
    if job is not None:
        logging.getLogger("pymc").setLevel(logging.ERROR)
        given = json.loads(job)
        way, law = WAYS[given["way"]], LAWS[given["law"]]
        print(json.dumps(way(law, given["draws"], given["tune"])))
        return
    shown = table(list(rows(draws, tune, jump_draws)))
    print(shown)
    example("_markdown").fill_file(page, {"unknown number": shown})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--draws", type=int, default=10_000, help="of pmd.sample")
    parser.add_argument("--tune", type=int, default=1_000)
    parser.add_argument("--jump-draws", type=int, default=50_000, help="of the reference")
    parser.add_argument("--page", type=Path, help="page to write the table into")
    main(**vars(parser.parse_args()))
