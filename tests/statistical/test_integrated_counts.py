"""CountStep with parameters integrated out, against sums over all tables."""

from itertools import product

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import logsumexp

import pymc_dapper as pmd
from pymc_dapper.conjugacy import marginal
from pymc_dapper.conjugacy.marginal import integrable_parameters, integrate_out
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
    tables = list(product(range(7), range(10)))
    total = np.array([sum(x) for x in tables])
    logp = [
        stats.betabinom.logpmf(sum(x), n.sum(), a, b)
        + stats.hypergeom.logpmf(x[0], n.sum(), n[0], sum(x))
        + stats.norm.logpdf(released, x, SIGMA).sum()
        for x in tables
    ]
    given = stats.beta(a + total, b + n.sum() - total)
    return model, moments(normalised(logp), np.array(tables)[:, 0], given)


def probabilities_of_a_table():
    n, alpha, released = 10, np.array([0.5, 1.0, 2.0]), np.array([5.0, -3.0, 6.0])
    with pm.Model() as model:
        p = pm.Dirichlet("p", alpha)
        x = pm.Multinomial("x", n=n, p=p)
        pm.Normal("released", x, SIGMA, observed=released)
    tables = np.array([x for x in product(range(n + 1), repeat=3) if sum(x) == n])
    logp = [
        stats.dirichlet_multinomial.logpmf(x, alpha, n)
        + stats.norm.logpdf(released, x, SIGMA).sum()
        for x in tables
    ]
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
    logp = [
        stats.nbinom.logpmf(sum(x), shape, rate / (rate + exposure.sum()))
        + stats.binom.logpmf(x[0], sum(x), share)
        + stats.norm.logpdf(released, x, SIGMA).sum()
        for x in tables
    ]
    given = stats.gamma(shape + total, scale=1 / (rate + exposure.sum()))
    return model, moments(normalised(logp), tables[:, 0], given)


MODELS = {
    "beta": shared_probability,
    "dirichlet": probabilities_of_a_table,
    "gamma": rate_with_exposure,
}


@pytest.fixture(
    scope="module",
    params=[
        "beta",
        # In every run, log-densities are compared with integrals (below).
        pytest.param("dirichlet", marks=pytest.mark.long),
        pytest.param("gamma", marks=pytest.mark.long),
    ],
)
def case(request):
    return MODELS[request.param]()


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


def test_parameters_have_their_exact_posterior(case):
    model, exact = case
    draws = draws_of(model, [CountStep([model["x"]], integrate=[model["p"]], model=model)])
    assert smallest_ess(draws[0]) > 4_000
    assert np.abs(z_scores(draws, exact)).max() < 4


# Twins, each of which must show ------------------------------------------------------------------


class DrawnBefore(CountStep):
    """Draws the parameter given the counts as they were before the sweep."""

    def step(self, point):
        new, stats = super().step(point)
        before, _ = self._integrated.step({**new, "x": point["x"]})
        return {**before, "x": new["x"]}, stats


def test_a_parameter_drawn_given_other_counts_shows():
    model, exact = shared_probability()
    step = DrawnBefore([model["x"]], integrate=[model["p"]], model=model)
    # A small fault: half of the draws hardly show it by so much.
    assert np.abs(z_scores(draws_of(model, [step], draws=8_000), exact)).max() > 8


def test_an_integral_without_its_constant_shows(monkeypatch):
    def without(theta, a, b):
        return ((a - 1) * np.log(theta) + (b - 1) * np.log1p(-theta)).sum()

    monkeypatch.setitem(marginal.LOG_DENSITIES, "Beta", without)
    model, exact = shared_probability()
    step = CountStep([model["x"]], integrate=[model["p"]], model=model)
    assert np.abs(z_scores(draws_of(model, [step]), exact)).max() > 8


# Log-densities, compared with quadrature over the parameter ---------------------------------------


def prior_of_a_count():
    x = pm.Poisson("x", 4.0)
    p = pm.Beta("p", 1.0 + x, 2.0)
    y = pm.Binomial("y", n=20, p=p)
    return p, [x, y], [{"x": 2, "y": 5}, {"x": 6, "y": 5}, {"x": 6, "y": 12}]


def exposure_of_a_count():
    x = pm.Poisson("x", 3.0)
    p = pm.Gamma("p", 2.0, 1.0)
    y = pm.Poisson("y", p * (1.0 + x))
    return p, [x, y], [{"x": 2, "y": 5}, {"x": 6, "y": 5}, {"x": 6, "y": 12}]


def other_children():
    p = pm.Beta("p", 1.5, 2.0)
    pm.Bernoulli("z", p, shape=3)
    pm.Bernoulli("seen", p, observed=[1, 1, 0, 1])
    x = pm.Binomial("x", n=10, p=p)
    return p, [x], [{"x": 1, "z": [1, 1, 0]}, {"x": 7, "z": [1, 1, 0]}, {"x": 7, "z": [0, 0, 0]}]


def one_of_two_counts():
    p = pm.Beta("p", 1.5, 2.0)
    x = pm.Binomial("x", n=10, p=p)
    pm.Binomial("y", n=9, p=p)
    return p, [x], [{"x": 1, "y": 8}, {"x": 7, "y": 8}, {"x": 7, "y": 1}]


def latent_number():
    n = pm.Poisson("n", 12.0)
    p = pm.Beta("p", 1.5, 2.0)
    x = pm.Binomial("x", n=n, p=p)
    return p, [n, x], [{"n": 12, "x": 3}, {"n": 15, "x": 3}, {"n": 15, "x": 9}]


def hyperprior():
    a = pm.HalfNormal("a")
    p = pm.Gamma("p", a, 1.0)
    x = pm.Poisson("x", p * np.array([1.0, 3.0]))
    tables = [([2, 0], 0.7), ([5, 3], 0.7), ([5, 3], -1.0)]
    return p, [x], [{"x": x, "a_log__": a} for x, a in tables]


WRITTEN = [
    prior_of_a_count,
    exposure_of_a_count,
    other_children,
    one_of_two_counts,
    latent_number,
    hyperprior,
]


def log_ratios(write, *, leave_out=()):
    """Log-density ratios of points: by quadrature over the parameter, and as it is written."""
    with pm.Model() as model:
        p, counts, points = write()
    factors = integrate_out(model, [p], counts)
    marginal = pt.add(*(graph.sum() for name, graph in factors.items() if name not in leave_out))
    value = model.rvs_to_values[p]
    others = [x for x in model.value_vars if x is not value]
    options = {"mode": "FAST_COMPILE", "on_unused_input": "ignore"}
    logp = pytensor.function([value, *others], model.logp(), **options)
    written = pytensor.function(others, marginal, **options)
    found = []
    for point in points:
        at = [np.asarray(point[x.name], dtype=x.dtype) for x in others]
        # The parameter is transformed to the whole line, where the trapezoid rule is exact enough.
        integral = logsumexp([logp(theta, *at) for theta in np.linspace(-20, 20, 201)])
        found.append((integral, written(*at)))
    return np.diff(found, axis=0).T


@pytest.mark.parametrize("write", WRITTEN)
def test_log_densities_are_integrals_over_the_parameter(write):
    integrals, written = log_ratios(write)
    assert np.abs(integrals).min() > 0.1
    np.testing.assert_allclose(written, integrals, atol=1e-6)


def test_a_table_of_unknown_probabilities_is_dirichlet_multinomial():
    model, _ = probabilities_of_a_table()
    factors = integrate_out(model, [model["p"]], [model["x"]])
    marginal = pt.add(*(graph.sum() for graph in factors.values()))
    written = pytensor.function(
        [model.rvs_to_values[model["x"]]], marginal, mode="FAST_COMPILE", on_unused_input="ignore"
    )
    tables = np.array([[10, 0, 0], [3, 3, 4], [0, 1, 9], [1, 6, 3]])
    exact = stats.dirichlet_multinomial.logpmf(tables, [0.5, 1.0, 2.0], 10)
    exact = exact + stats.norm.logpdf([5.0, -3.0, 6.0], tables, SIGMA).sum(axis=1)
    np.testing.assert_allclose(np.ptp([written(x) for x in tables] - exact), 0, atol=1e-9)


def test_a_prior_left_out_of_the_integral_shows():
    integrals, written = log_ratios(prior_of_a_count, leave_out=["p"])
    assert np.abs(written - integrals).max() > 1


# What can be integrated out ----------------------------------------------------------------------


def test_parameters_that_can_be_integrated_out_are_found():
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 2, 1)
        p = pm.Beta("p", alpha, 1)
        q = pm.Dirichlet("q", np.ones(3))
        rate = pm.LogNormal("rate")
        x = pm.Binomial("x", n=20, p=p)
        y = pm.Multinomial("y", n=x, p=q)
        z = pm.Poisson("z", rate)
        pm.Normal("released", x + y.sum() + z, 1.0, observed=5.0)
    assert integrable_parameters(model, [x, y, z]) == [p, q]
    assert integrable_parameters(model, [z]) == []


def test_what_cannot_be_integrated_out_is_refused_by_name():
    with pm.Model():
        a, b = pm.Gamma("a", 2, 1), pm.Gamma("b", 2, 1)
        normal = pm.Normal("normal")
        x = pm.Poisson("x", a * b)
        pm.Normal("released", x, 1.0, observed=5.0)
        pm.Normal("other", normal, 1.0, observed=5.0)
        with pytest.raises(pmd.NotConjugateError, match=r"'b' and 'a' can't both .*of 'x' depends"):
            CountStep([x], integrate=[a, b])
        with pytest.raises(pmd.NotConjugateError, match=r"'normal' can't be integrated out"):
            CountStep([x], integrate=[normal])
        with pytest.raises(ValueError, match="blocked=False"):
            CountStep([x], integrate=[a], blocked=False)
