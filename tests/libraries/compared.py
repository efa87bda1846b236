"""Releases that a library made, compared with what was read of them."""

import arviz as az
import numpy as np
import pymc as pm
from scipy import stats

import pymc_dapper as pmd

N, PRIOR = 60, (2, 2)
"""People, and the Beta prior of the share of those who are ill."""

RECORDS = np.repeat([1, 0], [18, N - 18])

N_NOISES = 4000


def same_law(of_library, mechanism, statistic):
    """The p-value of a library's releases and the mechanism's being of one law, by 20 bins."""
    of_ours = mechanism.release(np.full(N_NOISES, statistic), np.random.default_rng(1))
    samples = [np.asarray(x, dtype=float) for x in (of_library, np.ma.filled(of_ours, np.nan))]
    edges = np.unique(np.quantile(np.concatenate(samples), np.linspace(0, 1, 21)))[1:]
    table = np.stack([np.bincount(np.searchsorted(edges, x), minlength=21) for x in samples])
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


def assert_posterior(query, law, scale):
    """Assert that the sampled posterior mean of a count is that by Bayes' rule, for a law of noise.

    ``law(counts, scale)`` has the probability of what was released at counts, up to a constant.
    With ten times the scale it must not be the posterior mean.
    """
    with pm.Model():
        share = pm.Beta("share", *PRIOR)
        count = pm.Binomial("ill", N, share)
        query.potential(count)
        step = pmd.CountStep([count], integrate=[share])
        draws = (
            pm.sample(
                4000,
                tune=500,
                chains=1,
                step=[step],
                random_seed=1,
                progressbar=False,
                compute_convergence_checks=False,
            )
            .posterior["ill"]
            .values
        )
    error = draws.std() / np.sqrt(float(az.ess(draws)))
    counts = np.arange(N + 1)
    for times, same in ((1, True), (10, False)):
        weights = stats.betabinom(N, *PRIOR).pmf(counts) * law(counts, times * scale)
        off = draws.mean() - np.average(counts, weights=weights)
        assert (abs(off) < 4.5 * error) == same


N_TRUTHS, N_RECORDS, RATE, N_DRAWS = 200, 20, (4, 0.4), 1000
"""Releases of a quantile, records of each, the gamma prior of their Poisson rate, and draws."""


def released_quantiles(release):
    """True rates, and a release that a library made of records with each."""
    rng = np.random.default_rng(1)
    truths = rng.gamma(RATE[0], 1 / RATE[1], N_TRUTHS)
    return truths, np.array([release(rng.poisson(truth, N_RECORDS)) for truth in truths])


def places_of_truths(mechanism, truths, released, cells):
    """Where true rates lie among draws of their posteriors, from 0 to 1.

    Releases in the same cell have the same posterior. So one posterior is sampled for each cell.
    """
    with pm.Model():
        rate = pm.Gamma("rate", *RATE)
        x = pm.Poisson("x", rate, shape=N_RECORDS)
        mechanism.potential("quantile", mechanism.statistic(x), released=released[0])
        steps = pmd.assign_steps([x])
        places = np.empty(N_TRUTHS)
        for cell in np.unique(cells):
            pm.set_data({"quantile_released": released[cells == cell][0]})
            draws = pm.sample(
                N_DRAWS,
                tune=200,
                chains=1,
                step=steps,
                random_seed=1,
                progressbar=False,
                compute_convergence_checks=False,
                quiet=True,
            )
            rates = np.sort(draws.posterior["rate"].values.ravel())
            places[cells == cell] = np.searchsorted(rates, truths[cells == cell]) / N_DRAWS
    return places
