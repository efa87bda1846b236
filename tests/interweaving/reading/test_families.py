"""Each family's map keeps the quantile of a record."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dapper.conjugacy.names import family_name
from pymc_dapper.graphs.noise import FEW_CATEGORIES
from pymc_dapper.interweaving.reading import families
from pymc_dapper.interweaving.reading.maps import NoRecordMapError, record_map
from tests.interweaving.moving import N, assert_steps_are_kept, move


def gamma(alpha, beta):
    return stats.gamma(alpha, scale=1 / beta)


def log_normal(mu, sigma):
    return stats.lognorm(sigma, scale=np.exp(mu))


def asymmetric_laplace(b, kappa, mu):
    return stats.laplace_asymmetric(kappa, mu, 1 / b)


def truncated_gamma(alpha, beta, lower, upper):
    return Truncated(gamma(alpha, beta), lower, upper)


def truncated_normal(mu, sigma, lower, upper):
    return stats.truncnorm((lower - mu) / sigma, (upper - mu) / sigma, mu, sigma)


class Truncated:
    def __init__(self, base, lower, upper):
        self.base, self.ends = base, base.cdf([lower, upper])

    def cdf(self, x):
        return (self.base.cdf(x) - self.ends[0]) / (self.ends[1] - self.ends[0])

    def rvs(self, size, random_state):
        u = random_state.uniform(*self.ends, size)
        return self.base.ppf(u)


def truncated_gamma_dist(alpha, beta, lower, upper, **kwargs):
    base = pm.Gamma.dist(alpha, beta)
    return pm.Truncated.dist(base, lower=lower, upper=upper, **kwargs)


def truncated_normal_dist(mu, sigma, lower, upper, **kwargs):
    return pm.TruncatedNormal.dist(mu, sigma, lower=lower, upper=upper, **kwargs)


class Inflated:
    """Counts of which more are zero."""

    def __init__(self, psi, law):
        self.psi, self.law = psi, law

    def cdf(self, x):
        return np.where(x < 0, 0.0, 1 - self.psi + self.psi * self.law.cdf(x))

    def pmf(self, x):
        return (1 - self.psi) * (x == 0) + self.psi * self.law.pmf(x)

    def rvs(self, size, random_state):
        drawn = self.law.rvs(size=size, random_state=random_state)
        return np.where(random_state.random(size) < self.psi, drawn, 0)


# Distribution in PyMC and in SciPy, and two sets of parameters.
CONTINUOUS = {
    "Normal": (pm.Normal.dist, stats.norm, (0.3, 1.2), (-1.0, 0.4)),
    "Laplace": (pm.Laplace.dist, stats.laplace, (0.3, 1.2), (-1.0, 0.4)),
    "Logistic": (pm.Logistic.dist, stats.logistic, (0.3, 1.2), (-1.0, 0.4)),
    "Cauchy": (pm.Cauchy.dist, stats.cauchy, (0.3, 1.2), (-1.0, 0.4)),
    "Gumbel": (pm.Gumbel.dist, stats.gumbel_r, (0.3, 1.2), (-1.0, 0.4)),
    "Moyal": (pm.Moyal.dist, stats.moyal, (0.3, 1.2), (-1.0, 0.4)),
    "LogNormal": (pm.LogNormal.dist, log_normal, (0.3, 1.2), (-1.0, 0.4)),
    "Uniform": (pm.Uniform.dist, lambda a, b: stats.uniform(a, b - a), (0.3, 1.2), (-1.0, 3.4)),
    "HalfNormal": (pm.HalfNormal.dist, lambda s: stats.halfnorm(0, s), (0.3,), (1.4,)),
    "HalfCauchy": (pm.HalfCauchy.dist, lambda s: stats.halfcauchy(0, s), (0.3,), (1.4,)),
    "Exponential": (pm.Exponential.dist, lambda r: stats.expon(0, 1 / r), (0.3,), (1.4,)),
    "Gamma, rate": (pm.Gamma.dist, gamma, (2.5, 0.3), (2.5, 1.4)),
    "Gamma, shape": (pm.Gamma.dist, gamma, (2.5, 0.3), (0.8, 1.4)),
    "InverseGamma": (
        pm.InverseGamma.dist,
        lambda a, b: stats.invgamma(a, scale=b),
        (2.5, 0.3),
        (2.5, 1.4),
    ),
    "Beta": (pm.Beta.dist, stats.beta, (2.5, 0.7), (1.2, 1.4)),
    "StudentT": (
        lambda nu, mu, sigma, **k: pm.StudentT.dist(nu, mu=mu, sigma=sigma, **k),
        stats.t,
        (3.5, 0.3, 1.2),
        (3.5, -1.0, 0.4),
    ),
    "StudentT, shape": (
        lambda nu, mu, sigma, **k: pm.StudentT.dist(nu, mu=mu, sigma=sigma, **k),
        stats.t,
        (3.5, 0.3, 1.2),
        (7.0, -1.0, 0.4),
    ),
    "HalfStudentT": (
        lambda nu, sigma, **k: pm.HalfStudentT.dist(nu, sigma=sigma, **k),
        lambda nu, s: Truncated(stats.t(nu, 0, s), 0, np.inf),
        (3.5, 1.2),
        (3.5, 0.4),
    ),
    "SkewNormal": (
        lambda mu, sigma, alpha, **k: pm.SkewNormal.dist(alpha, mu=mu, sigma=sigma, **k),
        lambda mu, sigma, alpha: stats.skewnorm(alpha, mu, sigma),
        (0.3, 1.2, 2.0),
        (-1.0, 0.4, 2.0),
    ),
    "AsymmetricLaplace": (
        lambda b, kappa, mu, **k: pm.AsymmetricLaplace.dist(kappa, mu, b, **k),
        asymmetric_laplace,
        (0.3, 1.2, 0.5),
        (1.4, 1.2, -1.0),
    ),
    "Weibull": (
        pm.Weibull.dist,
        lambda a, b: stats.weibull_min(a, scale=b),
        (2.5, 0.3),
        (1.2, 1.4),
    ),
    "Pareto": (pm.Pareto.dist, lambda a, m: stats.pareto(a, scale=m), (2.5, 0.3), (1.2, 1.4)),
    "Truncated Gamma": (
        truncated_gamma_dist,
        truncated_gamma,
        (2.5, 0.9, 0.2, 3.0),
        (1.2, 1.4, 0.1, 2.0),
    ),
    "TruncatedNormal": (
        truncated_normal_dist,
        truncated_normal,
        (0.3, 1.2, -1.0, 2.0),
        (-0.4, 0.7, -1.5, 1.0),
    ),
    "TruncatedNormal, no upper bound": (
        truncated_normal_dist,
        truncated_normal,
        (0.3, 1.2, -1.0, np.inf),
        (-0.4, 0.7, 0.0, np.inf),
    ),
    "TruncatedNormal, no lower bound": (
        truncated_normal_dist,
        truncated_normal,
        (0.3, 1.2, -np.inf, 2.0),
        (-0.4, 0.7, -np.inf, -1.0),
    ),
    "TruncatedNormal, far from its mean": (
        truncated_normal_dist,
        truncated_normal,
        (-9.0, 1.0, 0.0, np.inf),
        (-8.0, 0.9, 0.0, np.inf),
    ),
}
DISCRETE = {
    "Bernoulli": (pm.Bernoulli.dist, stats.bernoulli, (0.3,), (0.6,)),
    "Geometric": (pm.Geometric.dist, stats.geom, (0.3,), (0.6,)),
    "BetaBinomial": (
        partial(pm.BetaBinomial.dist, n=6),
        lambda a, b: stats.betabinom(6, a, b),
        (1.3, 2.0),
        (4.0, 0.7),
    ),
    "DiscreteUniform": (
        pm.DiscreteUniform.dist,
        lambda a, b: stats.randint(a, b + 1),
        (0.0, 5.0),
        (2.0, 11.0),
    ),
    "ZeroInflatedPoisson": (
        pm.ZeroInflatedPoisson.dist,
        lambda psi, mu: Inflated(psi, stats.poisson(mu)),
        (0.6, 2.5),
        (0.8, 1.4),
    ),
    "ZeroInflatedBinomial": (
        pm.ZeroInflatedBinomial.dist,
        lambda psi, n, p: Inflated(psi, stats.binom(n, p)),
        (0.6, 7, 0.3),
        (0.3, 7, 0.6),
    ),
}


@pytest.mark.parametrize("family", CONTINUOUS)
def test_continuous_records_keep_their_quantile(family):
    dist, law, before, after = CONTINUOUS[family]
    x = law(*before).rvs(size=N, random_state=np.random.default_rng(1))
    moved, back = move(dist, before, after, x, size=N)
    # PyMC's quantiles of a truncated normal are good to 1e-8 near 0.
    np.testing.assert_allclose(back, x, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(law(*after).cdf(moved), law(*before).cdf(x), rtol=1e-6)


@pytest.mark.parametrize("n", [3, FEW_CATEGORIES + 1], ids="{} categories".format)
@pytest.mark.parametrize("per_record", [False, True])
def test_categories_move_to_the_step_that_a_point_in_theirs_lies_in(per_record, n):
    rng = np.random.default_rng(1)
    before, after = rng.dirichlet(np.arange(n) + 1, N), rng.dirichlet(n - np.arange(n), N)
    if not per_record:
        before, after = before[0], after[0]
    x, uniforms = rng.integers(0, n, N), rng.random(N)
    moved, back = move(pm.Categorical.dist, (before,), (after,), x, uniforms, size=N)
    np.testing.assert_array_equal(back, x)
    rows = np.arange(N)
    before, after = (np.broadcast_to(p, (N, n)) for p in (before, after))
    u = before.cumsum(axis=1)[rows, x] - (1 - uniforms) * before[rows, x]
    upper = after.cumsum(axis=1)[rows, moved]
    assert np.all((upper - after[rows, moved] <= u) & (u < upper))


@pytest.mark.parametrize("dist", ["MvNormal", "MvStudentT"])
def test_vectors_keep_their_standardised_value(dist):
    rng = np.random.default_rng(1)
    means = rng.normal(size=(2, 3))
    factors = [np.tril(rng.normal(size=(3, 3)), -1) + np.diag([1.0, 0.5, 2.0]) for _ in range(2)]
    before, after = ((mean, f @ f.T) for mean, f in zip(means, factors, strict=True))

    def build(mean, scale, **kwargs):
        if dist == "MvNormal":
            return pm.MvNormal.dist(mean, scale, **kwargs)
        return pm.MvStudentT.dist(5, mu=mean, scale=scale, **kwargs)

    x = rng.normal(size=(N, 3))
    moved, back = move(build, before, after, x, size=N)
    np.testing.assert_allclose(back, x)
    standardised = np.linalg.solve(factors[0], (x - means[0]).T)
    np.testing.assert_allclose(moved, means[1] + (factors[1] @ standardised).T)


@pytest.mark.parametrize("family", DISCRETE)
def test_discrete_records_move_to_the_step_that_a_point_in_theirs_lies_in(family):
    assert_steps_are_kept(*DISCRETE[family])


def test_beta_binomial_records_of_many_values_have_no_map():
    for n in (FEW_CATEGORIES, pt.iscalar("n")):
        node = pm.BetaBinomial.dist(1.0, 2.0, n=n).owner
        with pytest.raises(NoRecordMapError, match="isn't known to have 16 values or fewer"):
            record_map(node.op, node, [False, True, True])


class Hurdle:
    """Numbers that are 0, or of a law that has none there."""

    def __init__(self, psi, law):
        self.psi, self.law = psi, law

    def cdf(self, x):
        return 1 - self.psi + self.psi * self.law.cdf(x)

    def rvs(self, size, random_state):
        drawn = self.law.rvs(size=size, random_state=random_state)
        return np.where(random_state.random(size) < self.psi, drawn, 0)


HURDLES = {
    "HurdleLogNormal": (
        pm.HurdleLogNormal.dist,
        lambda psi, mu, sigma: Hurdle(psi, log_normal(mu, sigma)),
        (0.6, 0.3, 1.2),
        (0.7, -1.0, 0.4),
    ),
    "HurdleGamma": (
        pm.HurdleGamma.dist,
        lambda psi, alpha, beta: Hurdle(psi, gamma(alpha, beta)),
        (0.6, 2.5, 0.3),
        (0.4, 1.2, 1.4),
    ),
}


@pytest.mark.parametrize("family", HURDLES)
def test_zeros_of_a_hurdle_model_are_a_step_below_its_positive_numbers(family):
    dist, law, before, after = HURDLES[family]
    rng = np.random.default_rng(1)
    x, v = law(*before).rvs(N, rng), rng.random(N)
    u = np.where(x == 0, v * (1 - before[0]), law(*before).cdf(x))
    moved, back = move(dist, before, after, x, v, size=N)
    np.testing.assert_allclose(back, x, rtol=1e-7)
    np.testing.assert_array_equal(moved == 0, u < 1 - after[0])
    np.testing.assert_array_equal(back == 0, x == 0)
    assert np.sum((moved == 0) != (x == 0)) > 3
    np.testing.assert_allclose(law(*after).cdf(moved), np.maximum(u, 1 - after[0]), rtol=1e-6)


def one_family(w, mu, sigma, **kwargs):
    return pm.NormalMixture.dist(w, mu, sigma, **kwargs)


def shared_spread(w, mu, **kwargs):
    """A batch of laws of which one parameter is common, after records with weights of their own."""
    return pm.Mixture.dist(w, pm.Laplace.dist(mu, 0.8, size=(N, 3)), **kwargs)


def two_families(w, mu, sigma, **kwargs):
    laws = [pm.Normal.dist(mu[0], sigma[0]), pm.Logistic.dist(mu[1], sigma[1])]
    return pm.Mixture.dist(w, laws, **kwargs)


def shapes_move(w, alpha, beta, **kwargs):
    laws = [pm.Gamma.dist(alpha[k], beta[k]) for k in range(2)]
    return pm.Mixture.dist(w, laws, **kwargs)


THIRDS, MEANS, SPREADS = np.array([0.2, 0.5, 0.3]), np.array([-1.0, 0, 2]), np.array([1.0, 0.5, 1])
OTHERS = np.array([0.5, 0.3, 0.2]), np.array([-2.0, 0.3, 1]), np.array([0.6, 1, 0.8])
OF_EACH = np.random.default_rng(2).dirichlet(np.ones(3), size=(2, N))
MIXTURES = {
    "one family": (one_family, [stats.norm] * 3, (THIRDS, MEANS, SPREADS), OTHERS),
    "two families": (
        two_families,
        [stats.norm, stats.logistic],
        (np.array([0.3, 0.7]), MEANS[:2], SPREADS[:2]),
        (np.array([0.6, 0.4]), MEANS[1:], SPREADS[1:]),
    ),
    "shapes move": (
        shapes_move,
        [gamma] * 2,
        (np.array([0.3, 0.7]), np.array([0.7, 3]), np.array([1.0, 2])),
        (np.array([0.5, 0.5]), np.array([1.5, 2]), np.array([0.5, 1])),
    ),
    "weights of each record": (
        shared_spread,
        [lambda mu: stats.laplace(mu, 0.8)] * 3,
        (OF_EACH[0], MEANS),
        (OF_EACH[1], OTHERS[1]),
    ),
}


def of_components(laws, parameters):
    return [law(*(x[k] for x in parameters[1:])) for k, law in enumerate(laws)]


@pytest.mark.parametrize("name", MIXTURES)
def test_records_of_a_mixture_keep_their_place_in_a_component_drawn_given_them(name):
    dist, laws, before, after = MIXTURES[name]
    rng, rows = np.random.default_rng(1), np.arange(N)
    was, new = of_components(laws, before), of_components(laws, after)
    v, n = rng.random(N), len(laws)
    x = np.choose(rng.integers(0, n, N), [law.rvs(size=N, random_state=rng) for law in was])
    moved, back = move(dist, before, after, x, v, size=N)
    np.testing.assert_allclose(back, x, rtol=1e-7, atol=3e-8)

    p = before[0] * np.transpose([law.pdf(x) for law in was])
    upper = (p / p.sum(axis=1, keepdims=True)).cumsum(axis=1)
    k = (v[:, None] >= upper[:, :-1]).sum(axis=1)
    lower = np.where(k == 0, 0, upper[rows, k - 1])
    share = (v - lower) / (upper[rows, k] - lower)
    weights, others = (np.broadcast_to(w, (N, n)) for w in (before[0], after[0]))
    u = weights.cumsum(axis=1)[rows, k] - (1 - share) * weights[rows, k]
    then = (u[:, None] >= others.cumsum(axis=1)[:, :-1]).sum(axis=1)
    assert np.sum(then != k) > 3
    place = np.choose(k, [law.cdf(x) for law in was])
    expected = np.choose(then, [law.ppf(place) for law in new])
    np.testing.assert_allclose(moved, expected, rtol=1e-6, atol=3e-8)


def below_zero(w):
    return pm.Mixture.dist([1 - w, w], [pm.DiracDelta.dist(0), pm.DiscreteUniform.dist(-2, 3)])


def inflated_at_one(w):
    return pm.Mixture.dist([1 - w, w], [pm.DiracDelta.dist(1), pm.Poisson.dist(2.0)])


def inflated_twice(w):
    zero, counts = pm.DiracDelta.dist(0), pm.Poisson.dist(2.0)
    return pm.Mixture.dist([1 - w, w / 2, w / 2], [zero, zero, counts])


def hurdle_of_counts(w):
    return pm.HurdlePoisson.dist(w, 2.0)


def of_vectors(w):
    laws = [pm.MvNormal.dist(np.zeros(2), np.eye(2)), pm.MvNormal.dist(np.ones(2), np.eye(2))]
    return pm.Mixture.dist([1 - w, w], laws)


def of_many(w):
    return pm.NormalMixture.dist(np.full(FEW_CATEGORIES + 1, w / 8), np.arange(17.0), 1)


@pytest.mark.parametrize(
    ("dist", "why"),
    [
        (below_zero, "quantiles of"),
        (inflated_at_one, "quantiles of"),
        (inflated_twice, "quantiles of"),
        (hurdle_of_counts, "quantiles of"),
        (of_many, "quantiles of"),
        (of_vectors, "is multivariate"),
    ],
)
def test_other_mixtures_have_no_map(dist, why):
    node = dist(0.4).owner
    with pytest.raises(NoRecordMapError, match=why):
        record_map(node.op, node, [True] * 4)


HERE = {op for op, rule in record_map.registry.items() if rule.__module__ == families.__name__}
PAGE = Path(__file__).parents[3] / "docs" / "small-budgets.md"


def test_all_maps_are_tried():
    every = CONTINUOUS | DISCRETE | HURDLES
    tried = [(each[0], each[2]) for each in every.values()]
    ops = {type(dist(*parameters).owner.op) for dist, parameters in tried}
    others = {op.__name__ for op in HERE if not any(issubclass(each, op) for each in ops)}
    assert others == {"CategoricalRV", "MvNormalRV", "MvStudentTRV"}


def test_all_maps_are_on_the_page():
    _, _, after = PAGE.read_text("utf-8").partition("| records | noise that is held fixed |")
    table, _, _ = after.partition("\n\n")
    assert {family_name(op).strip("_") for op in HERE} - set(re.findall(r"\w+", table)) == set()
