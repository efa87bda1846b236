"""Posteriors of single cells by enumeration, with laws of noise that are SciPy's."""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from scipy import stats

import pymc_dapper as pmd

COUNTS = np.arange(600)


class Case(NamedTuple):
    """What was released of a cell, and its log-probability given counts 0, 1, 2, ..."""

    mechanism: pmd.Mechanism
    released: float
    log_law: np.ndarray

    @property
    def release(self):
        values = [self.released]
        if np.isneginf(self.released):
            # Of a release in which all is suppressed there is nothing to be said.
            values = np.ma.masked_array([0.0, 12.0], [True, False])
        return pmd.Release(pmd.Query("cases", values, self.mechanism, "district"))

    @property
    def pmf(self):
        weights = np.exp(self.log_law - self.log_law.max())
        return weights / weights.sum()


def between(law, low, high):
    return np.log(law.cdf(high - COUNTS) - law.cdf(low - COUNTS))


def discrete(released, weight):
    noise = np.arange(-2000, 2001)
    return np.log(weight(released - COUNTS)) - np.log(weight(noise).sum())


CHANGES = {-3: 0.1, 0: 0.4, 3: 0.5}


def triangle(released, statistic):
    """Log-density of noise of -2, ..., 2, as of a mechanism of a user's own."""
    return pt.log(pt.maximum(3.0 - pt.abs(released - statistic), 0.0) / 9.0)


def of_triangle(released):
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(3.0 - np.abs(released - COUNTS), 0.0) / 9.0)


def own_gaps(released, statistic):
    """The same law, as a log-density of a user's own."""
    noise = released - statistic
    p = sum(p * pt.eq(noise, v) for v, p in CHANGES.items())
    return pt.switch(pt.gt(p, 0), pt.log(pt.maximum(p, 1e-9)), -np.inf)


def of_gaps(released, at_least=None):
    """Log-law of GAPS: the count, or three less or more."""
    with np.errstate(divide="ignore"):
        if at_least is not None:
            return np.log(sum(p * (COUNTS + v < at_least) for v, p in CHANGES.items()))
        return np.log(sum(p * (COUNTS + v == released) for v, p in CHANGES.items()))


GAPS = pmd.TransitionMechanism([[0.1, 0.4, 0.5]], differences=[-3, 0, 3], repeats=1)
LAPLACE, NORMAL = stats.laplace(scale=3.0), stats.norm(scale=4.0)
SUPPRESSED = -np.inf

with np.errstate(divide="ignore"):
    CASES = {
        "Laplace": Case(pmd.LaplaceMechanism(3.0), 17.3, LAPLACE.logpdf(17.3 - COUNTS)),
        "below zero": Case(pmd.LaplaceMechanism(3.0), -4.2, LAPLACE.logpdf(-4.2 - COUNTS)),
        "Gaussian": Case(pmd.GaussianMechanism(4.0), 2.5, NORMAL.logpdf(2.5 - COUNTS)),
        "discrete Laplace": Case(
            pmd.DiscreteLaplaceMechanism(3.0), 4, discrete(4, lambda k: np.exp(-np.abs(k) / 3))
        ),
        "discrete Gaussian": Case(
            pmd.DiscreteGaussianMechanism(4.0), 9, discrete(9, lambda k: np.exp(-(k**2) / 32))
        ),
        "rounded": Case(pmd.LaplaceMechanism(3.0).rounded(5), 15, between(LAPLACE, 12.5, 17.5)),
        "clamped": Case(
            pmd.GaussianMechanism(4.0).clamped(0, None), 0.0, NORMAL.logcdf(0 - COUNTS)
        ),
        "suppressed": Case(
            pmd.LaplaceMechanism(3.0).published_if(">=", 10),
            SUPPRESSED,
            LAPLACE.logcdf(10 - COUNTS),
        ),
        "in a range": Case(
            pmd.GaussianMechanism(4.0).in_ranges([10, 20, 50]), 2, between(NORMAL, 20, 50)
        ),
        "rows that exist": Case(
            pmd.LaplaceMechanism(3.0).nonempty().published_if(">=", 10),
            12.0,
            np.where(COUNTS > 0, LAPLACE.logpdf(12.0 - COUNTS), -np.inf),
        ),
        "of a user's own": Case(
            pmd.CustomMechanism(triangle, whole_numbers=True), 5, of_triangle(5)
        ),
        "randomised response": Case(
            pmd.RandomizedResponse(0.7, 4),
            2,
            np.log(np.where(COUNTS < 4, 0.1, 0) + 0.6 * (COUNTS == 2)),
        ),
        "random rounding": Case(
            pmd.RandomRounding(5), 15, np.log(np.maximum(5.0 - np.abs(15 - COUNTS), 0) / 5)
        ),
        "a law with gaps": Case(GAPS, 20, of_gaps(20)),
        "of a user's own, with gaps": Case(
            pmd.CustomMechanism(own_gaps, whole_numbers=True), 20, of_gaps(20)
        ),
        "suppressed by a law with gaps": Case(
            GAPS.published_if(">=", 10), SUPPRESSED, of_gaps(SUPPRESSED, 10)
        ),
    }


def moments(values, pmf):
    mean = values @ pmf
    return mean, np.sqrt((values - mean) ** 2 @ pmf)
