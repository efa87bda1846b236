"""CountStep with parameters marginalised, against sums over all tables."""

from itertools import product

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.conjugacy import marginal
from pymc_dapper.conjugacy.conditional import read_conditionals
from pymc_dapper.conjugacy.marginal import marginalise
from pymc_dapper.counts.step import CountStep
from tests.monte_carlo import smallest_ess

SIGMA = 2.0


def normalised(logp):
    weights = np.exp(np.array(logp) - np.max(logp))
    return weights / weights.sum()


def moments(weights, counts, given):
    """Mean and standard deviation of a parameter, and of its product with a count.

    `given` is the parameter's distribution given each table.
    """
    means, squares = given.mean(), given.var() + given.mean() ** 2
    found = []
    for by in (1.0, counts):
        mean = weights @ (by * means)
        found.append((mean, np.sqrt(weights @ (by**2 * squares) - mean**2)))
    return found


# Models, each with exact moments of the first parameter and count --------


def shared_probability():
    """Two binomials with a probability in common."""
    n, released, a, b = np.array([6, 9]), np.array([1.0, 8.5]), 1.5, 2.0
    with pm.Model() as model:
        p = pm.Beta("p", a, b)
        x = pm.Binomial("x", n=n, p=p)
        pm.Normal("released", x, SIGMA, observed=released)
    tables = np.array(list(product(range(7), range(10))))
    total = tables.sum(axis=1)
    logp = stats.betabinom.logpmf(total, n.sum(), a, b)
    logp += stats.hypergeom.logpmf(tables[:, 0], n.sum(), n[0], total)
    logp += stats.norm.logpdf(released, tables, SIGMA).sum(axis=1)
    given = stats.beta(a + total, b + n.sum() - total)
    return model, moments(normalised(logp), tables[:, 0], given)


def probabilities_of_a_table():
    n, alpha, released = 10, np.array([0.5, 1.0, 2.0]), np.array([5.0, -3.0, 6.0])
    with pm.Model() as model:
        p = pm.Dirichlet("p", alpha)
        x = pm.Multinomial("x", n=n, p=p)
        pm.Normal("released", x, SIGMA, observed=released)
    tables = np.array([x for x in product(range(n + 1), repeat=3) if sum(x) == n])
    logp = stats.dirichlet_multinomial.logpmf(tables, alpha, n)
    logp += stats.norm.logpdf(released, tables, SIGMA).sum(axis=1)
    given = stats.beta(alpha[0] + tables[:, 0], (alpha.sum() + n) - alpha[0] - tables[:, 0])
    return model, moments(normalised(logp), tables[:, 0], given)


def rate_with_exposure():
    """Two Poisson counts with a rate in common."""
    shape, rate, exposure, released = 2.0, 0.7, np.array([1.0, 3.0]), np.array([3.0, 4.0])
    with pm.Model() as model:
        p = pm.Gamma("p", shape, rate)
        x = pm.Poisson("x", p * exposure)
        pm.Normal("released", x, SIGMA, observed=released)
    tables = np.array(list(product(range(40), repeat=2)))
    total = tables.sum(axis=1)
    share = exposure[0] / exposure.sum()
    logp = stats.nbinom.logpmf(total, shape, rate / (rate + exposure.sum()))
    logp += stats.binom.logpmf(tables[:, 0], total, share)
    logp += stats.norm.logpdf(released, tables, SIGMA).sum(axis=1)
    given = stats.gamma(shape + total, scale=1 / (rate + exposure.sum()))
    return model, moments(normalised(logp), tables[:, 0], given)


MODELS = {
    "beta": shared_probability,
    "dirichlet": probabilities_of_a_table,
    "gamma": rate_with_exposure,
}


def draws_of(model, steps, draws=4_000):
    with model:
        posterior = pm.sample(
            draws=draws,
            tune=100,
            chains=2,
            cores=1,
            step=steps,
            random_seed=6,
            progressbar=False,
            compute_convergence_checks=False,
        ).posterior
    values = [posterior[name].values for name in ("p", "x")]
    return [value.reshape(*value.shape[:2], -1)[..., 0] for value in values]


def z_scores(draws, exact):
    p, x = draws
    z = []
    for values, (mean, sd) in zip((p, p * x), exact, strict=True):
        z.append((values.mean() - mean) / (sd / np.sqrt(smallest_ess(values))))
    mean, sd = exact[0]
    squares = (p - mean) ** 2
    return [*z, (squares.mean() - sd**2) / (squares.std() / np.sqrt(smallest_ess(squares)))]


def sampled_and_exact(case, draws):
    model, exact = MODELS[case]()
    step = CountStep([model["x"]], integrate=[model["p"]], model=model)
    values = draws_of(model, [step], draws)
    assert smallest_ess(values[0]) > draws
    return values, exact


@pytest.mark.long
@pytest.mark.parametrize("case", MODELS)
def test_parameters_have_their_exact_posterior(case):
    assert np.abs(z_scores(*sampled_and_exact(case, draws=4_000))).max() < 4


@pytest.mark.long
@pytest.mark.usefixtures("in_python")
def test_so_they_do_in_python():
    assert np.abs(z_scores(*sampled_and_exact("beta", draws=400))).max() < 4


# Twins: each must fail ---------------------------------------------------------------------------


class DrawnBefore(CountStep):
    """Draws the parameter given the counts as they were before the sweep."""

    def step(self, point):
        new, stats = super().step(point)
        before, _ = self._marginalised.step({**new, "x": point["x"]})
        return {**before, "x": new["x"]}, stats


@pytest.mark.long
def test_a_parameter_drawn_given_other_counts_shows():
    model, exact = shared_probability()
    step = DrawnBefore([model["x"]], integrate=[model["p"]], model=model)
    # A small fault: half of the draws hardly show it by so much.
    assert np.abs(z_scores(draws_of(model, [step], draws=16_000), exact)).max() > 8


# `conjugacy/test_marginal.py` compares marginals with integrals, in every run.
@pytest.mark.long
def test_an_integral_without_its_constant_shows(monkeypatch):
    def without(theta, a, b):
        return ((a - 1) * np.log(theta) + (b - 1) * np.log1p(-theta)).sum()

    monkeypatch.setitem(marginal.LOG_DENSITIES, "Beta", without)
    model, exact = shared_probability()
    step = CountStep([model["x"]], integrate=[model["p"]], model=model)
    assert np.abs(z_scores(draws_of(model, [step]), exact)).max() > 8


# What it is, and what can be marginalised ---------------------------------------------------------


def test_a_table_of_unknown_probabilities_is_dirichlet_multinomial():
    model, _ = probabilities_of_a_table()
    conditionals = read_conditionals(model, [model["p"]])
    view = conditionals[0].view
    factors = marginalise(view, conditionals, [model["x"]])
    marginal = pt.add(*(graph.sum() for graph in factors.values()))
    written = pytensor.function(
        [view.values[model.rvs_to_values[model["x"]]]],
        marginal,
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    tables = np.array([[10, 0, 0], [3, 3, 4], [0, 1, 9], [1, 6, 3]])
    exact = stats.dirichlet_multinomial.logpmf(tables, [0.5, 1.0, 2.0], 10)
    exact = exact + stats.norm.logpdf([5.0, -3.0, 6.0], tables, SIGMA).sum(axis=1)
    np.testing.assert_allclose(np.ptp([written(x) for x in tables] - exact), 0, atol=1e-9)


def test_what_cannot_be_marginalised_is_refused_by_name():
    with pm.Model():
        a, b = pm.Gamma("a", 2, 1), pm.Gamma("b", 2, 1)
        normal = pm.Normal("normal")
        x = pm.Poisson("x", a * b)
        pm.Normal("released", x, 1.0, observed=5.0)
        pm.Normal("other", normal, 1.0, observed=5.0)
        with pytest.raises(pmd.NotConjugateError, match=r"'b' and 'a' can't both .*of 'x' depends"):
            CountStep([x], integrate=[a, b])
        with pytest.raises(pmd.NotConjugateError, match=r"'normal' can't be marginalised"):
            CountStep([x], integrate=[normal])
        with pytest.raises(ValueError, match="blocked=False"):
            CountStep([x], integrate=[a], blocked=False)
