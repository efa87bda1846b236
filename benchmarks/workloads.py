"""What is timed: models, their data, and the loops written by hand for them.

The paper's examples are loaded from examples/, as they stand there. With more records, the released
values are those of more people of the same kind. All simulated data have a fixed seed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dapper as pmd
from benchmarks import by_hand
from benchmarks._models import example


@dataclass(frozen=True)
class Workload:
    """A model to sample.

    Attributes
    ----------
    n : int
        Number of records.
    records : list of str
        Names of the record variables.
    parameters : dict
        Values of the parameters to time sweeps at, by name: near the posterior's middle.
    build : callable
        ``build() -> pm.Model``.
    loop : callable
        ``loop(rng, draws)``: the loop by hand; parameters, of shape (draws, number of them).
    sweep : callable
        ``sweep(rng, times)``: sweeps by hand over the records, parameters as above.
    unconstrained : dict
        ``build()`` functions of models for samplers that move all records at once, by name.
    r_data : dict or None
        Arguments of the script of the same name in benchmarks/r; None if there is no script.
    """

    n: int
    records: list[str]
    parameters: dict[str, Any]
    build: Callable[[], pm.Model]
    loop: Callable[[np.random.Generator, int], np.ndarray]
    sweep: Callable[[np.random.Generator, int], None]
    unconstrained: dict[str, Callable[[], pm.Model]] = field(default_factory=dict)
    r_data: dict[str, Any] | None = None


def _sweep(kernel, *arguments):
    """Sweeps that go on from where the last ones ended."""
    return lambda rng, times: by_hand.repeat(kernel, rng, times, arguments)


def randomised_response():
    """Example 1 of the dapper paper: two randomised answers of each of 400 applicants."""
    module = example("randomised_response")
    male, admitted = (np.array(module.DATA[f"answered_{x}"]) for x in ("male", "admitted"))
    keep = module.DATA["keep_probability"]
    one = np.array([[keep, 1 - keep], [1 - keep, keep]])
    channel = np.kron(one, one)
    answers = 2 * (1 - male) + (1 - admitted)
    p = np.array(module.DATA["confidential"]) / len(male)
    return Workload(
        n=len(male),
        records=["record"],
        parameters={"p": p},
        build=partial(module.build_model, male, admitted, keep),
        loop=lambda rng, draws: by_hand.randomised_response(rng, draws, answers, channel),
        sweep=_sweep(by_hand.draw_records, p, answers, channel, np.zeros(len(male), dtype=int)),
        r_data={"answer": answers, "keep": keep},
    )


def admissions(n=400):
    """Example 2 of the dapper paper: a table of four counts with discrete Gaussian noise."""
    module = example("admissions")
    sigma, times = module.DATA["sigma"], n / module.DATA["n"]
    released = np.round(np.array(module.DATA["released"]) * times).astype(int)
    p = released / released.sum()
    as_floats = released.astype(float)
    return Workload(
        n=n,
        records=["record"],
        parameters={"p": p},
        build=partial(module.build_model, released, sigma, n),
        loop=lambda rng, draws: by_hand.admissions(rng, draws, as_floats, sigma, n),
        sweep=_sweep(by_hand.sweep_table, p, np.arange(n) % 4, as_floats, sigma),
        r_data={"released": released, "sigma": sigma, "n": n},
    )


def regression(n=50):
    """Example 3 of the dapper paper: a regression from nine noisy sums."""
    module = example("regression")
    scale = module.DATA["noise_scale"]
    if n != module.N:
        rng = np.random.default_rng(1)
        x = module.X_MEAN + rng.standard_normal((n, 2))
        noise = np.sqrt(module.NOISE_VARIANCE) * rng.standard_normal(n)
        y = module.TRUE[0] + x @ np.array(module.TRUE[1:]) + noise
        sums = pmd.statistics.regression(x, y, clamp=module.CLAMP)
        module.N, module.RELEASED = n, np.asarray(sums) + rng.laplace(0, scale, 9)
    known = (module.X_MEAN, module.NOISE_VARIANCE, module.PRIOR_SD**2, module.RELEASED, scale)
    b = np.array(module.TRUE)
    x, y = np.tile(module.X_MEAN, (n, 1)), np.zeros(n)
    noise_sd = np.sqrt(module.NOISE_VARIANCE)
    return Workload(
        n=n,
        records=["x", "y"],
        parameters={"b": b},
        build=module.build_model,
        loop=lambda rng, draws: by_hand.regression(rng, draws, n, *known),
        sweep=_sweep(
            by_hand.sweep_regression, b, x, y, module.X_MEAN, noise_sd, module.RELEASED, scale
        ),
        unconstrained={
            "centred": module.build_model,
            "non-centred": partial(_regression_of_noise, module),
        },
        r_data={"released": module.RELEASED, "scale": scale, "n": n},
    )


def _regression_of_noise(module):
    """Example 3 with records as functions of standard noise."""
    mechanism = pmd.LaplaceMechanism(module.DATA["noise_scale"])
    with pm.Model() as model:
        b = pm.Normal("b", 0, module.PRIOR_SD, shape=3)
        x = module.X_MEAN + pm.Normal("x_noise", 0, 1, shape=(module.N, 2))
        y_noise = pm.Normal("y_noise", 0, 1, shape=module.N)
        y = b[0] + x @ b[1:] + np.sqrt(module.NOISE_VARIANCE) * y_noise
        sums = pmd.statistics.regression(x, y, clamp=module.CLAMP)
        mechanism.potential("privacy", sums, released=module.RELEASED)
    return model


def poisson(n=1_000):
    """An unknown rate of events, from the noisy sum of clamped counts."""
    largest, scale, shape, prior_rate = 20, 20.0, 2.0, 0.2
    rng = np.random.default_rng(1)
    released = float(np.minimum(rng.poisson(5.0, n), largest).sum() + rng.laplace(0, scale))

    def build():
        with pm.Model() as model:
            rate = pm.Gamma("rate", shape, prior_rate)
            x = pm.Poisson("x", rate, shape=n)
            total = pt.clip(x, 0, largest).sum()
            pmd.LaplaceMechanism(scale).potential("privacy", total, released=released)
        return model

    known = (largest, released, scale)
    return Workload(
        n=n,
        records=["x"],
        parameters={"rate": 5.0},
        build=build,
        loop=lambda rng, draws: by_hand.poisson(rng, draws, n, shape, prior_rate, *known),
        sweep=_sweep(by_hand.sweep_counts, 5.0, np.full(n, 5), *known),
    )


def logistic_regression(n=1_000):
    """Private outcomes, public covariates: the noisy product of the design with the outcomes."""
    true, scale, prior_sd = np.array([-0.5, 1.0, -1.0, 0.5]), 4.0, 2.0
    rng = np.random.default_rng(1)
    design = np.column_stack([np.ones(n), rng.uniform(-1, 1, (n, 3))])
    outcomes = (rng.random(n) < 1 / (1 + np.exp(-design @ true))).astype(int)
    released = design.T @ outcomes + rng.laplace(0, scale, 4)

    def build():
        with pm.Model() as model:
            b = pm.Normal("b", 0, prior_sd, shape=4)
            y = pm.Bernoulli("y", logit_p=design @ b, shape=n)
            pmd.LaplaceMechanism(scale).potential("privacy", design.T @ y, released=released)
        return model

    def loop(rng, draws):
        return by_hand.logistic_regression(rng, draws, design, prior_sd, released, scale)

    return Workload(
        n=n,
        records=["y"],
        parameters={"b": true},
        build=build,
        loop=loop,
        sweep=_sweep(by_hand.sweep_outcomes, true, np.arange(n) % 2, design, released, scale),
    )


WORKLOADS = {
    "randomised_response": randomised_response,
    "admissions": admissions,
    "regression": regression,
    "poisson": poisson,
    "logistic_regression": logistic_regression,
}
