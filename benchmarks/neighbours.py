"""Neighbours of the hierarchies in `as_they_come`: models that nothing was tuned on.

`python -m benchmarks.as_they_come NAME` samples one. Each differs in sizes, noise, priors or form.
How they came out the first time: docs/evidence/measured.md, "Untuned models, the first time".
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dapper as pmd
from benchmarks.untuned import noisy


def _published(name, events, counts, scale, rng):
    released = np.rint(noisy(counts, scale, rng)).astype(int)
    pmd.DiscreteGaussianMechanism(scale).potential(name, events, released=released)


def _walk(times, rng, step=0.1, level=3.0):
    return level + step * rng.normal(size=times).cumsum()


def walk_precise(times=100, scale=2.0):
    """A random walk of large counts, with little noise."""
    rng = np.random.default_rng(41)
    counts = rng.poisson(np.exp(_walk(times, rng, 0.2, 7)))
    with pm.Model() as model:
        spread = pm.Exponential("spread", 2)
        walk = pm.GaussianRandomWalk(
            "walk", sigma=spread, init_dist=pm.Normal.dist(7, 1), shape=times
        )
        events = pm.Poisson("events", pt.exp(walk), shape=times)
        _published("privacy", events, counts, scale, rng)
    return model


def walk_with_drift(times=40, scale=10.0):
    """A random walk with unknown drift and a Cauchy prior of its scale."""
    rng = np.random.default_rng(42)
    counts = rng.poisson(np.exp(_walk(times, rng, 0.1, 2.5) + 0.05 * np.arange(times)))
    with pm.Model() as model:
        drift, spread = pm.Normal("drift", 0, 0.2), pm.HalfCauchy("spread", 0.2)
        start = pm.Normal.dist(3, 1)
        walk = pm.GaussianRandomWalk("walk", drift, spread, init_dist=start, shape=times)
        events = pm.Poisson("events", pt.exp(walk), shape=times)
        released = noisy(counts, scale, rng)
        pmd.LaplaceMechanism(scale / 2**0.5).potential("privacy", events, released=released)
    return model


def walks_of_two_scales(times=50, scale=4.0):
    """Two random walks, each with a scale of its own."""
    rng = np.random.default_rng(43)
    walks = np.array([_walk(times, rng, 0.05), _walk(times, rng, 0.3)])
    counts = rng.poisson(np.exp(walks))
    with pm.Model() as model:
        spread = pm.HalfNormal("spread", 0.5, shape=2)
        start = pm.Normal.dist(3, 1)
        walk = pm.GaussianRandomWalk("walk", sigma=spread, init_dist=start, shape=(2, times))
        events = pm.Poisson("events", pt.exp(walk), shape=(2, times))
        _published("privacy", events, counts, scale, rng)
    return model


def two_walks(times=30, scale=3.0):
    """Two places whose log rates are a common random walk and one of their own."""
    rng = np.random.default_rng(44)
    common = _walk(times, rng, 0.2)
    counts = rng.poisson(np.exp([common, common + _walk(times, rng, 0.1, 0)]))
    with pm.Model() as model:
        a, b = pm.HalfNormal("a", 0.3), pm.HalfNormal("b", 0.3)
        common = pm.GaussianRandomWalk("common", sigma=a, init_dist=pm.Normal.dist(3, 1), shape=30)
        own = pm.GaussianRandomWalk("own", sigma=b, init_dist=pm.Normal.dist(0, 0.5), shape=30)
        events = pm.Poisson("events", pt.exp(pt.stack([common, common + own])), shape=(2, times))
        _published("privacy", events, counts, scale, rng)
    return model


def steps_by_hand(times=60, scale=8.0):
    """A random walk as the cumulated sum of its steps."""
    rng = np.random.default_rng(45)
    counts = rng.poisson(np.exp(_walk(times, rng)))
    with pm.Model() as model:
        spread, level = pm.HalfNormal("spread", 0.3), pm.Normal("level", 3, 1)
        steps = pm.Normal("steps", 0, spread, shape=times)
        events = pm.Poisson("events", pt.exp(level + steps.cumsum()), shape=times)
        _published("privacy", events, counts, scale, rng)
    return model


def long_ar(times=120, scale=8.0):
    """One AR(1) series with a flat prior of its coefficient and a level."""
    rng = np.random.default_rng(46)
    u = np.zeros(times)
    for t in range(1, times):
        u[t] = 0.8 * u[t - 1] + 0.2 * rng.normal()
    counts = rng.poisson(np.exp(3 + u))
    with pm.Model() as model:
        rho, sigma = pm.Uniform("rho", -1, 1), pm.HalfNormal("sigma", 0.5)
        level = pm.Normal("level", 3, 1)
        start = pm.Normal.dist(0, sigma / pt.sqrt(1 - rho**2))
        u = pm.AR("u", rho[None], sigma, init_dist=start, shape=times)
        events = pm.Poisson("events", pt.exp(level + u), shape=times)
        _published("privacy", events, counts, scale, rng)
    return model


def ar_of_two_lags(times=50, scale=6.0):
    """A series with two lags and a constant."""
    rng = np.random.default_rng(47)
    u = np.full(times, 3.0)
    for t in range(2, times):
        u[t] = 0.9 + 0.9 * u[t - 1] - 0.2 * u[t - 2] + 0.15 * rng.normal()
    counts = rng.poisson(np.exp(u))
    with pm.Model() as model:
        lags = pm.Normal("lags", [0.5, 0.5, 0], 0.3, shape=3)
        sigma = pm.HalfNormal("sigma", 0.5)
        start = pm.Normal.dist(3, 1)
        u = pm.AR("u", lags, sigma, constant=True, init_dist=start, shape=times)
        events = pm.Poisson("events", pt.exp(u), shape=times)
        _published("privacy", events, counts, scale, rng)
    return model


def walk_of_t_steps(times=60, scale=5.0):
    """A random walk with Student t steps."""
    rng = np.random.default_rng(48)
    counts = rng.poisson(np.exp(3 + 0.1 * rng.standard_t(4, times).cumsum()))
    with pm.Model() as model:
        spread = pm.HalfNormal("spread", 0.3)
        start, steps = pm.Normal.dist(3, 1), pm.StudentT.dist(4, mu=0, sigma=spread)
        walk = pm.RandomWalk("walk", init_dist=start, innovation_dist=steps, steps=times - 1)
        events = pm.Poisson("events", pt.exp(walk), shape=times)
        _published("privacy", events, counts, scale, rng)
    return model


def many_rates(groups=30, scale=15.0):
    """Log rates of 30 groups around a mean, with noise about as large as the counts."""
    rng = np.random.default_rng(49)
    counts = rng.poisson(np.exp(rng.normal(2.5, 0.5, groups)))
    with pm.Model() as model:
        mean, spread = pm.Normal("mean", 2, 1), pm.HalfNormal("spread", 1)
        log_rate = pm.Normal("log_rate", mean, spread, shape=groups)
        events = pm.Poisson("events", pt.exp(log_rate), shape=groups)
        _published("privacy", events, counts, scale, rng)
    return model


def mixed_rates(groups=12, scale=10.0):
    """Log rates of 12 groups whose exposures differ by a factor of 10,000."""
    rng = np.random.default_rng(50)
    exposure = np.logspace(-1, 3, groups)
    counts = rng.poisson(exposure * np.exp(rng.normal(1, 0.4, groups)))
    with pm.Model() as model:
        mean, spread = pm.Normal("mean", 0, 2), pm.HalfCauchy("spread", 0.5)
        log_rate = pm.Normal("log_rate", mean, spread, shape=groups)
        events = pm.Poisson("events", exposure * pt.exp(log_rate), shape=groups)
        _published("privacy", events, counts, scale, rng)
    return model


def four_histograms(n=300, scale=3.0):
    """Four normal columns with a flat prior of correlations, by a histogram of each."""
    rng, edges = np.random.default_rng(51), np.linspace(-4, 4, 7)
    covariance = np.full((4, 4), 0.4) + 0.6 * np.eye(4)
    values = rng.multivariate_normal([0, 0.5, -0.5, 0], covariance, n)
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1, shape=4)
        deviations = pm.HalfNormal.dist(2, size=4)
        chol, _, _ = pm.LKJCholeskyCov("chol", n=4, eta=1, sd_dist=deviations)
        x = pm.MvNormal("x", mu, chol=chol, shape=(n, 4))
        for k in range(4):
            counts = np.histogram(values[:, k].clip(-3.9, 3.9), edges)[0]
            table = pmd.statistics.histogram(x[:, k], edges)
            released = noisy(counts, scale, rng)
            pmd.GaussianMechanism(scale).potential(f"table{k}", table, released=released)
    return model


def two_columns(n=500, scale=10.0):
    """Two normal columns with strong correlation, by noisy histograms of each and of their sum."""
    rng, edges = np.random.default_rng(52), np.linspace(-4, 4, 9)
    values = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], n)
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1, shape=2)
        deviations = pm.Exponential.dist(1, size=2)
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=1, sd_dist=deviations)
        x = pm.MvNormal("x", mu, chol=chol, shape=(n, 2))
        columns = {"a": (values[:, 0], x[:, 0]), "b": (values[:, 1], x[:, 1])}
        columns["sum"] = values.sum(axis=1) / 2, (x[:, 0] + x[:, 1]) / 2
        for name, (true, latent) in columns.items():
            counts = np.histogram(true.clip(-3.9, 3.9), edges)[0]
            table = pmd.statistics.histogram(latent, edges)
            released = noisy(counts, scale, rng)
            pmd.GaussianMechanism(scale).potential(name, table, released=released)
    return model


def level_and_walk(times=50, scale=4.0):
    """A level with a wide prior, and a random walk around it."""
    rng = np.random.default_rng(53)
    counts = rng.poisson(np.exp(_walk(times, rng, 0.15, 3.5)))
    with pm.Model() as model:
        level, spread = pm.Normal("level", 3, 1), pm.HalfNormal("spread", 0.3)
        start = pm.Normal.dist(0, 1)
        walk = pm.GaussianRandomWalk("walk", sigma=spread, init_dist=start, shape=times)
        events = pm.Poisson("events", pt.exp(level + walk), shape=times)
        _published("privacy", events, counts, scale, rng)
    return model


def crossed_rates(rows=10, columns=6, scale=4.0):
    """Log rates of a table: a centre, an effect of each row, and one of each column."""
    rng = np.random.default_rng(54)
    effects = rng.normal(0, 0.5, (rows, 1)), rng.normal(0, 0.5, columns)
    counts = rng.poisson(np.exp(3 + effects[0] + effects[1]))
    with pm.Model() as model:
        centre, spread = pm.Normal("centre", 3, 2), pm.HalfNormal("spread", 1, shape=2)
        row = pm.Normal("row", 0, spread[0], shape=rows)
        column = pm.Normal("column", 0, spread[1], shape=columns)
        rate = pt.exp(centre + row[:, None] + column)
        events = pm.Poisson("events", rate, shape=(rows, columns))
        _published("privacy", events, counts, scale, rng)
    return model


def nested_rates(regions=6, counties=8, scale=4.0):
    """Log rates of counties: a centre, an effect of each region, and one of each county."""
    rng = np.random.default_rng(55)
    region = np.repeat(np.arange(regions), counties)
    effects = rng.normal(0, 0.6, regions)[region] + rng.normal(0, 0.3, len(region))
    counts = rng.poisson(np.exp(3 + effects))
    with pm.Model() as model:
        centre, spread = pm.Normal("centre", 3, 2), pm.HalfNormal("spread", 1, shape=2)
        of_region = pm.Normal("of_region", 0, spread[0], shape=regions)
        of_county = pm.Normal("of_county", 0, spread[1], shape=len(region))
        rate = pt.exp(centre + of_region[region] + of_county)
        events = pm.Poisson("events", rate, shape=len(region))
        _published("privacy", events, counts, scale, rng)
    return model


def covariates_with_covariance(n=300, scale=0.8):
    """A regression on four correlated private covariates, from noisy clamped cross products."""
    rng = np.random.default_rng(56)
    factor = np.array([[1, 0, 0, 0], [0.5, 1, 0, 0], [0.2, 0.3, 1, 0], [0, 0.1, 0.4, 1]])
    covariance = factor @ factor.T
    sd = np.sqrt(np.diag(covariance))
    data = rng.multivariate_normal(np.zeros(4), covariance / np.outer(sd, sd), n)
    y = 0.3 + data @ [1.0, -0.5, 0.0, 0.7] + rng.normal(0, 0.8, n)
    mechanism, clamp = pmd.LaplaceMechanism(scale), (-5, 5)
    released = pmd.statistics.regression(data, y, clamp=clamp).value
    with pm.Model() as model:
        deviations = pm.HalfNormal.dist(2, shape=4)
        chol, _, _ = pm.LKJCholeskyCov("chol", n=4, eta=2, sd_dist=deviations)
        mu, intercept = pm.Normal("mu", 0, 1, shape=4), pm.Normal("intercept", 0, 2)
        beta, sigma = pm.Normal("beta", 0, 2, shape=4), pm.HalfNormal("sigma", 2)
        x = pm.MvNormal("x", mu, chol=chol, shape=(n, 4))
        outcome = pm.Normal("outcome", intercept + x @ beta, sigma, shape=n)
        statistic = pmd.statistics.regression(x, outcome, clamp=clamp).value
        noise = rng.laplace(0, scale, released.shape)
        mechanism.potential("privacy", statistic, released=released + noise)
    return model


def answers_with_slopes(n=800, k=4):
    """Four randomised answers a person: logits in a public covariate, slopes of a common law."""
    rng = np.random.default_rng(57)
    age = rng.normal(size=n)
    logit = np.array([-1, 0, 0.5, -0.5]) + age[:, None] * [0.5, 0.8, 0.2, 0.6]
    truth = rng.random((n, k)) < 1 / (1 + np.exp(-logit))
    answers = (truth ^ (rng.random((n, k)) < 0.25)).astype(int)
    with pm.Model() as model:
        mean, spread = pm.Normal("mean", 0, 1), pm.HalfNormal("spread", 0.5)
        level, slope = (
            pm.Normal("level", 0, 1.5, shape=k),
            pm.Normal("slope", mean, spread, shape=k),
        )
        x = pm.Bernoulli("x", logit_p=level + age[:, None] * slope, shape=(n, k))
        pmd.RandomizedResponse(0.75, categories=2).observe("answers", x, released=answers)
    return model


def wages_by_job(n=400, scale=20.0):
    """Jobs, visits that nothing links to them, and wages by job: noisy counts and clamped sums."""
    rng = np.random.default_rng(58)
    jobs, visits = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1]), rng.poisson(2.5, n).clip(0, 10)
    wages = rng.normal(np.arange(2.0, 6.0)[jobs], 1).clip(0, 8)
    few, many = pmd.LaplaceMechanism(scale / 4), pmd.LaplaceMechanism(scale)

    def published(value, noise=scale):
        return value + rng.laplace(0, noise, np.shape(value))

    with pm.Model() as model:
        p, rate = pm.Dirichlet("p", np.ones(4)), pm.Gamma("rate", 2, 1)
        mu, sigma = pm.Normal("mu", 3, 2, shape=4), pm.HalfNormal("sigma", 2)
        job, visit = pm.Categorical("job", p, shape=n), pm.Poisson("visit", rate, shape=n)
        inside = pt.clip(pm.Normal("wage", mu[job], sigma, shape=n), 0, 8)
        released = published(np.bincount(jobs, minlength=4), scale / 4)
        few.potential("jobs", pmd.statistics.counts(job, 4), released=released)
        many.potential("visits", pt.clip(visit, 0, 10).sum(), released=published(visits.sum()))
        released = published(np.bincount(jobs, wages, 4))
        many.potential("wages", pt.zeros(4)[job].inc(inside), released=released)
        many.potential("squares", (inside**2).sum(), released=published((wages**2).sum()))
    return model


def totals_of_items(n=150, items=8, scale=1.5):
    """Abilities and difficulties, from each pupil's noisy total and each item's."""
    rng = np.random.default_rng(59)
    able, hard = rng.normal(0, 1.2, n), np.linspace(-1.5, 1.5, items)
    right = rng.random((n, items)) < 1 / (1 + np.exp(hard - able[:, None]))
    with pm.Model() as model:
        spread, difficulty = pm.HalfNormal("spread", 2), pm.Normal("difficulty", 0, 2, shape=items)
        ability = pm.Normal("ability", 0, spread, shape=n)
        answer = pm.Bernoulli("answer", logit_p=ability[:, None] - difficulty, shape=(n, items))
        _published("of_pupils", answer.sum(axis=1), right.sum(axis=1), scale, rng)
        _published("of_items", answer.sum(axis=0), right.sum(axis=0), 3 * scale, rng)
    return model


NEIGHBOURS = {
    x.__name__: x
    for x in (
        walk_precise, walk_with_drift, walks_of_two_scales, two_walks, steps_by_hand, long_ar,
        ar_of_two_lags, walk_of_t_steps, many_rates, mixed_rates, four_histograms, two_columns,
        level_and_walk, crossed_rates, nested_rates, covariates_with_covariance,
        answers_with_slopes, wages_by_job, totals_of_items,
    )
}  # fmt: skip
