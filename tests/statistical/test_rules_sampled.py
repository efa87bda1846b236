"""Chains for each rule of publication, of counts, records and latent totals, against exact answers.

One model has a row of three numbers for each rule. The posterior of a row is summed, or integrated,
over a grid of all three; the probability of what was published is written out there by SciPy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dapper as pmd
from tests.monte_carlo import z_score_of_mean

SCALE, RECORDS, HIDDEN = 2.0, 20, np.nan
NOISE = pmd.LaplaceMechanism(SCALE)
EVERYWHERE = (-np.inf, np.inf)
MIDDLES = stats.laplace.ppf((np.arange(300) + 0.5) / 300)
"""Equally likely values of noise of scale one."""


@dataclass(frozen=True)
class Case:
    """How a rule enters a model, its probability at a grid of three axes, and a mistaken one."""

    add: Callable[[str, Any], Any]
    probability: Callable[..., np.ndarray]
    mistaken: Callable[..., np.ndarray]
    mean: float = 6.0
    of_totals: bool = True


def between(x, low, high, scale=SCALE):
    """Probability that x with noise lies between two ends."""
    return stats.laplace.cdf(high, x, scale) - stats.laplace.cdf(low, x, scale)


def density(x, released, scale=SCALE):
    return stats.laplace.pdf(released, x, scale)


def each_between(*spans):
    return lambda *x: np.prod(
        np.broadcast_arrays(*(between(axis, *ends) for axis, ends in zip(x, spans, strict=True))),
        axis=0,
    )


def entries(mechanism, released, spans, mistaken, **options):
    """A rule for each entry: where the noisy values lay, and where one might think they did."""
    return Case(
        lambda name, x: mechanism.observe(name, x, released=released),
        each_between(*spans),
        each_between(*mistaken),
        **options,
    )


def of_total(f):
    """Evaluate f(a, total) at a grid, where few totals differ."""

    def evaluate(a, b, c):
        total, place = np.unique(np.round(a + b + c, 9), return_inverse=True)
        table = f(a.ravel()[:, None], total)
        return table[np.arange(a.size)[:, None, None], place.reshape(a.size, b.size, c.size)]

    return evaluate


def add_share(name, x):
    below = pm.Laplace(f"{name} below", x.sum(), 4.0, initval=18.0)
    share = pmd.LaplaceMechanism(SCALE / pt.abs(below)).clamped(0, 1).rounded(0.1)
    share.observe(name, x[0] / below, released=0.5)


def share_of_noisy(a, total):
    below = total + 4.0 * MIDDLES[:, None, None]
    return np.abs(between(a, 0.45 * below, 0.55 * below)).mean(axis=0)


def add_change(name, x):
    before = pm.Laplace(f"{name} before", x[1] + x[2], 1.0, initval=12.0)
    change = pmd.LaplaceMechanism(SCALE / pt.abs(before)).rounded(0.25, ties="down")
    change.observe(name, x[0] / before - 1, released=-0.5)


def change(low, high):
    def probability(a, b, c):
        total, place = np.unique(np.round(b + c, 9), return_inverse=True)
        before = total + MIDDLES[:, None, None]
        table = np.abs(between(a.reshape(-1, 1), low * before, high * before)).mean(axis=0)
        return table[np.arange(a.size)[:, None, None], place.reshape(1, b.size, c.size)]

    return probability


def add_published_share(name, x):
    NOISE.observe(f"{name} count", x.sum(), released=20.5)
    share = pmd.LaplaceMechanism(SCALE / 20.5).clamped(0, 1).rounded(0.1)
    share.observe(name, x[0] / 20.5, released=0.5)


def add_decided(name, x):
    NOISE.in_ranges([5]).observe(f"{name} shown", x[:2], released=[1, 0])
    pmd.LaplaceMechanism(3.0).observe(name, x[2], released=7.5)


def add_largest(name, x):
    pmd.NoisyMaxMechanism(3.0, 3, k=2).observe(f"{name} chosen", x, released=[1, 0])
    NOISE.observe(name, x[np.array([1, 0])], released=[7.5, 7.0])


def largest(a, b, c):
    a, b, c = np.broadcast_arrays(a, b, c)
    first, second, third = (np.exp(x / 3.0) for x in (b, a, c))
    return first / (first + second + third) * second / (second + third)


def add_level(name, x):
    pmd.LaplaceMechanism(4.0).in_ranges([15]).observe(f"{name} level", x.sum(), released=0)
    pmd.LaplaceMechanism(4.0).observe(name, x.sum(), released=19.5)


def add_unknown_scale(name, x):
    scale = pm.HalfNormal(f"{name} scale", 6.0)
    mechanism = pmd.LaplaceMechanism(scale).rounded(5).published_if(">=", 5)
    mechanism.observe(name, x, released=[15, HIDDEN, 5])


def unknown_scale(a, b, c):
    scales = 0.05 + 0.15 * np.arange(200)
    spans = zip((a, b, c), ((12.5, 17.5), (-np.inf, 2.5), (2.5, 7.5)), strict=True)
    each = [between(x.ravel(), *ends, scales[:, None]) for x, ends in spans]
    return np.einsum("s,sa,sb,sc->abc", stats.halfnorm.pdf(scales, scale=6.0), *each, optimize=True)


def add_own_scale(name, x):
    pmd.LaplaceMechanism(0.5 + x / 3).observe(name, x, released=[4.5, 11.5, 2.0])


def own_scale(*x):
    return np.prod(
        np.broadcast_arrays(
            *(density(axis, y, 0.5 + axis / 3) for axis, y in zip(x, (4.5, 11.5, 2.0), strict=True))
        ),
        axis=0,
    )


def add_nonempty(name, x):
    NOISE.nonempty().published_if(">=", 3).observe(name, x, released=[4.0, HIDDEN, HIDDEN])


def rounded_at_random(x, released, up=(1 / 3, 2 / 3)):
    """Probability that a count is published as a multiple of 3."""
    rest = (np.asarray(x) % 3).astype(int)
    to_above = np.array([0.0, *up])[rest]
    low = x - rest
    return np.where(released == low, 1 - to_above, np.where(released == low + 3, to_above, 0.0))


ROUNDING = pmd.RandomRounding(3)
CHANGES = np.array([[0, 1, 0, 0], [0.4, 0, 0.4, 0.2], [0.1, 0.4, 0.4, 0.1]])
CHANGED = pmd.TransitionMechanism(CHANGES, differences=[-1, 0, 1, 2], repeats=2)


def changed(x, *released):
    """Probability that a count is published as one of some values. Two rows of the table repeat."""
    row = np.where(x <= 2, x, 1 + (np.asarray(x) - 1) % 2).astype(int)
    each = [np.where(r - x == k - 1, CHANGES[row, k], 0.0) for r in released for k in range(4)]
    return sum(each)


def add_rounded_margins(name, x):
    ROUNDING.observe(name, x, released=[3, 9, 6])
    ROUNDING.observe(f"{name} first two", x[:2].sum(), released=15)
    ROUNDING.observe(f"{name} all", x.sum(), released=18)


def rounded_margins(a, b, c):
    margins = rounded_at_random(a + b, 15) * rounded_at_random(a + b + c, 18)
    return rounded_cells(a, b, c) * margins


def rounded_cells(a, b, c):
    return rounded_at_random(a, 3) * rounded_at_random(b, 9) * rounded_at_random(c, 6)


def add_suppressed_beside_a_margin(name, x):
    CHANGED.published_if(">=", 4).observe(name, x, released=[HIDDEN, 8, HIDDEN])
    CHANGED.observe(f"{name} all", x.sum(), released=16)


def suppressed_beside_a_margin(a, b, c):
    hidden = [changed(x, -1, 0, 1, 2, 3) for x in (a, c)]
    return hidden[0] * changed(b, 8) * hidden[1] * changed(a + b + c, 16)


CASES = {
    "rounded at random, with margins of their own": Case(
        add_rounded_margins, rounded_margins, rounded_cells, of_totals=False
    ),
    "changed by a table, suppressed, beside a margin": Case(
        add_suppressed_beside_a_margin,
        suppressed_beside_a_margin,
        lambda a, b, c: changed(b, 8) * changed(a + b + c, 16),
        of_totals=False,
    ),
    "left out, beside margins": Case(
        lambda name, x: (
            ROUNDING.observe(name, x[1:], released=[9, 6]),
            ROUNDING.observe(f"{name} all", x.sum(), released=18),
        ),
        lambda a, b, c: (
            rounded_at_random(b, 9) * rounded_at_random(c, 6) * rounded_at_random(a + b + c, 18)
        ),
        lambda a, b, c: rounded_at_random(b, 9) * rounded_at_random(c, 6) * rounded_at_random(a, 3),
        of_totals=False,
    ),
    "above a threshold": entries(
        NOISE.rounded().published_if(">", 5),
        [6, HIDDEN, HIDDEN],
        [(5.5, 6.5), (-np.inf, 5.5), (-np.inf, 5.5)],
        [(5.5, 6.5), (-np.inf, 4.5), (-np.inf, 4.5)],
    ),
    "suppressed": entries(
        NOISE.published_if(">=", 8).rounded(4).clamped(None, 12),
        [12, HIDDEN, 8],
        [(10, np.inf), (-np.inf, 8), (8, 10)],
        [(10, np.inf), EVERYWHERE, (8, 10)],
    ),
    "down": entries(
        NOISE.rounded(4, ties="down"),
        [4, 8, 0],
        [(4, 8), (8, 12), (0, 4)],
        [(2, 6), (6, 10), (-2, 2)],
    ),
    "half up, of even numbers": entries(
        NOISE.rounded(2).rounded(4, ties="half up"),
        [4, 8, 0],
        [(1, 5), (5, 9), (-3, 1)],
        [(3, 5), (5, 11), (-3, 3)],
    ),
    "clamped, then rounded": entries(
        NOISE.clamped(0, 10).rounded(4),
        [8, 4, 0],
        [(6, np.inf), (2, 6), (-np.inf, 2)],
        [(6, 10), (2, 6), (-2, 2)],
    ),
    "per cent": entries(
        NOISE.times(10).rounded(25).clamped(None, 75),
        [75, 50, 75],
        [(6.25, np.inf), (3.75, 6.25), (6.25, np.inf)],
        [(6.25, 8.75), (3.75, 6.25), (6.25, 8.75)],
    ),
    "ranges": entries(
        NOISE.in_ranges([3, 8]),
        [0, 1, 2],
        [(-np.inf, 3), (3, 8), (8, np.inf)],
        [(-np.inf, 5), (5, 8), (8, np.inf)],
    ),
    "nonempty rows": Case(
        add_nonempty,
        lambda a, b, c: (
            np.where(a > 0, density(a, 4.0), 0)
            * np.where(b > 0, between(b, -np.inf, 3), 1)
            * np.where(c > 0, between(c, -np.inf, 3), 1)
        ),
        lambda a, b, c: density(a, 4.0) * between(b, -np.inf, 3) * between(c, -np.inf, 3),
        mean=1.5,
        of_totals=False,
    ),
    "a share of a noisy number": Case(
        add_share,
        of_total(share_of_noisy),
        of_total(lambda a, total: between(a, 0.45 * total, 0.55 * total)),
    ),
    "a change": Case(add_change, change(0.5, 0.75), change(0.375, 0.625)),
    "a share of a published number": Case(
        add_published_share,
        lambda a, b, c: density(a + b + c, 20.5) * between(a, 0.45 * 20.5, 0.55 * 20.5),
        of_total(lambda a, total: density(total, 20.5) * between(a, 0.45 * total, 0.55 * total)),
    ),
    "another value decides": Case(
        add_decided,
        lambda a, b, c: between(a, 5, np.inf) * between(b, -np.inf, 5) * density(c, 7.5, 3.0),
        lambda a, b, c: np.ones_like(a) * np.ones_like(b) * density(c, 7.5, 3.0),
    ),
    "the two largest, with values": Case(
        add_largest,
        lambda a, b, c: largest(a, b, c) * density(b, 7.5) * density(a, 7.0),
        lambda a, b, c: density(b, 7.5) * density(a, 7.0) * np.ones_like(c),
    ),
    "a level of detail": Case(
        add_level,
        lambda a, b, c: between(a + b + c, -np.inf, 15, 4.0) * density(a + b + c, 19.5, 4.0),
        lambda a, b, c: density(a + b + c, 19.5, 4.0),
    ),
    "an unknown scale": Case(
        add_unknown_scale,
        unknown_scale,
        each_between((12.5, 17.5), (-np.inf, 2.5), (2.5, 7.5)),
    ),
    "a scale of its own": Case(
        add_own_scale,
        own_scale,
        lambda *x: np.prod(
            np.broadcast_arrays(
                *(density(axis, y) for axis, y in zip(x, (4.5, 11.5, 2.0), strict=True))
            ),
            axis=0,
        ),
    ),
}
MEANS = np.array([[case.mean] for case in CASES.values()])
REAL, WHOLE = 0.125 + 0.25 * np.arange(160), np.arange(30.0)
LATENT = {
    "count": (WHOLE, lambda mean: stats.poisson.pmf(WHOLE, mean)),
    "record": (WHOLE, lambda mean: stats.binom.pmf(WHOLE, RECORDS, mean / RECORDS)),
    "total": (REAL, lambda mean: stats.gamma.pdf(REAL, 4, scale=mean / 4)),
}


def moments(x):
    """Means, squares and products of three numbers, along the last axis."""
    a, b, c = np.moveaxis(x, -1, 0)
    return np.stack([a, b, c, a * a, b * b, c * c, a * b, b * c, a * c], axis=-1)


def exact(probability, grid, prior):
    posterior = probability(*np.ix_(grid, grid, grid)) * prior[:, None, None]
    posterior = posterior * prior[:, None] * prior
    posterior /= posterior.sum()
    ones = np.ones_like(grid)
    powers = {0: ones, 1: grid, 2: grid**2}
    wanted = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 0, 0), (0, 2, 0), (0, 0, 2)]
    wanted += [(1, 1, 0), (0, 1, 1), (1, 0, 1)]
    by_c = {k: posterior @ power for k, power in powers.items()}
    return np.array([powers[i] @ by_c[k] @ powers[j] for i, j, k in wanted])


@pytest.mark.long
def test_chains_for_each_rule_are_exact_and_for_a_mistaken_rule_are_not():
    with pm.Model():
        shape = (len(CASES), 3)
        count = pm.Poisson("count", MEANS, shape=shape)
        record = pm.Bernoulli("record", MEANS / RECORDS, shape=(RECORDS, *shape))
        total = pm.Gamma("total", 4, 4 / MEANS, shape=shape)
        latent = {"count": count, "record": record.sum(axis=0), "total": total}
        for row, (name, case) in enumerate(CASES.items()):
            for kind, x in latent.items():
                if case.of_totals or kind != "total":
                    case.add(f"{name}, {kind}", x[row])
        # PyMC's own NUTS would evaluate, and compile, all rules of counts and records, too.
        steps = pmd.assign_steps(
            [record], counts=[count], conjugate=False, interweave=False, marginalise=False
        )
        # Records mix slowest, and a sweep of them takes a fiftieth of NUTS's time.
        [sweep] = [step for step in steps if isinstance(step, pmd.DapperStep)]
        drawn = pm.sample(
            7_500,
            tune=500,
            chains=1,
            cores=1,
            step=[*steps, *10 * [sweep]],
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        ).posterior
    draws = {
        "count": drawn["count"].values[0],
        "record": drawn["record"].values[0].sum(axis=1),
        "total": drawn["total"].values[0],
    }
    for kind, (grid, prior) in LATENT.items():
        for row, (name, case) in enumerate(CASES.items()):
            if kind == "total" and not case.of_totals:
                continue
            of_row = moments(draws[kind][:, row]).T

            def z(probability):
                answers = exact(probability, grid, prior(case.mean))  # noqa: B023
                return max(abs(z_score_of_mean(*x)) for x in zip(of_row, answers, strict=True))  # noqa: B023

            assert z(case.probability) < 4.5, (kind, name)
            assert z(case.mistaken) > 6, (kind, name)
