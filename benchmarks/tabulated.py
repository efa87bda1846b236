"""Tables in the place of records: the time of a draw against the number of people.

Each measurement is made in a process of its own, with one thread, in seconds of CPU: from the call
of `pmd.sample` to the first draw (with what earlier runs left in PyTensor's cache), and then per
draw, the median of blocks of draws; effective draws of the parameter that has the fewest; the
largest memory of the process; and how long 1,000 effective draws take, with all that comes before.
Records are sampled one by one beside that, where there are at most a million.

    python -m benchmarks.tabulated                  all: ten minutes, with code compiled before
    python -m benchmarks.tabulated --only survey    10 million people in 5,000 areas
    python -m benchmarks.tabulated --page docs/evidence/measured.md
"""

import argparse
import json
import logging
import os
import resource
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

ROOT = Path(__file__).parents[1]
PEOPLE = (400, 10_000, 1_000_000, 330_000_000)
ANSWERS = (400, 100_000_000)
REGRESSED, EXAMINED = (1_000, 20_000), (1_000,)
AREAS, SURVEYED = 5_000, 10_000_000
ONE_BY_ONE = 1_000_000
"""Up to so many records are sampled one by one, too."""
SURVEY_DRAWS, SURVEY_TUNE = 600, 400
BLOCKS = 20
"""Draws; each one is timed."""


def admissions(n):
    """The README's model: the release is that of more people of the same kind."""
    module = example("admissions")
    released = np.round(np.array(module.DATA["released"]) * n / sum(module.DATA["released"]))
    released[0] += n - released.sum()
    return module.build_model(released.astype(int), module.DATA["sigma"], n)


def randomised_response(n):
    """Example 1: answers of more people of the same kind."""
    module = example("randomised_response")
    male, admitted = (np.resize(answers, n) for answers in module.released())
    return module.build_model(male, admitted, module.DATA["keep_probability"])


def by_covariates(n):
    """Randomised answers of people who all differ in two covariates: a logistic regression."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=(n, 2))
    true = rng.random(n) < 1 / (1 + np.exp(1 - z @ [0.8, -0.4]))
    answers = np.where(rng.random(n) < 0.75, true, ~true).astype(int)
    with pm.Model() as model:
        b = pm.Normal("b", 0, 2, shape=3)
        record = pm.Bernoulli("record", logit_p=b[0] + b[1] * z[:, 0] + b[2] * z[:, 1])
        mechanism = pmd.RandomizedResponse(0.75, categories=2)
        mechanism.observe("answer", record, released=answers)
    return model


def item_responses(n):
    """Five randomised answers of each person, whose ability isn't known (Rasch 1960)."""
    rng = np.random.default_rng(1)
    hard = np.linspace(-1, 1, 5)
    true = rng.random((n, 5)) < 1 / (1 + np.exp(hard - rng.normal(0, 1.3, (n, 1))))
    answers = np.where(rng.random((n, 5)) < 0.8, true, ~true).astype(int)
    with pm.Model() as model:
        spread = pm.HalfNormal("spread", 2)
        ability = pm.Normal("ability", 0, spread, shape=n)
        difficulty = pm.Normal("difficulty", 0, 2, shape=5)
        record = pm.Bernoulli("record", logit_p=ability[:, None] - difficulty, shape=(n, 5))
        pmd.RandomizedResponse(0.8, categories=2).observe("answer", record, released=answers)
    return model


def answers_of_classes(n):
    """Five randomised answers of each person, whose class isn't known."""
    rng = np.random.default_rng(1)
    chances = np.array([[0.1, 0.2, 0.2, 0.3, 0.1], [0.8, 0.7, 0.9, 0.6, 0.7]])
    true = rng.random((n, 5)) < chances[(rng.random(n) < 0.4).astype(int)]
    answers = np.where(rng.random((n, 5)) < 0.8, true, ~true).astype(int)
    with pm.Model() as model:
        share = pm.Dirichlet("share", np.ones(2))
        p = pm.Beta("p", 1, 1, shape=(2, 5))
        of_person = pm.Categorical("of_person", share, shape=n)
        record = pm.Bernoulli("record", p[of_person], shape=(n, 5))
        pmd.RandomizedResponse(0.8, categories=2).observe("answer", record, released=answers)
    return model


def outcomes(n):
    """A logistic regression of public answers on a private column, whose counts are released."""
    rng = np.random.default_rng(1)
    private = rng.integers(0, 3, n)
    ill = (rng.random(n) < 1 / (1 + np.exp(1.0 - private))).astype(int)
    released = np.bincount(private, minlength=3) + rng.normal(0, 10, 3)
    with pm.Model() as model:
        share = pm.Dirichlet("share", np.ones(3))
        b = pm.Normal("b", 0, 1.5, shape=2)
        record = pm.Categorical("record", share, shape=n)
        pm.Bernoulli("ill", logit_p=b[0] + b[1] * record, observed=ill)
        table = pmd.statistics.counts(record, 3)
        pmd.GaussianMechanism(10.0).potential("privacy", table, released=released)
    return model


def survey(n):
    """People in areas with an effect each; noisy counts by area."""
    rng = np.random.default_rng(1)
    area = rng.integers(0, AREAS, n)
    effect = rng.normal(-1, 0.5, AREAS)
    ill = rng.random(n) < 1 / (1 + np.exp(-effect[area]))
    of_person = pt.as_tensor(area)  # PyTensor goes through a NumPy index entry by entry
    released = np.bincount(area, ill, AREAS) + rng.normal(0, 10, AREAS)
    with pm.Model() as model:
        mean, spread = pm.Normal("mean", 0, 2), pm.HalfNormal("spread", 1)
        effect = pm.Normal("effect", mean, spread, shape=AREAS)
        record = pm.Bernoulli("record", logit_p=effect[of_person])
        by_area = pt.zeros(AREAS)[of_person].inc(record)
        pmd.GaussianMechanism(10.0).potential("privacy", by_area, released=released)
    return model


MODELS = {
    "admissions": (admissions, ["p"]),
    "randomised_response": (randomised_response, ["p"]),
    "by_covariates": (by_covariates, ["b"]),
    "item_responses": (item_responses, ["spread", "difficulty"]),
    "answers_of_classes": (answers_of_classes, ["share", "p"]),
    "outcomes": (outcomes, ["share", "b"]),
    "survey": (survey, ["mean", "spread", "effect"]),
}
SIZES = {
    "admissions": PEOPLE,
    "randomised_response": ANSWERS,
    "by_covariates": REGRESSED,
    "item_responses": EXAMINED,
    "answers_of_classes": EXAMINED,
    "outcomes": (2_000, 20_000),
    "survey": (SURVEYED,),
}


def measure(name, n, *, tabulate, draws, tune):
    """Sample once; seconds, effective draws and memory."""
    build, parameters = MODELS[name]
    model = build(n)
    began, times = process_time(), []
    sampled = pmd.tabulate(model) if tabulate else model
    idata = pmd.sample(
        draws,
        tune=tune,
        chains=1,
        cores=1,
        random_seed=1,
        progressbar=False,
        model=sampled,
        tabulate=False,
        compute_convergence_checks=False,
        callback=lambda trace, draw: times.append(process_time()),
    )
    ends = np.linspace(tune, tune + draws - 1, BLOCKS + 1).round().astype(int)
    per_draw = float(np.median(np.diff(np.array(times)[ends]) / np.diff(ends)))
    effective = min(float(x.min()) for x in az.ess(idata, var_names=parameters).values())
    rate, before = effective / (per_draw * draws), times[tune] - began
    return {
        "first draw": times[0] - began,
        "ms per draw": 1e3 * per_draw,
        "effective draws per second": rate,
        "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "thousand": before + 1_000 / rate,
    }


def rows(names, draws, tune):
    """Measure all, each in a process of its own."""
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "NUMBA")}
    for name in names:
        for n in SIZES[name]:
            for tabulate in (True, False) if n <= ONE_BY_ONE else (True,):
                few = draws if tabulate else max(300, min(draws, 100_000_000 // n))
                job = {"name": name, "n": n, "tabulate": tabulate, "draws": few, "tune": tune}
                if name == "survey":
                    job |= {"draws": SURVEY_DRAWS, "tune": SURVEY_TUNE}
                done = subprocess.run(
                    [sys.executable, "-m", "benchmarks.tabulated", "--job", json.dumps(job)],
                    env={**os.environ, **threads},
                    cwd=ROOT,
                    capture_output=True,
                    text=True,
                    check=True,
                )
                yield job, json.loads(done.stdout.splitlines()[-1])


def table(measured):
    """A table of the measurements."""
    header = ["model, people", "way", "first draw, s", "ms per draw", "effective draws/s", "MB"]
    header.append("s to 1,000 effective")
    lines = []
    for job, result in measured:
        label = f"{job['name'].replace('_', ' ')}, {job['n']:,}"
        way = "table" if job["tabulate"] else "records"
        numbers = [f"{x:.2g}" for x in list(result.values())[:2]]
        rate = result["effective draws per second"]
        effective = f"{float(f'{rate:.2g}'):,.0f}" if rate >= 10 else f"{rate:.2g}"
        lines.append([label, way, *numbers, effective, f"{result['MB']:.0f}"])
        lines[-1].append(f"{result['thousand']:.2g}")
    return example("_markdown").table(header, lines)


def main(*, job, only, draws, tune, page):
    """Measure and print; write the table into a page if one is given."""
    if job is not None:
        logging.getLogger("pymc").setLevel(logging.ERROR)
        given = json.loads(job)
        print(json.dumps(measure(given.pop("name"), given.pop("n"), **given)))
        return
    shown = table(rows([only] if only else list(MODELS), draws, tune))
    print(shown)
    example("_markdown").fill_file(page, {"people": shown})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=MODELS)
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--tune", type=int, default=1_000)
    parser.add_argument("--page", type=Path, help="page to write the table into")
    main(**vars(parser.parse_args()))
