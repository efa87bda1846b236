"""Simulation-based calibration of each rule of publication, by exact posteriors: no chains.

A rate is drawn, then counts of a few rows, which are released by ``release``. The posterior of the
rate and of the first count is summed from ``logp``. Where the truth lies in it, ties broken at
random, is uniform (Talts et al. 2018), and isn't for the likelihood of a rule that was mistaken.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.mechanisms.published import PublishedByRules

REPLICATES, ROWS, RECORDS = 3000, 5, 6
RATES = np.array([0.05, 0.2, 0.35, 0.5, 0.65, 0.8])
COUNTS = np.arange(RECORDS + 1)
OF_COUNT = stats.binom.pmf(COUNTS, RECORDS, RATES[:, None])

COUNTED = pmd.DiscreteLaplaceMechanism(1.5)
MEASURED = pmd.LaplaceMechanism(1.5)
SHARE = pmd.LaplaceMechanism(0.2)

CHANGED = pmd.CellKey(
    {
        "i": [0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3],
        "v": [0, -1, 2, -2, 0, 1, 2, -3, -1, 0, 1, 3],
        "p": [1, 0.7, 0.3, 0.3, 0.3, 0.2, 0.2, 0.1, 0.2, 0.4, 0.2, 0.1],
    }
)


@dataclass(frozen=True)
class Chosen:
    """Which of some cells are largest, as the count and the rest of the records make them."""

    mechanism: pmd.NoisyMaxMechanism

    def scores(self, count):
        rest = [RECORDS - count, np.full_like(count, 3), np.full_like(count, 1)]
        return np.stack([count, *rest], axis=-1)

    def release(self, count, random_seed):
        return self.mechanism.release(self.scores(count), random_seed=random_seed)

    def log_likelihood(self, released):
        each, which = np.unique(released.reshape(-1, self.mechanism.k), axis=0, return_inverse=True)
        logp = self.mechanism.logp(each[:, None], self.scores(COUNTS))
        return logp.eval(mode="FAST_COMPILE")[which.ravel()].reshape(REPLICATES, ROWS, -1)


@dataclass(frozen=True)
class Quantile(Chosen):
    """A quantile of three candidates, of which the first two have the count and the rest."""

    mechanism: pmd.QuantileMechanism

    def scores(self, count):
        none, one, two = (np.full_like(count, n) for n in range(3))
        return np.stack([none, count, none, RECORDS - count, none, one, two], axis=-1)

    def log_likelihood(self, released):
        each, which = np.unique(released, return_inverse=True)
        logp = self.mechanism.logp(each[:, None], self.scores(COUNTS))
        return logp.eval(mode="FAST_COMPILE")[which.ravel()].reshape(REPLICATES, ROWS, -1)


@dataclass(frozen=True)
class Entries:
    """Counts in some units, each released by itself."""

    mechanism: PublishedByRules
    of_count: Callable[[Any], Any] = lambda count: count
    ignored: bool = False
    """Whether rows that aren't there are taken for forgotten ones."""

    def release(self, count, random_seed):
        released = self.mechanism.release(self.of_count(count), random_seed=random_seed)
        return np.ma.filled(np.ma.asarray(released).astype(float), np.nan)

    def log_likelihood(self, released):
        each, which = np.unique(released, return_inverse=True)
        logp = self.mechanism.logp(each[:, None], self.of_count(COUNTS)[None])
        logp = logp.eval(mode="FAST_COMPILE")
        if self.ignored:
            logp[np.isnan(each)] = 0
        return logp[which.ravel()].reshape(REPLICATES, ROWS, -1)


@dataclass(frozen=True)
class ByAnother:
    """Totals that are there if another noisy value is high enough."""

    decides: Entries | None
    total: Entries

    def release(self, count, random_seed):
        shown = self.decides.release(count, random_seed)
        total = self.total.release(count, random_seed)
        return np.stack([shown, np.where(shown == 1, total, np.nan)])

    def log_likelihood(self, released):
        shown, total = released
        of_total = self.total.log_likelihood(np.nan_to_num(total))
        logp = np.where((shown == 1)[..., None], of_total, 0.0)
        return logp + self.decides.log_likelihood(shown) if self.decides else logp


def share(count):
    return count / RECORDS


def share_of_fewer(count):
    """A share that can be above 1, of two thirds as many."""
    return 1.5 * count / RECORDS


def largest(scale, **options):
    return Chosen(pmd.NoisyMaxMechanism(scale, 4, **options))


def quantile(alpha, scale, noise):
    return Quantile(pmd.QuantileMechanism([1.0, 2.0, 3.0], alpha, scale, noise))


TOTALS = Entries(pmd.LaplaceMechanism(2.0), lambda count: 2 * count)

CASES = {
    ">= for >": (
        Entries(COUNTED.published_if(">", 3)),
        Entries(COUNTED.published_if(">=", 3)),
    ),
    "suppression ignored": (
        Entries(COUNTED.published_if(">=", 3)),
        Entries(COUNTED.published_if(">=", 3), ignored=True),
    ),
    "suppression by another value ignored": (
        ByAnother(Entries(MEASURED.in_ranges([3])), TOTALS),
        ByAnother(None, TOTALS),
    ),
    "empty rows ignored": (
        Entries(COUNTED.nonempty()),
        Entries(COUNTED.nonempty(), ignored=True),
    ),
    "empty rows as suppressed ones": (
        Entries(COUNTED.nonempty().published_if(">=", 1)),
        Entries(COUNTED.published_if(">=", 1)),
    ),
    "half up for down": (
        Entries(COUNTED.rounded(4, ties="down")),
        Entries(COUNTED.rounded(4, ties="half up")),
    ),
    "down for half even": (
        Entries(MEASURED.rounded(4)),
        Entries(MEASURED.rounded(4, ties="down")),
    ),
    "suppression before rounding": (
        Entries(COUNTED.rounded(4).published_if(">=", 4)),
        Entries(COUNTED.published_if(">=", 4).rounded(4)),
    ),
    "clamped and rounded, as if not clamped": (
        Entries(COUNTED.clamped(1, 5).rounded(2)),
        Entries(COUNTED.rounded(2)),
    ),
    "rounded and clamped, as if not clamped": (
        Entries(COUNTED.rounded(2).clamped(2, 4)),
        Entries(COUNTED.rounded(2)),
    ),
    "clamped and rounded, as if rounded first": (
        Entries(COUNTED.clamped(1, 5).rounded(4, ties="half up")),
        Entries(COUNTED.rounded(4, ties="half up").clamped(0, 8)),
    ),
    "other ranges": (
        Entries(MEASURED.in_ranges([2, 4])),
        Entries(MEASURED.in_ranges([1, 3])),
    ),
    "per cent, rounded down": (
        Entries(SHARE.clamped(0, 1).times(100).rounded(25), share),
        Entries(SHARE.clamped(0, 1).times(100).rounded(25, ties="down"), share),
    ),
    "per cent, as if not clamped": (
        Entries(SHARE.clamped(0, 1).times(100).rounded(25), share_of_fewer),
        Entries(SHARE.times(100).rounded(25), share_of_fewer),
    ),
    "largest, of a third of the scale": (largest(3.0), largest(1.0)),
    "largest by exponential noise, of a sixth of the scale": (
        largest(3.0, noise="exponential"),
        largest(0.5, noise="exponential"),
    ),
    "a quarter for a median": (
        quantile(0.5, 1.0, "exponential"),
        quantile(0.25, 1.0, "exponential"),
    ),
    "a 90 % quantile, of a third of the scale": (
        quantile(0.9, 1.5, "gumbel"),
        quantile(0.9, 0.5, "gumbel"),
    ),
    "rounded at random, as if published as it is": (
        Entries(pmd.RandomRounding(3)),
        Entries(pmd.TransitionMechanism(np.eye(RECORDS + 1))),
    ),
    "rounded at random, as if all went up alike": (
        Entries(pmd.RandomRounding(3)),
        Entries(pmd.RandomRounding(3, [0.7, 0.3])),
    ),
    "changed by a table, of which suppression is ignored": (
        Entries(CHANGED.published_if(">=", 3)),
        Entries(CHANGED.published_if(">=", 3), ignored=True),
    ),
    "a set for an order": (
        largest(1.0, k=2, ordered=False),
        largest(1.0, k=2),
    ),
}


def uniformity(case, curator, seed):
    """P-values that places of the truth are uniform, when the curator released."""
    rng = np.random.default_rng(seed)
    rate = rng.integers(len(RATES), size=REPLICATES)
    count = rng.binomial(RECORDS, RATES[rate][:, None], size=(REPLICATES, ROWS))
    likelihood = np.exp(case.log_likelihood(curator.release(count, random_seed=rng)))
    # By replicate, row, rate and count.
    joint = likelihood[:, :, None] * OF_COUNT
    rows = joint.sum(axis=-1)
    of_rate = rows.prod(axis=1)
    of_first = (joint[:, 0] * rows[:, 1:].prod(axis=1)[..., None]).sum(axis=1)
    return {
        "rate": place(of_rate, rate, rng),
        "count": place(of_first, count[:, 0], rng),
    }


def place(weights, true, rng):
    posterior = weights / weights.sum(axis=-1, keepdims=True)
    at_true = np.take_along_axis(posterior, true[:, None], axis=-1)[:, 0]
    up_to = np.take_along_axis(posterior.cumsum(axis=-1), true[:, None], axis=-1)[:, 0]
    return stats.kstest(up_to - rng.random(len(true)) * at_true, "uniform").pvalue


@pytest.mark.parametrize("name", CASES)
def test_each_rule_is_calibrated_and_what_it_is_taken_for_is_not(name):
    rule, twin = CASES[name]
    assert min(uniformity(rule, rule, seed=1).values()) > 1e-3
    assert min(uniformity(twin, rule, seed=1).values()) < 1e-6
