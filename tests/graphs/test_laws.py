"""Which laws are known to have a density, which are such laws clipped; whose draws follow it."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.tensor.random.basic import NormalRV
from scipy.stats import norm

from pymc_dapper.graphs.laws import (
    clipped,
    counts_truncated_between,
    draws_follow_density,
    has_density,
    log_densities_at_points,
)

NORMAL, GAMMA, POISSON = pm.Normal.dist, pm.Gamma.dist, pm.Poisson.dist


def custom(f, **kwargs):
    """A CustomDist of a function of a normal variable."""

    def dist(mu, size):
        return f(NORMAL(mu, 1, size=size))

    return pm.CustomDist.dist(0.3, dist=dist, size=3, **kwargs)


def custom_of_truncated():
    def dist(rate, size):
        return pt.log(pm.Truncated.dist(pm.Exponential.dist(rate), upper=4.0, size=size))

    return pm.CustomDist.dist(1.0, dist=dist, size=3)


def by_hand(**kwargs):
    return pm.CustomDist.dist(
        0.3, logp=lambda x, mu: -((x - mu) ** 2), random=lambda *_, **__: 0.0, size=3, **kwargs
    )


def mixture(*laws):
    return pm.Mixture.dist(np.full(len(laws), 1 / len(laws)), laws, size=3)


def walk(innovation):
    return pm.RandomWalk.dist(init_dist=NORMAL(), innovation_dist=innovation, steps=4)


def series(start):
    return pm.AR.dist([0.5], 1.0, init_dist=start, steps=4)


class Own(pm.Continuous):
    """A user's own distribution."""

    rv_op = type("OwnRV", (NormalRV,), {"__module__": "users_own"})()

    @classmethod
    def dist(cls, mu, **kwargs):
        return super().dist([mu, 1.0], **kwargs)


DENSE = {
    "Normal": NORMAL(),
    "MvNormal": pm.MvNormal.dist(np.zeros(2), np.eye(2)),
    "Dirichlet": pm.Dirichlet.dist(np.ones(3)),
    "AsymmetricLaplace": pm.AsymmetricLaplace.dist(kappa=1.0, mu=0.0, b=1.0),
    "mixture": mixture(NORMAL(), GAMMA(2, 1)),
    "one law with a mixture axis": pm.NormalMixture.dist([0.5, 0.5], [0, 1], [1, 1]),
    "mixture of mixtures": mixture(mixture(NORMAL(), NORMAL(1)), NORMAL(2)),
    "truncated": pm.Truncated.dist(GAMMA(2, 1), lower=0.5),
    "truncated by a law of its own": pm.Truncated.dist(NORMAL(), lower=0.0),
    "LogitNormal": pm.LogitNormal.dist(0, 1),
    "custom": custom(lambda z: pt.exp(2 * z + 1)),
    "custom of another law": custom(lambda z: z.T),
    "custom of a truncated law": custom_of_truncated(),
    "random walk": walk(NORMAL()),
    "autoregression": series(pm.Normal.dist(size=1)),
}
CLIPPED = {
    "censored": (pm.Censored.dist(NORMAL(), lower=-1, upper=2), -1, 2),
    "censored above": (pm.Censored.dist(GAMMA(2, 1), lower=None, upper=2), None, 2),
    "censored below": (pm.Censored.dist(NORMAL(), lower=-1, upper=np.inf), -1, None),
    "clip": (custom(lambda z: pt.clip(z, -1, 2)), -1, 2),
    "maximum": (custom(lambda z: pt.maximum(0.5, pt.exp(z))), 0.5, None),
    "minimum": (custom(lambda z: pt.minimum(z, 2)), None, 2),
}
NEITHER = {
    "counts": POISSON(3),
    "a point": pm.DiracDelta.dist(0.5),
    "hurdle": pm.HurdleGamma.dist(0.5, 2, 1),
    "a point and a density": mixture(pm.DiracDelta.dist(0.0), NORMAL()),
    "a point and counts": pm.ZeroInflatedPoisson.dist(0.5, 3),
    "clipped in a mixture": mixture(pm.Censored.dist(NORMAL(), lower=0, upper=None), NORMAL()),
    "rounded": custom(pt.round),
    "clipped and turned": custom(lambda z: -pt.clip(z, -1, 2)),
    "clipped twice": custom(lambda z: pt.clip(pt.clip(z, -1, 2), 0, 1)),
    "clipped by a random number": custom(lambda z: pt.clip(z, NORMAL(), 2)),
    "a switch": custom(lambda z: pt.switch(z > 0, z, 0.0)),
    "counts as floats": pm.CustomDist.dist(
        3.0, dist=lambda mu, size: pt.cast(POISSON(mu, size=size), "float64"), size=3
    ),
    "two numbers": custom(lambda z: z + NORMAL()),
    "single precision": custom(lambda z: pt.cast(pt.exp(z), "float32")),
    "counts truncated": pm.Truncated.dist(POISSON(3), lower=1),
    "counts censored": pm.Censored.dist(POISSON(3), lower=None, upper=4),
    "a density by hand": by_hand(),
    "draws made by a graph, a density by hand": custom(lambda z: z, logp=lambda x, mu: -(x**2)),
    "a walk in whole steps": walk(POISSON(3)),
    "a series from a point": series(pm.DiracDelta.dist(0.0, size=1)),
}


def test_laws_with_a_density():
    assert {name for name, rv in {**DENSE, **NEITHER}.items() if has_density(rv.owner)} == {*DENSE}
    assert not has_density(pt.vector().owner)


def test_clipped_laws():
    for rv, lower, upper in CLIPPED.values():
        found = clipped(rv.owner)
        ends = [
            None if x is None else float(x.eval(mode="FAST_COMPILE").ravel()[0]) for x in found[1:]
        ]
        assert ends == [lower, upper]
        assert not has_density(rv.owner)
    assert [name for name, rv in {**DENSE, **NEITHER}.items() if clipped(rv.owner)] == []


@pytest.mark.parametrize("name", [*DENSE, *CLIPPED])
def test_numbers_come_twice_where_there_is_no_density(name):
    rv = DENSE[name] if name in DENSE else CLIPPED[name][0]
    draws = pm.draw(rv, draws=50, random_seed=1, mode="FAST_COMPILE").ravel()
    assert (len(np.unique(draws)) == len(draws)) == (name in DENSE)


UNKNOWN = {
    "a point and a density",
    "clipped in a mixture",
    "rounded",
    "clipped and turned",
    "clipped twice",
    "clipped by a random number",
    "a switch",
    "counts as floats",
    "two numbers",
    "single precision",
    "a density by hand",
    "draws made by a graph, a density by hand",
}


def test_whose_draws_are_known_to_follow_their_density():
    laws = {**DENSE, **NEITHER, **{name: rv for name, (rv, *_) in CLIPPED.items()}}
    assert {name for name, rv in laws.items() if not draws_follow_density(rv.owner)} == UNKNOWN
    assert has_density(Own.dist(0.0).owner)
    assert not draws_follow_density(Own.dist(0.0).owner)
    assert not draws_follow_density(mixture(Own.dist(0.0), NORMAL()).owner)


def test_counts_truncated_between_whole_numbers():
    for lower, between in [(1, False), (0.5, True), (-np.inf, False), (pt.scalar(), False)]:
        assert counts_truncated_between(pm.Truncated.dist(POISSON(3), lower).owner) is between
    assert not draws_follow_density(pm.Truncated.dist(POISSON(3), pt.scalar()).owner)
    assert not counts_truncated_between(pm.Truncated.dist(GAMMA(2, 1), lower=0.5).owner)
    assert not counts_truncated_between(NORMAL().owner)


def test_densities_at_point_masses():
    point = pm.DiracDelta.dist(0.0)
    censored = pm.Censored.dist(NORMAL(), lower=-1, upper=2)
    for laws, expected in [
        ((point, NORMAL()), [norm.logpdf(0)]),
        ((point, NORMAL(), GAMMA(2, 1)), [norm.logpdf(0), -np.inf]),
        ((censored, NORMAL()), [-np.inf, -np.inf, norm.logpdf(-1), norm.logpdf(2)]),
        ((censored, censored), 8 * [-np.inf]),
        ((censored, point), [-np.inf, -np.inf, norm.logpdf(0)]),
        (
            (pm.Censored.dist(NORMAL(), 1, None), censored),
            [-np.inf, -np.inf, norm.logpdf(2), norm.logpdf(1), -np.inf, -np.inf],
        ),
    ]:
        found = [
            np.ravel(x.eval(mode="FAST_COMPILE"))[0]
            for x in log_densities_at_points(mixture(*laws).owner)
        ]
        np.testing.assert_allclose(found, expected)
    for others in (NORMAL(), mixture(NORMAL(), NORMAL(1)), mixture(point, by_hand())):
        assert log_densities_at_points(others.owner) is None
