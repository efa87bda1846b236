"""Records as a function of parameters and noise: what has no map, and maps of one's own."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dapper.interweaving.reading.maps import NoRecordMapError
from pymc_dapper.interweaving.reading.model import can_interweave
from pymc_dapper.interweaving.step import InterweaveStep
from tests.interweaving.moving import move
from tests.interweaving.wald import inverse_gaussian, wald_model


def test_what_has_no_quantiles_is_refused_with_the_remedy():
    with pm.Model() as model:
        a = pm.HalfNormal("a")
        kappa = pm.VonMises("x", 0, a, shape=3)
        pm.Potential("release", -(kappa.sum() ** 2))
        with pytest.raises(NoRecordMapError, match=r"records 'x'.*quantiles of VonMises.*register"):
            InterweaveStep([a], records=[kappa])
    assert can_interweave(model, [a], [kappa]) == []


@pytest.mark.parametrize(
    ("records", "name"),
    [
        (lambda a: pm.Dirichlet("x", a * np.ones(3), shape=(4, 3)), "Dirichlet is multivariate"),
        (lambda a: pm.MvStudentT("x", nu=a, mu=np.zeros(2), scale=np.eye(2)), "degrees of freedom"),
        (lambda a: pm.Truncated("x", pm.VonMises.dist(0, a), upper=1, shape=3), "quantiles of"),
        (lambda a: pm.Truncated("x", pm.Poisson.dist(a), upper=5, shape=3), "is discrete"),
    ],
)
def test_other_distributions_without_a_map_are_refused(records, name):
    with pm.Model():
        a = pm.HalfNormal("a")
        x = records(a)
        pm.Potential("release", -(x.sum() ** 2))
        with pytest.raises(NoRecordMapError, match=name):
            InterweaveStep([a], records=[x])


def test_warnings_of_pymcs_quantiles_do_not_reach_the_user():
    """Of an InverseGamma law with an unknown shape, PyMC warns of its own variables."""
    with pm.Model() as model:
        a, b = pm.HalfNormal("a"), pm.HalfNormal("b")
        x = pm.InverseGamma("x", a, b, shape=3)
        pm.Potential("release", -(x.sum() ** 2))
    assert can_interweave(model, [a, b], [x]) == [a, b]


def custom(f):
    def dist(mu, sigma, size):
        return f(pm.Normal.dist(mu, sigma, size=size))

    return lambda mu, sigma, size: pm.CustomDist.dist(mu, sigma, dist=dist, size=size)


def censored(lower, upper):
    def dist(mu, sigma, size):
        return pm.Censored.dist(pm.Normal.dist(mu, sigma), lower=lower, upper=upper, size=size)

    return dist


CLIPPED = {
    "censored": (censored(-0.5, 1.2), -0.5, 1.2),
    "censored below": (censored(-0.5, None), -0.5, np.inf),
    "censored above": (censored(None, 1.2), -np.inf, 1.2),
    "clip": (custom(lambda z: pt.clip(z, -0.5, 1.2)), -0.5, 1.2),
    "maximum": (custom(lambda z: pt.maximum(z, -0.5)), -0.5, np.inf),
}


@pytest.mark.parametrize("name", CLIPPED)
def test_the_noise_of_a_clipped_record_is_drawn_within_the_jump_at_a_bound(name):
    dist, lower, upper = CLIPPED[name]
    before, after, rng = (0.2, 1.1), (0.5, 0.9), np.random.default_rng(1)
    law = stats.norm(*before)
    x, v = np.clip(law.rvs(400, random_state=rng), lower, upper), rng.random(400)
    u = np.where(x == lower, v * law.cdf(lower), law.cdf(x))
    u = np.where(x == upper, law.cdf(upper) + v * law.sf(upper), u)
    assert np.isin([lower, upper], x).tolist() == list(np.isfinite([lower, upper]))
    moved, back = move(dist, before, after, x, v, size=400)
    # PyMC's quantiles of a normal are good to 1e-8 near its mean.
    close = {"rtol": 1e-7, "atol": 3e-8}
    np.testing.assert_allclose(back, x, **close)
    np.testing.assert_allclose(moved, np.clip(stats.norm(*after).ppf(u), lower, upper), **close)
    # Bounds are met exactly: else their probability would be taken for a density.
    assert np.all(np.isin(back[np.isin(x, [lower, upper])], [lower, upper]))
    assert np.sum(np.isin(moved, [lower, upper])) > 20


@pytest.mark.parametrize(
    "f",
    [
        lambda z: -pt.clip(z, -0.5, 1.2),
        lambda z: pt.clip(z, -0.5, 1.2) + 1,
        lambda z: pt.clip(pt.clip(z, -0.5, 1.2), 0, 1),
        pt.round,
        lambda z: pt.cast(pt.floor(z), "int64").astype("float64"),
    ],
)
def test_other_laws_that_are_not_known_to_be_continuous_are_refused(f):
    with pm.Model():
        mu = pm.Normal("mu")
        x = pm.CustomDist("x", mu, 1.0, dist=lambda *given: custom(f)(*given), shape=3)
        pm.Potential("release", -(x.sum() ** 2))
        with pytest.raises(NoRecordMapError, match=r"'x'.*isn't known to be continuous"):
            InterweaveStep([mu], records=[x])


@pytest.mark.usefixtures("uncompiled")
def test_a_map_can_be_registered(register_wald):
    model = wald_model()
    assert can_interweave(model, [model["scale"]], [model["x"]]) == []
    register_wald(inverse_gaussian(1.0))
    with model:
        step = InterweaveStep([model["scale"]], records=[model["x"]])
    assert "'x'" in step.describe()
