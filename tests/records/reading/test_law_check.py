"""Draws that don't follow their density are refused, and no others."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dapper import ReadingError
from pymc_dapper.reading import read_model
from pymc_dapper.records.reading import law_check
from pymc_dapper.records.reading.self_check import check_reading

pytestmark = pytest.mark.filterwarnings("ignore:No safe default transform")


def continuous():
    return pm.Normal("mu", 0, 3), pm.Gamma("sigma", 4, 4), pm.Beta("w", 2, 2)


def whole():
    k = pm.DiscreteUniform("k", 1, 9)
    return 0.0, k, k / 10


def check(record, n=200, parameters=continuous):
    """Check the records that a function of their parameters makes."""
    with pm.Model() as model:
        x = record(*parameters(), n)
        pm.Potential("privacy", -0.1 * x.sum() ** 2)
    point = model.initial_point()
    check_reading(read_model(model, [model.rvs_to_values[x]], point), point)


def normal(x, mu, sigma):
    return pm.logp(pm.Normal.dist(mu, sigma), x)


def by_hand(draw, logp=normal):
    """Records whose draws and whose density are written apart."""

    def random(mu, sigma, rng=None, size=None):
        return draw(rng, mu, sigma, size)

    return lambda mu, sigma, w, n: pm.CustomDist("x", mu, sigma, logp=logp, random=random, shape=n)


def made(f):
    return lambda mu, sigma, w, n: pm.CustomDist("x", mu, sigma, dist=f, shape=n)


def mixture(*laws, weights=lambda w: pt.stack([w, 1 - w])):
    def record(mu, sigma, w, n):
        return pm.Mixture("x", weights(w), [law(mu, sigma) for law in laws], shape=n)

    return record


def zero(mu, sigma):
    return pm.DiracDelta.dist(0.0)


def censored(mu, sigma):
    return pm.Censored.dist(pm.Normal.dist(mu, 1), lower=0, upper=None)


def log_normal_but_for_what_no_parameter_enters(x, mu, sigma):
    return -0.5 * ((pt.log(x) - mu) / sigma) ** 2 - pt.log(sigma)


def inflated(x, mu, sigma):
    """A point mass at 0 with the probability below 0, beside a density above."""
    base = pm.Normal.dist(mu, sigma)
    return pt.switch(pt.eq(x, 0), pm.logcdf(base, 0.0), pm.logp(base, x))


RIGHT = {
    "normal": by_hand(lambda rng, mu, sigma, size: rng.normal(mu, sigma, size)),
    "a density that isn't normalised": by_hand(
        lambda rng, mu, sigma, size: rng.lognormal(mu, sigma, size),
        log_normal_but_for_what_no_parameter_enters,
    ),
    "a point mass by hand": by_hand(
        lambda rng, mu, sigma, size: np.maximum(rng.normal(mu, sigma, size), 0), inflated
    ),
    "rounded": made(lambda mu, sigma, size: pt.round(pm.Normal.dist(mu, 3 * sigma, size=size))),
    "clipped and turned": made(
        lambda mu, sigma, size: -pt.clip(pm.Normal.dist(mu, sigma, size=size), -0.5, 1)
    ),
    "zero or lognormal": mixture(zero, pm.LogNormal.dist),
    "no parameters": by_hand(lambda rng, mu, sigma, size: rng.normal(7, 1, size), lambda x, *_: -x),
}
WRONG = {
    "variance for deviation": by_hand(
        lambda rng, mu, sigma, size: rng.normal(mu, sigma**0.5, size)
    ),
    "rate for scale": by_hand(lambda rng, mu, sigma, size: rng.normal(mu, 1 / sigma, size)),
    "no mean": by_hand(lambda rng, mu, sigma, size: rng.normal(0, sigma, size)),
    "not normalised by a parameter": by_hand(
        lambda rng, mu, sigma, size: rng.normal(mu, sigma, size),
        lambda x, mu, sigma: -0.5 * ((x - mu) / sigma) ** 2,
    ),
    # PyMC takes the number at a bound for a density.
    "clipped and scaled": made(
        lambda mu, sigma, size: sigma * pt.clip(pm.Normal.dist(mu, 1, size=size), -0.5, 1)
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_draws_that_follow_their_density_pass(name):
    record = RIGHT[name]
    if name == "no parameters":
        check(lambda mu, sigma, w, n: record(0.0, 1.0, w, n))
    else:
        check(record)


@pytest.mark.parametrize("name", WRONG)
def test_draws_that_do_not_are_refused(name):
    with pytest.raises(ReadingError, match=r"draws from the prior of 'x' don't follow its dens"):
        check(WRONG[name])


@pytest.mark.parametrize("wrong", [False, True])
def test_clipped_laws_in_a_mixture_have_the_same_bounds(wrong):
    def higher(mu, sigma):
        return pm.Censored.dist(pm.Normal.dist(mu, 1), lower=0.5 if wrong else 0, upper=None)

    if wrong:
        with pytest.raises(ReadingError, match=r"'x' is a mixture of a law with a point mass"):
            check(mixture(censored, higher))
    else:
        check(mixture(censored, higher))


def test_parameters_may_be_whole_numbers():
    check(RIGHT["normal"], parameters=whole)
    with pytest.raises(ReadingError, match=r"of 'x' don't follow .* two values of 'k'"):
        check(WRONG["rate for scale"], parameters=whole)
    with pytest.raises(ReadingError, match=r"'x' is a mixture of a law with a point mass"):
        check(mixture(zero, pm.Normal.dist), parameters=whole)


@pytest.mark.parametrize(("here", "there"), [(1, 9), (9, 1), ([0, 5], [-7, 5])])
def test_whole_numbers_come_near_and_stay_apart(here, there):
    here, at = np.array(here), np.array(there)
    for _ in range(law_check.SHRINKS):
        at = law_check._half_way(here, at)
        assert at.dtype.kind == "i"
    assert np.array_equal(at - here, np.sign(np.array(there) - here))


@pytest.mark.parametrize("other", [pm.Normal.dist, censored])
def test_a_point_mass_beside_a_density_is_refused(other):
    laws = [zero, other] if other is not censored else [censored, pm.Normal.dist]
    with pytest.raises(ReadingError, match=r"'x' is a mixture of a law with a point mass .*switch"):
        check(mixture(*laws), n=5)


def test_counts_truncated_between_whole_numbers_are_refused():
    with pytest.raises(ReadingError, match=r"'x' is a distribution of whole numbers, truncated"):
        check(lambda mu, sigma, w, n: pm.Truncated("x", pm.Poisson.dist(sigma), lower=0.5, shape=n))


@pytest.mark.parametrize(
    "record",
    [
        lambda mu, sigma, w, n: pm.HurdleGamma("x", w, mu=1 + sigma, sigma=1, shape=n),
        lambda mu, sigma, w, n: pm.HurdleLogNormal("x", w, mu, sigma, shape=n),
        lambda mu, sigma, w, n: pm.ZeroInflatedPoisson("x", w, sigma, shape=n),
        lambda mu, sigma, w, n: pm.Censored("x", pm.Normal.dist(mu, sigma), 0, None, shape=n),
    ],
)
def test_known_laws_are_not_looked_at(record, monkeypatch):
    monkeypatch.setattr(law_check, "_Laws", None)
    check(record)


@pytest.mark.parametrize("wrong", [False, True])
def test_the_error_rate_is_what_was_derived(wrong, monkeypatch):
    """Of tosses with the probabilities said, one in many is refused; of others, each."""
    monkeypatch.setattr(law_check, "FALSE_ALARMS", 0.9)
    rng = np.random.default_rng(1)

    class Tosses(law_check._Laws):
        def __init__(self):
            self._reading = type("Reading", (), {"n_records": 512, "parameters": (), "names": list})

        def _near_enough(self, here, there, *_):
            return there

        def _draw(self, *_):
            p = rng.beta(0.7, 0.9, 512)
            return p, rng.random(512) < (p**1.2 if wrong else p)

    refused = 0
    for _ in range(20):
        try:
            Tosses().check({}, {}, [], "'x'", np.random.default_rng())
        except ReadingError:
            refused += 1
    # 20 right ones at 0.9 each, for all directions: 3 for this one, were the bound sharp.
    assert (
        refused == 20 if wrong else refused <= stats.binom(20, 0.9 / law_check.DIRECTIONS).isf(1e-4)
    )
