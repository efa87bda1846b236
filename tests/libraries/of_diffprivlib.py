import numpy as np
import pytest
from diffprivlib import mechanisms
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.releases import diffprivlib_mechanism
from tests.libraries.compared import N_NOISES, RECORDS, assert_posterior, same_law

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
