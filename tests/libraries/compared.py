"""Releases that a library made, compared with what was read of them."""

import numpy as np
import pymc as pm
from scipy import stats

import pymc_dapper as pmd
from tests.short_chains import chain

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
    """Assert that the posterior of a count is that by Bayes' rule, for a law of noise.

    ``law(counts, scale)`` has the probability of what was released at counts, up to a constant.
    With ten times the scale it must not be the posterior. Nothing is drawn: the model's own
    density is evaluated at all counts.
    """
    with pm.Model() as model:
        query.potential(pm.BetaBinomial("ill", *PRIOR, N))
    joint = model.compile_logp(mode="FAST_COMPILE")
    counts = np.arange(N + 1)
    found = np.exp([joint({"ill": np.array(count)}) for count in counts])
    for times, same in ((1, True), (10, False)):
        exact = stats.betabinom(N, *PRIOR).pmf(counts) * law(counts, times * scale)
        off = found / found.sum() - exact / exact.sum()
        assert (np.abs(off).max() < 1e-9) == same


N_TRUTHS, N_RECORDS, RATE, N_DRAWS = 200, 20, (4, 0.4), 500
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
    with pm.Model() as model:
        rate = pm.Gamma("rate", *RATE)
        x = pm.Poisson("x", rate, shape=N_RECORDS)
        mechanism.potential("quantile", mechanism.statistic(x), released=released[0])
        steps = pmd.assign_steps([x])
    places, rng = np.empty(N_TRUTHS), np.random.default_rng(1)
    for cell in np.unique(cells):
        pm.set_data({"quantile_released": released[cells == cell][0]}, model=model)
        drawn = chain(model.initial_point(), steps, rng, tune=200, draws=N_DRAWS)
        rates = np.sort([np.exp(point["rate_log__"]) for point in drawn])
        places[cells == cell] = np.searchsorted(rates, truths[cells == cell]) / N_DRAWS
    return places
