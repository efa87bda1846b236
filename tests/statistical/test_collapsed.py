"""CollapsedStep against quadrature over the parameter and sums over all counts."""

from itertools import product

import numpy as np
import pymc as pm
import pytest
from scipy import special, stats

from pymc_dapper.collapsing.step import CollapsedStep
from tests.monte_carlo import smallest_ess

PEOPLE, RELEASED, SIGMA = np.array([12, 20]), np.array([1.0, 21.0]), 4.0


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        effect = pm.Normal("effect", 0, 1.5)
        x = pm.Binomial("x", n=PEOPLE, p=pm.math.sigmoid(effect))
        pm.Normal("released", x, SIGMA, observed=RELEASED)
    return model


@pytest.fixture(scope="module")
def exact():
    """Means of the effect and of a count, and second moments around these."""
    effects = np.linspace(-8, 8, 1_601)
    tables = np.array(list(product(*(range(n + 1) for n in PEOPLE))))
    log_weights = stats.norm.logpdf(effects, 0, 1.5)[:, None] + sum(
        stats.binom.logpmf(tables[:, k], n, special.expit(effects)[:, None])
        + stats.norm.logpdf(RELEASED[k], tables[:, k], SIGMA)
        for k, n in enumerate(PEOPLE)
    )
    weights = np.exp(log_weights - special.logsumexp(log_weights))
    e, x = effects[:, None], tables[None, :, 0]
    means = (weights * e).sum(), (weights * x).sum()
    e, x = e - means[0], x - means[1]
    return means, [(weights * f).sum() for f in (e**2, x**2, e * x)]


def z_scores(step, model, exact, draws=3_000):
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
    e, x = posterior["effect"].values, posterior["x"].values[..., 0]
    means, moments = exact
    e, x = e - means[0], x - means[1]
    return [
        (values.mean() - expected) / (values.std() / np.sqrt(smallest_ess(values)))
        for values, expected in zip((e, x, e**2, x**2, e * x), (0, 0, *moments), strict=True)
    ]


class DrawnBefore(CollapsedStep):
    """Draws the counts given the parameters as they were before the move."""

    def step(self, point):
        before = self._given(point)
        new, stats = super().step(point)
        counts, _ = self._sums.draw(self.rng, before)
        return self._with_counts(new, counts), stats


def test_parameters_and_counts_have_their_exact_posterior(model, exact):
    step = CollapsedStep([model["effect"]], counts=[model["x"]], model=model)
    assert np.abs(z_scores(step, model, exact)).max() < 4
    # The twin, from the same compiled code: each has its posterior, but not both together.
    step.__class__ = DrawnBefore
    assert np.abs(z_scores(step, model, exact)).max() > 8
