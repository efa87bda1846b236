"""ConjugateStep draws from the right conditional: invariance rule by rule, then exact posteriors.

Invariance: theta comes from its prior, data from the model given theta, theta' from the conditional
given the data. Then (theta', data) has the law of (theta, data). A plate holds many replicates, so
that one draw makes the test. theta of one half of them is compared with theta' of the other half,
which is independent of it, where the data are large: there theta's law isn't the prior. The same
test must fail on rules with one fault each.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.pytensorf import compile as pymc_compile
from scipy import stats

from pymc_dapper.conjugacy import rules
from pymc_dapper.conjugacy.conditional import read_conditionals
from pymc_dapper.conjugacy.names import family_name
from pymc_dapper.conjugacy.step import ConjugateStep, _Draws
from tests.conjugacy.judge import given_of
from tests.evaluated_in_python import REWRITTEN
from tests.long_cases import one_in_three
from tests.quadrature import Tabulated, linear_gaussian, marginals, normals
from tests.statistical.agreement import FEW, assert_agrees, assert_disagrees, compare

N = 60_000
FALSE_ALARM = 1e-5
EXPOSURE = np.array([0.5, 1.0, 3.0])
SIZES = np.array([2, 5, 9])

PAIRS = {}
"""Name of a pair to a prior and a function (rng, theta) -> (size, build).

The function simulates theta's children with NumPy, from the textbook's density, and `build` says
the same to PyMC; `size` tells which replicates have large data."""


def pair(prior):
    def register(simulate):
        PAIRS[simulate.__name__] = prior, simulate
        return simulate

    return register


def column(theta):
    return theta[:, None]


class Prior(NamedTuple):
    """The same prior twice: for PyMC, and drawn from with NumPy."""

    build: Callable
    draw: Callable


BETA = Prior(
    build=lambda: pm.Beta("theta", 2, 3, shape=N),
    draw=lambda rng: rng.beta(2, 3, N),
)
GAMMA = Prior(
    build=lambda: pm.Gamma("theta", 3, 2, shape=N),
    draw=lambda rng: rng.gamma(3, 1 / 2, N),
)
INVERSE_GAMMA = Prior(
    build=lambda: pm.InverseGamma("theta", 3, 4, shape=N),
    draw=lambda rng: 4 / rng.gamma(3, 1, N),
)
DIRICHLET = Prior(
    build=lambda: pm.Dirichlet("theta", [2, 1, 3], shape=(N, 3)),
    draw=lambda rng: rng.dirichlet([2, 1, 3], N),
)


@pair(BETA)
def beta_bernoulli(rng, p):
    x = rng.random((N, 3)) < column(p)
    return x, lambda p: pm.Bernoulli("x", column(p), observed=x.astype(int))


@pair(BETA)
def beta_binomial(rng, p):
    x = rng.binomial(SIZES, column(p))
    return x, lambda p: pm.Binomial("x", SIZES, column(p), observed=x)


@pair(BETA)
def beta_geometric(rng, p):
    x = rng.geometric(np.maximum(column(p), 1e-9), (N, 3))
    return -x, lambda p: pm.Geometric("x", column(p), observed=x)


@pair(BETA)
def beta_negative_binomial(rng, p):
    x = rng.negative_binomial(SIZES, np.maximum(column(p), 1e-9))
    return -x, lambda p: pm.NegativeBinomial("x", n=SIZES, p=column(p), observed=x)


@pair(DIRICHLET)
def dirichlet_categorical(rng, p):
    x = (rng.random((N, 3, 1)) > p.cumsum(axis=1)[:, None, :]).sum(axis=2)
    return x == 0, lambda p: pm.Categorical("x", p=p[:, None, :], observed=x)


@pair(DIRICHLET)
def dirichlet_multinomial(rng, p):
    x = rng.multinomial(5, p)
    return x[:, :1], lambda p: pm.Multinomial("x", n=5, p=p, observed=x)


@pair(GAMMA)
def gamma_poisson(rng, rate):
    x = rng.poisson(column(rate) * EXPOSURE)
    return x, lambda rate: pm.Poisson("x", column(rate) * EXPOSURE, observed=x)


@pair(GAMMA)
def gamma_exponential(rng, rate):
    x = rng.exponential(1 / (EXPOSURE * column(rate)))
    return -x, lambda rate: pm.Exponential("x", EXPOSURE * column(rate), observed=x)


@pair(GAMMA)
def gamma_gamma(rng, rate):
    x = rng.gamma(1.5, 1 / (EXPOSURE * column(rate)))
    return -x, lambda rate: pm.Gamma("x", 1.5, EXPOSURE * column(rate), observed=x)


@pair(GAMMA)
def gamma_inverse_gamma(rng, scale):
    x = EXPOSURE * column(scale) / rng.gamma(2.5, 1, (N, 3))
    return np.log(x), lambda scale: pm.InverseGamma("x", 2.5, EXPOSURE * column(scale), observed=x)


@pair(GAMMA)
def gamma_normal(rng, tau):
    x = rng.normal(1, 1 / np.sqrt(EXPOSURE * column(tau)))
    return -abs(x - 1), lambda tau: pm.Normal("x", 1, tau=EXPOSURE * column(tau), observed=x)


@pair(GAMMA)
def gamma_log_normal(rng, tau):
    x = rng.normal(1, EXPOSURE / np.sqrt(column(tau)))
    return -abs(x - 1), lambda tau: pm.LogNormal(
        "x", 1, EXPOSURE / pt.sqrt(column(tau)), observed=np.exp(x)
    )


@pair(GAMMA)
def gamma_half_normal(rng, tau):
    x = abs(rng.normal(0, 1 / np.sqrt(EXPOSURE * column(tau))))
    return -x, lambda tau: pm.HalfNormal("x", tau=EXPOSURE * column(tau), observed=x)


@pair(INVERSE_GAMMA)
def inverse_gamma_normal(rng, v):
    x = rng.normal(1, EXPOSURE * np.sqrt(column(v)))
    return abs(x - 1), lambda v: pm.Normal("x", 1, EXPOSURE * pt.sqrt(column(v)), observed=x)


@pair(INVERSE_GAMMA)
def inverse_gamma_log_normal(rng, v):
    x = rng.normal(1, np.sqrt(column(v)), (N, 3))
    return abs(x - 1), lambda v: pm.LogNormal("x", 1, column(v) ** 0.5, observed=np.exp(x))


@pair(INVERSE_GAMMA)
def inverse_gamma_half_normal(rng, v):
    x = abs(rng.normal(0, np.sqrt(column(v)), (N, 3)))
    return x, lambda v: pm.HalfNormal("x", pt.sqrt(column(v)), observed=x)


@pair(INVERSE_GAMMA)
def inverse_gamma_exponential(rng, v):
    x = rng.exponential(EXPOSURE * column(v))
    return x, lambda v: pm.Exponential("x", scale=EXPOSURE * column(v), observed=x)


@pair(INVERSE_GAMMA)
def inverse_gamma_gamma(rng, v):
    x = rng.gamma(1.5, EXPOSURE * column(v))
    return x, lambda v: pm.Gamma("x", 1.5, 1 / (EXPOSURE * column(v)), observed=x)


def p_value(theta, drawn, size):
    """P-value of the hypothesis that theta and its draws have the same law, for large data."""
    theta, drawn = (x.reshape(len(x), -1)[:, 0] for x in (theta, drawn))
    total = size.sum(axis=-1)
    large = total >= np.median(total)
    even = np.arange(len(theta)) % 2 == 0
    return stats.ks_2samp(theta[large & even], drawn[large & ~even]).pvalue


def invariance(name):
    prior, simulate = PAIRS[name]
    rng = np.random.default_rng(21)
    theta = prior.draw(rng)
    size, build = simulate(rng, theta)
    with pm.Model() as model:
        rv = prior.build()
        build(rv)
    [conditional] = read_conditionals(model, [rv])
    parameters = pymc_compile([], list(conditional.parameters), mode="FAST_COMPILE")()
    return p_value(theta, conditional.family.draw(rng, *parameters), size)


FAULTS = {
    "one_too_many": lambda terms: [terms[0] + 1, *terms[1:]],
    "given_to_the_next_group": lambda terms: [pt.roll(x, 1, axis=0) for x in terms],
    "squares_not_halved_or_exposure_wrong": lambda terms: [*terms[:-1], 2 * terms[-1]],
    "left_out": lambda terms: [0 * x for x in terms],
}


def registered():
    """Where each pair is registered, by its name."""

    def name(family):
        return "".join(f"_{x.lower()}" if x.isupper() else x for x in family).removeprefix("_")

    return {
        f"{name(prior)}_{name(family_name(child))}": (prior, child) for prior, child in rules._pairs
    }


def test_all_rules_are_tested():
    assert set(registered()) == set(PAIRS)


@pytest.mark.parametrize("name", one_in_three(PAIRS))
def test_a_rule_leaves_the_joint_law_invariant(name, monkeypatch):
    assert invariance(name) > FALSE_ALARM
    key = registered()[name]
    [pair] = rules._pairs[key]
    for fault in FAULTS.values():
        broken = replace(pair, rule=lambda link, fault=fault: fault(pair.rule(link)))
        monkeypatch.setitem(rules._pairs, key, [broken])
        assert invariance(name) < FALSE_ALARM, (fault, family_name(key[1]))


# Normal means -----------------------------------------------------------------------------------

REPLICATES = 4_000
GROUP = np.array([0, 0, 1, 2, 2, 2])
X = np.array([-1.0, 2.0, 0.5, 1.5, -0.3, 0.8])


def test_entrywise_normals_leave_the_joint_law_invariant():
    rng = np.random.default_rng(22)
    mu = rng.normal(1, 2, N)
    y = rng.normal(column(mu) * EXPOSURE + 1, 1.5)
    with pm.Model() as model:
        rv = pm.Normal("mu", 1, 2, shape=N)
        pm.Normal("y", column(rv) * EXPOSURE + 1, 1.5, observed=y)
    [conditional] = read_conditionals(model, [rv])
    mean, sd = pymc_compile([], list(conditional.parameters), mode="FAST_COMPILE")()
    assert conditional.family.name == "Normal"
    assert p_value(mu, conditional.family.draw(rng, mean, sd), y) > FALSE_ALARM
    for wrong in ((mean, 2 * sd), (np.roll(mean, 1), sd), (mean + 0.5, sd)):
        assert p_value(mu, conditional.family.draw(rng, *wrong), y) < FALSE_ALARM


def simulate_groups(rng):
    """Intercepts of groups around a latent mean, and a slope: five parameters; six outcomes."""
    m = rng.normal(0, 2, REPLICATES)
    a = rng.normal(column(m), 1.5, (REPLICATES, 3))
    b = rng.normal(1, 1, REPLICATES)
    return np.column_stack([m, a, b]), rng.normal(a[:, GROUP] + column(b) * X, 0.7)


def test_joint_normals_leave_the_joint_law_invariant():
    """What is left of theta beyond a linear function of the data has the same law."""
    rng = np.random.default_rng(23)
    thetas, y = simulate_groups(rng)
    linear, *_ = np.linalg.lstsq(*simulate_groups(rng)[::-1])
    with pm.Model() as model:
        m = pm.Normal("m", 0, 2)
        a = pm.Normal("a", m, 1.5, shape=3)
        b = pm.Normal("b", 1, 1)
        pm.Normal("y", a[GROUP] + b * X, 0.7, shape=6)
    [conditional] = read_conditionals(model, [m, a, b])
    given, outputs = list(given_of(conditional)), list(conditional.parameters)
    parameters = pymc_compile(given, outputs, mode=REWRITTEN)
    at_data = [parameters(each) for each in y]

    def smallest_p_value(fault=lambda slopes, residuals: (slopes, residuals)):
        drawn = []
        for [rows] in at_data:
            slopes, residuals = fault(rows[:-1], rows[-1])
            drawn.append(conditional.family.draw(rng, np.vstack([slopes, residuals])))
        drawn = np.stack(drawn)
        directions = np.column_stack([np.eye(5), [1, -1, 1, -1, 1]])
        left, left_of_drawn = ((x - y @ linear) @ directions for x in (thetas, drawn))
        return min(
            stats.ks_2samp(x[::2], x_drawn[1::2]).pvalue
            for x, x_drawn in zip(left.T, left_of_drawn.T, strict=True)
        )

    assert smallest_p_value() > FALSE_ALARM
    n_priors, next_group = 5, [0, 2, 3, 1, 4]
    for fault in (
        lambda slopes, residuals: (np.sqrt(2) * slopes, np.sqrt(2) * residuals),
        lambda slopes, residuals: (slopes, -residuals),
        lambda slopes, residuals: (slopes[next_group], residuals),
        lambda slopes, residuals: (
            np.column_stack([3 * slopes[:, :n_priors], slopes[:, n_priors:]]),
            np.append(3 * residuals[:n_priors], residuals[n_priors:]),
        ),
    ):
        assert smallest_p_value(fault) < FALSE_ALARM


# In pm.sample -----------------------------------------------------------------------------------

Y = np.array([0.3, -1.2, 0.8, 2.1, 1.4])


def test_mean_and_variance_of_normal_data():
    """Two steps that take turns, against quadrature in two dimensions."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2)
        v = pm.InverseGamma("v", 3, 2)
        pm.Normal("y", mu, pt.sqrt(v), observed=Y)
    grids = np.linspace(-4, 5, 400), np.linspace(-2.5, 4.5, 400)
    m, log_v = (x[..., None] for x in np.meshgrid(*grids, indexing="ij"))
    log_density = (
        stats.norm(0, 2).logpdf(m)[..., 0]
        + (stats.invgamma(3, scale=2).logpdf(np.exp(log_v)) + log_v)[..., 0]
        + stats.norm(m, np.exp(log_v / 2)).logpdf(Y).sum(axis=-1)
    )
    with model:
        pm.Deterministic("log_v", pt.log(v))
    exact_mu, exact_log_v = marginals(grids, log_density)
    exact = {"mu": exact_mu, "log_v": exact_log_v}
    step = ConjugateStep([mu, v], model=model)
    assert_agrees(compare(model, [step], exact, draws=2_000))

    # Written back without the logarithm.
    of_mu, of_v = step._conditionals
    broken = with_conditionals(step, of_mu, replace(of_v, to_values=of_v.thetas))
    assert_disagrees(compare(model, [broken], exact, draws=FEW))


def with_conditionals(step, *conditionals):
    """A copy of a step that draws from others."""
    twin = copy.copy(step)
    twin._draws = _Draws(conditionals)
    twin._givens = [twin._draws.given]
    twin._draws.compile({})
    return twin


@pytest.mark.long
def test_regression_coefficients():
    """All drawn at once: independent draws, against the closed form."""
    design = np.column_stack([np.ones(6), X])
    y = np.array([0.4, 3.3, 1.0, 2.2, -0.5, 1.7])
    with pm.Model() as model:
        b = pm.Normal("b", [1, 0], [2, 3], shape=2)
        pm.Normal("y", b[0] + X * b[1], 0.7, observed=y)
    mean, cov, _ = linear_gaussian(
        np.array([1.0, 0.0]), np.diag([4.0, 9.0]), design, 0.49 * np.eye(6), y
    )
    step = ConjugateStep([b], model=model)
    exact = {"b": normals(mean, cov)}
    assert_agrees(compare(model, [step], exact, draws=2_000, tune=0))
    # The residual of a wrong covariate.
    [conditional] = step._conditionals
    [rows] = conditional.parameters
    wrong = pt.concatenate([rows[:-1], pt.roll(rows[-1], 1)[None]])
    broken = with_conditionals(step, replace(conditional, parameters=(wrong,)))
    assert_disagrees(compare(model, [broken], exact, draws=FEW, tune=0))


@pytest.mark.long
def test_rate_beside_a_variable_that_pymc_samples():
    """Poisson counts with one latent multiplier: Gamma given it; PyMC's own step takes it."""
    counts, exposure = np.array([3, 6, 4]), np.array([1.0, 2.0, 1.5])
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1)
        high = pm.Bernoulli("high", 0.4)
        pm.Poisson("x", rate * exposure * (1 + high), observed=counts)
    grid = np.linspace(1e-3, 12, 3000)
    given = [
        np.log(p) + stats.poisson(grid[:, None] * exposure * k).logpmf(counts).sum(axis=1)
        for p, k in ((0.6, 1), (0.4, 2))
    ]
    exact = {"rate": Tabulated(grid, stats.gamma(2).logpdf(grid) + np.logaddexp(*given))}
    step = ConjugateStep([rate], model=model)
    assert_agrees(compare(model, [step], exact, draws=8_000))
