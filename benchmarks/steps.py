"""Time per draw of DapperStep + ConjugateStep, beside a hand-written loop, on examples 1 and 2.

In one run: a numba loop written for the one model, that makes the same draws; `pm.sample` with two
steps that do nothing; and `pmd.sample`, records not recorded. Prints the ratio

    pmd.sample / (hand-written loop + pm.sample with two no-op steps)

and, after it, what each step costs beyond its kernel: the time of a step on a model of one record.

    python benchmarks/steps.py
"""

import logging
import time
import timeit
import warnings

import numba
import numpy as np
import pymc as pm
from _models import admissions, randomised_response
from pymc.step_methods.compound import BlockedStep

import pymc_dapper as pmd

DRAWS = 20_000
REPEATS = 5


class NoOpStep(BlockedStep):
    """A step that leaves its variables as they are."""

    name = "no_op"

    def __init__(self, vars, *, model=None, rng=None, blocked=True):
        self.vars = vars
        self.blocked = blocked
        self.rng = np.random.default_rng(rng)

    def step(self, point):
        return {**point}, [{}]


@numba.njit
def _draw_dirichlet(rng, counts, p):
    total = 0.0
    for k in range(len(p)):
        p[k] = rng.standard_gamma(1.0 + counts[k])
        total += p[k]
    for k in range(len(p)):
        p[k] /= total


@numba.njit
def _draw_category(rng, weights, total):
    u = rng.random() * total
    k = 0
    while k < len(weights) - 1 and u >= weights[k]:
        u -= weights[k]
        k += 1
    return k


@numba.njit
def hand_written_admissions(rng, released, sigma, n, draws):
    """Example 2: Metropolis on 400 categories against discrete Gaussian noise, then p."""
    kept = np.empty((draws, 4))
    p = np.full(4, 0.25)
    record = np.empty(n, dtype=np.int64)
    counts = np.zeros(4)
    for i in range(n):
        record[i] = i % 4
        counts[record[i]] += 1
    for d in range(draws):
        total = p.sum()
        for i in range(n):
            new, old = _draw_category(rng, p, total), record[i]
            threshold = -rng.standard_exponential()
            if new == old:
                continue
            # Counts change by one in two cells: the ratio of the noise's densities.
            gain = (
                (released[old] - counts[old]) ** 2
                - (released[old] - counts[old] + 1) ** 2
                + (released[new] - counts[new]) ** 2
                - (released[new] - counts[new] - 1) ** 2
            )
            if threshold < gain / (2 * sigma**2):
                record[i] = new
                counts[old] -= 1
                counts[new] += 1
        _draw_dirichlet(rng, counts, p)
        kept[d] = p
    return kept


@numba.njit
def hand_written_randomised_response(rng, answers, channel, draws):
    """Example 1: each record from its conditional given its answer, then p."""
    kept = np.empty((draws, 4))
    p = np.full(4, 0.25)
    counts = np.zeros(4)
    weights = np.empty((4, 4))
    totals = np.empty(4)
    for d in range(draws):
        for answer in range(4):
            for k in range(4):
                weights[answer, k] = p[k] * channel[k, answer]
            totals[answer] = weights[answer].sum()
        counts[:] = 0.0
        for i in range(len(answers)):
            counts[_draw_category(rng, weights[answers[i]], totals[answers[i]])] += 1
        _draw_dirichlet(rng, counts, p)
        kept[d] = p
    return kept


def microseconds(function, draws=DRAWS):
    """Best time per draw of several runs; of this process only, whatever else the machine does."""
    times = timeit.repeat(function, number=1, repeat=REPEATS, timer=time.process_time)
    return min(times) / draws * 1e6


def sampled(model, **kwargs):
    """Time per draw of pm.sample or pmd.sample, by the time of many draws less that of few."""
    options = {
        "tune": 0,
        "chains": 1,
        "cores": 1,
        "progressbar": False,
        "compute_convergence_checks": False,
        "random_seed": 1,
        "model": model,
    }
    sampler = pm.sample if "step" in kwargs else pmd.sample
    long, short = (
        microseconds(lambda draws=draws: sampler(draws, **options, **kwargs), 1)
        for draws in (DRAWS, DRAWS // 10)
    )
    return (long - short) / (DRAWS - DRAWS // 10)


def compare(name, model, by_hand):
    """Print a row of the table."""
    by_hand(10)
    hand = microseconds(lambda: by_hand(DRAWS))
    p = model["p"]
    no_ops = [NoOpStep([model.rvs_to_values[x]], model=model) for x in (p, model["record"])]
    protocol = sampled(model, step=no_ops, var_names=["p"])
    # InterweaveStep is for small budgets, and would not be in the loop by hand.
    ours = sampled(model, var_names=["p"], interweave=False)
    ratio = ours / (hand + protocol)
    print(f"{name:28}{hand:10.1f}{protocol:12.1f}{ours:12.1f}{ratio:10.2f}")


def overhead():
    """Time of a step on one record: nearly all of it is not the kernel's."""
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        x = pm.Bernoulli("x", p, shape=1)
        pm.Potential("privacy", -((x.sum() - 0.3) ** 2))
    point = model.initial_point()
    for step in (pmd.DapperStep([x], model=model), pmd.ConjugateStep([p], model=model)):
        step.setup_chain(np.random.default_rng(1), 0, 10)
        best = microseconds(lambda s=step: [s.step(point) for _ in range(DRAWS)])
        print(f"{type(step).__name__:28}{best:10.1f}")


def main():
    """Print both tables."""
    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(1)

    print("microseconds per draw         by hand    protocol  pmd.sample     ratio")
    model, answers, keep = randomised_response()
    one = np.array([[keep, 1 - keep], [1 - keep, keep]])
    channel = np.kron(one, one)
    compare(
        "example 1, n = 400",
        model,
        lambda draws: hand_written_randomised_response(rng, answers, channel, draws),
    )
    model, released, sigma = admissions()
    compare(
        "example 2, n = 400",
        model,
        lambda draws: hand_written_admissions(rng, released, sigma, 400, draws),
    )
    print("\nmicroseconds of a step with one record")
    overhead()


if __name__ == "__main__":
    main()
