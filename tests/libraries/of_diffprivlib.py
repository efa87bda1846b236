import numpy as np
import pytest
from diffprivlib import mechanisms, tools
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.releases import diffprivlib_mechanism
from tests.libraries.compared import (
    N_NOISES,
    RECORDS,
    assert_posterior,
    places_of_truths,
    released_quantiles,
    same_law,
)

SEED = {"random_state": 1}

GIVEN = [
    mechanisms.Laplace(epsilon=0.5, sensitivity=2, **SEED),
    mechanisms.Laplace(epsilon=0.5, delta=0.1, sensitivity=2, **SEED),
    mechanisms.LaplaceTruncated(epsilon=0.5, sensitivity=2, lower=0, upper=9.5, **SEED),
    mechanisms.Gaussian(epsilon=0.5, delta=0.1, sensitivity=1, **SEED),
    mechanisms.GaussianAnalytic(epsilon=2.0, delta=0.01, sensitivity=1, **SEED),
    mechanisms.GaussianDiscrete(epsilon=0.5, delta=0.1, sensitivity=1, **SEED),
    mechanisms.Geometric(epsilon=0.5, sensitivity=2, **SEED),
    mechanisms.GeometricTruncated(epsilon=0.5, sensitivity=2, lower=0, upper=9, **SEED),
    # As `diffprivlib.tools` make it for histograms.
    mechanisms.GeometricTruncated(epsilon=0.5, lower=0, upper=np.iinfo(np.int64).max, **SEED),
]


@pytest.mark.parametrize("given", GIVEN, ids=lambda given: type(given).__name__)
def test_noise_has_the_law_that_is_read(given):
    mechanism, noisy = diffprivlib_mechanism(given), [given.randomise(5) for _ in range(N_NOISES)]
    assert same_law(noisy, mechanism, 5) > 1e-4
    given.epsilon *= 1.5
    if type(given).__name__ in ("Laplace", "LaplaceTruncated"):
        assert same_law(noisy, diffprivlib_mechanism(given), 5) < 1e-4
    assert same_law(noisy, mechanism, 6) < 1e-4


def test_what_is_chosen():
    utility = [1.0, 2.0, 4.0]
    for kind in (mechanisms.Exponential, mechanisms.PermuteAndFlip):
        for monotonic in (False, True):
            given = kind(epsilon=1.0, sensitivity=1, utility=utility, monotonic=monotonic, **SEED)
            mechanism, rng = diffprivlib_mechanism(given), np.random.default_rng(1)
            chosen = [given.randomise() for _ in range(N_NOISES)]
            for times, same in ((1, True), (3, False)):
                ours = mechanism.release(np.tile(utility, (N_NOISES, 1)) * times, rng)[:, 0]
                table = np.stack([np.bincount(x, minlength=3) for x in (chosen, ours)])
                assert (stats.chi2_contingency(table).pvalue > 1e-4) == same


def test_answers():
    given = mechanisms.Binary(epsilon=1.0, value0="no", value1="yes", **SEED)
    answers = [given.randomise("yes") for _ in range(N_NOISES)]
    kept = diffprivlib_mechanism(given).keep_probability
    assert abs(np.mean(np.array(answers) == "yes") - kept) < 4.5 * np.sqrt(
        kept * (1 - kept) / N_NOISES
    )


def interval(alpha, times=1.0):
    return pmd.IntervalQuantileMechanism(0, 40, alpha, times * 2 / 0.8)


@pytest.mark.parametrize("alpha", [0.5, 0.9])
def test_quantiles_have_the_density_that_the_page_says(alpha):
    records, rng = np.array([3, 10, 10, 17, 24, 30, 41, 0]), np.random.RandomState(1)
    drawn = [
        tools.quantile(records, alpha, epsilon=0.8, bounds=(0, 40), random_state=rng)
        for _ in range(N_NOISES)
    ]
    for times, same in ((1.0, True), (2.0, False)):
        mechanism = interval(alpha, times)
        logp = mechanism.logp(np.arange(40) + 0.5, mechanism.statistic(records)).eval(
            mode="FAST_COMPILE"
        )
        found = np.histogram(drawn, range(41))[0]
        assert (stats.chisquare(found, np.exp(logp) * N_NOISES).pvalue > 1e-4) == same


@pytest.mark.parametrize(("alpha", "taken_for"), [(0.5, [0.5]), (0.9, [0.9, 0.5])])
def test_truths_lie_anywhere_in_posteriors_of_quantiles(alpha, taken_for):
    """Of 200 releases each. The broken twin takes the ninth decile for the median."""
    rng = np.random.RandomState(1)
    truths, released = released_quantiles(
        lambda x: tools.quantile(x, alpha, epsilon=0.8, bounds=(0, 40), random_state=rng)
    )
    for of in taken_for:
        places = places_of_truths(interval(of), truths, released, cells=np.floor(released))
        counts, _ = np.histogram(places, bins=np.linspace(0, 1, 11))
        assert (stats.chisquare(counts).pvalue < 1e-4) == (of != alpha)


@pytest.mark.parametrize("kind", ["LaplaceFolded", "LaplaceBoundedDomain", "GeometricFolded"])
def test_other_noise_is_refused(kind):
    given = getattr(mechanisms, kind)(epsilon=0.5, sensitivity=2, lower=0, upper=10)
    with pytest.raises(ValueError, match=kind):
        diffprivlib_mechanism(given)


def test_a_release_becomes_its_posterior():
    given = mechanisms.LaplaceTruncated(epsilon=0.2, sensitivity=1, lower=0, upper=60, **SEED)
    query = pmd.Query("released", given.randomise(int(RECORDS.sum())), diffprivlib_mechanism(given))
    released = float(query.values)
    assert 0 < released < 60
    assert_posterior(
        query,
        lambda counts, scale: stats.laplace(counts, scale).pdf(released),
        1 / 0.2,
    )
