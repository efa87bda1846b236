"""What moves of InterweaveStep cost, counted and measured: where its constants come from.

How many moves are made in an iteration is chosen by operations that are counted, not by the clock
(`pymc_dapper/graphs/costs.py`, and `counted` in `pymc_dapper/interweaving/kernels/tuning.py`). For
each of some models, of records of several laws and numbers, the table has what was counted of an
evaluation of the moves' log-density, of making any move at all, and of the other steps of an
iteration; and CPU time beside it. What matters is the ratio of the first and the last.

    python -m benchmarks.move_costs
"""

import argparse
import logging
from time import process_time

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dapper as pmd
from benchmarks._models import example
from benchmarks.unknown_number import LAWS, ROOM, N, noise, release
from pymc_dapper.interweaving.kernels.tuning import MOVES_IN_TUNING

# Models -------------------------------------------------------------------------------------------


def one_sum(law, n=1_000):
    """Records of a law, whose parameter isn't known, and their noisy clamped sum."""
    with pm.Model() as model:
        x = law(n)
        pmd.LaplaceMechanism(5.0).potential("total", pt.clip(x, -5, 5).sum(), released=0.4 * n)
    return model


def regression(unknown):
    """Two columns of 1,000 records, and five sums; or room for 2,000."""
    law = LAWS["Regression"]
    count, sums = release(law)
    with pm.Model() as model:
        present = pt.ones(N, dtype="bool")
        if unknown:
            n = pm.DiscreteUniform("n", 0, ROOM)
            pmd.LaplaceMechanism(noise(1)[0]).potential("count", n, released=count)
            present = pmd.present(n, ROOM)
        law.model(sums, present)
    return model


def quantiles(n=1_000):
    """Normal records, and how many of them are below 20 numbers."""
    with pm.Model() as model:
        x = pm.Normal("x", pm.Normal("mu", 0, 1), pm.HalfNormal("sd", 1), shape=n)
        below = pt.stack([(x < end).sum() for end in np.linspace(-2, 2, 20)])
        released = n * np.linspace(0.05, 0.95, 20)
        pmd.GaussianMechanism(5.0).potential("below", below, released=released)
    return model


def covariances(n=200, d=4):
    """Four columns with a covariance matrix, and all sums and sums of products."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1, shape=d)
        chol, *_ = pm.LKJCholeskyCov("chol", n=d, eta=2, sd_dist=pm.HalfNormal.dist(1, size=d))
        x = pm.MvNormal("x", mu, chol=chol, shape=(n, d))
        clipped = pt.clip(x, -3, 3)
        products = [(clipped[:, i] * clipped[:, j]).sum() for i in range(d) for j in range(i + 1)]
        sums = pt.concatenate([clipped.sum(axis=0), pt.stack(products)])
        pmd.LaplaceMechanism(20.0).potential("sums", sums, released=np.zeros(14))
    return model


def logistic(n=500):
    """Answers with a public covariate, and two noisy sums."""
    z = np.random.default_rng(0).normal(size=n)
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=2)
        y = pm.Bernoulli("y", logit_p=b[0] + b[1] * z, shape=n)
        sums = pt.stack([y.sum(), (z * y).sum()])
        pmd.LaplaceMechanism(10.0).potential("sums", sums, released=[n / 2, 0.3 * n])
    return model


def positive(name):
    return pm.Gamma(name, 2, 1)


MODELS = {
    "100 normal": lambda: one_sum(lambda n: pm.Normal("x", pm.Normal("mu"), 1, shape=n), 100),
    "1,000 normal": lambda: one_sum(lambda n: pm.Normal("x", pm.Normal("mu"), 1, shape=n)),
    "10,000 normal": lambda: one_sum(lambda n: pm.Normal("x", pm.Normal("mu"), 1, shape=n), 10_000),
    "lognormal": lambda: one_sum(lambda n: pm.LogNormal("x", pm.Normal("mu"), 1, shape=n)),
    "exponential": lambda: one_sum(lambda n: pm.Exponential("x", positive("rate"), shape=n)),
    "gamma": lambda: one_sum(lambda n: pm.Gamma("x", positive("shape"), 1, shape=n), 100),
    "beta": lambda: one_sum(lambda n: pm.Beta("x", positive("a"), 2, shape=n), 100),
    "student t": lambda: one_sum(
        lambda n: pm.StudentT("x", 4, mu=pm.Normal("mu"), sigma=1, shape=n)
    ),
    "poisson": lambda: one_sum(lambda n: pm.Poisson("x", positive("rate"), shape=n)),
    "bernoulli": lambda: one_sum(lambda n: pm.Bernoulli("x", pm.Beta("p", 1, 1), shape=n)),
    "regression": lambda: regression(False),
    "regression, unknown number": lambda: regression(True),
    "quantile counts": quantiles,
    "covariances": covariances,
    "logistic": logistic,
}

# Costs --------------------------------------------------------------------------------------------


def costs_of(model, iterations):
    """What was counted, and what was measured, of each kind of moves, in microseconds."""
    with model:
        steps = pmd.assign_steps(progressbar=False, interweave=False)
        latent = [x for step in steps if isinstance(step, pmd.DapperStep) for x in step.vars]
        records = [model.values_to_rvs[x] for x in latent]
        moving = [rv for rv in model.free_RVs if rv not in records]
        step = pmd.InterweaveStep(moving, records=records)
    rng = np.random.default_rng(1)
    for each in (*steps, step):
        each.setup_chain(rng.spawn(1)[0], tune=10**9, draws=1)
    point, rest = model.initial_point(), []
    for _ in range(iterations):
        began = process_time()
        for each in steps:
            point, _ = each.step(point)
        rest.append(process_time() - began)
        point, _ = step.step(point)
    compiled = step._compiled[0]
    step.tuner._fit(0)
    uniforms = [rng.random(x.type.shape) for x in compiled.reading.uniforms]
    if compiled.reading.numbers:
        uniforms.append(rng.random(len(compiled.reading.numbers)))
    fit = step.tuner.fits[0]

    def moves(n):
        times, evaluations = [], []
        for _ in range(iterations):
            began = process_time()
            *_, outcome = compiled.call(point, uniforms, fit, n, rng)
            times.append(process_time() - began)
            evaluations.append(1 + outcome[1:].sum())
        return np.median(times), np.mean(evaluations)

    (none, one), (several, many) = moves(0), moves(MOVES_IN_TUNING)
    evaluation = (several - none) / (many - one)
    measured = evaluation, none - evaluation, np.median(rest)
    return [x / 1e3 for x in compiled.costs], [1e6 * x for x in measured]


def main(*, models, iterations):
    """Print the table."""
    logging.getLogger("pymc").setLevel(logging.ERROR)
    lines = []
    for name in models or MODELS:
        counted, measured = costs_of(MODELS[name](), iterations)
        pairs = [f"{a:.3g} / {b:.3g}" for a, b in zip(counted, measured, strict=True)]
        shares = [f"{x[0] / x[2]:.2g}" for x in (counted, measured)]
        lines.append([name, *pairs, " / ".join(shares)])
        print(*lines[-1], sep="  |  ", flush=True)
    header = ["model", "evaluation, us", "set-up, us", "rest, us", "evaluation / rest"]
    print(example("_markdown").table(header, lines, words=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", help=", ".join(MODELS))
    parser.add_argument("--iterations", type=int, default=400)
    main(**vars(parser.parse_args()))
