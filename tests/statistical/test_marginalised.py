"""MarginalisedStep against quadrature over the parameter and sums over all counts."""

import numpy as np
import pymc as pm
import pytest
from scipy import special, stats

import pymc_dapper as pmd
from pymc_dapper.marginalised.step import MarginalisedStep
from tests.monte_carlo import smallest_ess

PEOPLE, RELEASED, SIGMA = np.array([12, 20, 9]), np.array([1.0, 21.0]), 4.0
ROUNDED = 6
"""The third count, which was rounded at random to base 3."""


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        effect = pm.Normal("effect", 0, 1.5)
        x = pm.Binomial("x", n=PEOPLE, p=pm.math.sigmoid(effect))
        pm.Normal("released", x[:2], SIGMA, observed=RELEASED)
        pmd.RandomRounding(3).potential("rounded", x[2], released=ROUNDED)
    return model


def exact(probability_of_rounded):
    """Means of the effect and of the first and third count, and second moments around these.

    Given the effect, counts are independent of each other.
    """
    effects = np.linspace(-8, 8, 1_601)
    counts = [np.arange(n + 1) for n in PEOPLE]
    noise = [stats.norm.pdf(y, k, SIGMA) for y, k in zip(RELEASED, counts, strict=False)]
    noise.append(probability_of_rounded(counts[2]))
    joint = [
        stats.binom.pmf(k, k[-1], special.expit(effects)[:, None]) * of_count
        for k, of_count in zip(counts, noise, strict=True)
    ]
    weights = stats.norm.pdf(effects, 0, 1.5) * np.prod([x.sum(axis=1) for x in joint], axis=0)
    weights /= weights.sum()

    def expected(k, f):
        """Of a function of the effect and of count k."""
        given = (f(effects[:, None], counts[k]) * joint[k]).sum(axis=1) / joint[k].sum(axis=1)
        return weights @ given

    means = weights @ effects, *(expected(k, lambda _, x: x) for k in (0, 2))
    e, first, third = means
    return means, [
        weights @ (effects - e) ** 2,
        *(expected(k, lambda _, x, m=m: (x - m) ** 2) for k, m in ((0, first), (2, third))),
        *(expected(k, lambda y, x, m=m: (y - e) * (x - m)) for k, m in ((0, first), (2, third))),
    ]


def rounding(count):
    """The nearer multiple of 3 is twice as likely."""
    return np.clip(1 - np.abs(ROUNDED - count) / 3, 0, 1)


def any_that_may_be(count):
    """A mistake: all counts that may have been rounded so, alike."""
    return np.abs(ROUNDED - count) < 3


def draws_of(step, model, draws=1_500):
    posterior = pm.sample(
        draws=draws,
        tune=300,
        chains=2,
        cores=1,
        step=[step],
        model=model,
        random_seed=4,
        progressbar=False,
        compute_convergence_checks=False,
    ).posterior
    return posterior["effect"].values, *np.moveaxis(posterior["x"].values[..., [0, 2]], -1, 0)


def largest_z(draws, exact):
    """Distance from exact moments, in standard errors."""
    means, moments = exact
    e, first, third = (x - mean for x, mean in zip(draws, means, strict=True))
    found = [e, first, third, e**2, first**2, third**2, e * first, e * third]
    return max(
        abs(x.mean() - expected) / (x.std() / np.sqrt(smallest_ess(x)))
        for x, expected in zip(found, [0, 0, 0, *moments], strict=True)
    )


class DrawnBefore(MarginalisedStep):
    """Draws the counts given the parameters as they were before the move."""

    def step(self, point):
        before = self._given(point)
        new, stats = super().step(point)
        counts, _ = self._sums.draw(self.rng, before)
        return self._with_counts(new, counts), stats


@pytest.mark.long
def test_parameters_and_counts_have_their_exact_posterior(model):
    step = MarginalisedStep([model["effect"]], counts=[model["x"]], model=model)
    draws = draws_of(step, model)
    assert largest_z(draws, exact(rounding)) < 4
    assert largest_z(draws, exact(any_that_may_be)) > 8
    # Another twin, from the same compiled code: each has its posterior, but not both together.
    step.__class__ = DrawnBefore
    assert largest_z(draws_of(step, model), exact(rounding)) > 8
