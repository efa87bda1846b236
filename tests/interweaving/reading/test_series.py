"""Random walks and autoregressions keep the noise of their start and of each step."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.interweaving.reading.maps import NoRecordMapError, parameters_of, record_map
from pymc_dapper.interweaving.reading.series import MOST_STEPS
from tests import interweave_twins as twins
from tests.interweaving.linked import changes, read
from tests.interweaving.moving import move

START = pm.Normal.dist(0.5, 2)


def walk(mu, sigma, **shape):
    return pm.GaussianRandomWalk.dist(mu, sigma, init_dist=START, **shape)


def of_t_steps(sigma, **shape):
    steps = pm.StudentT.dist(4, mu=0, sigma=sigma)
    return pm.RandomWalk.dist(init_dist=START, innovation_dist=steps, **shape)


def of_vectors(sigma, **shape):
    start = pm.MvNormal.dist(np.zeros(2), np.eye(2))
    chol = sigma * np.array([[1, 0], [0.5, 2]])
    return pm.MvGaussianRandomWalk.dist(np.zeros(2), chol=chol, init_dist=start, **shape)


WALKS = {
    "one": (walk, (0.1, 0.3), (0.3, 1.2), (6,)),
    "two": (walk, (np.zeros(2), [0.3, 0.4]), (np.ones(2), [1.2, 0.1]), (2, 6)),
    "of t steps": (of_t_steps, (0.3,), (1.2,), (6,)),
    "of vectors": (of_vectors, (0.3,), (1.2,), (6, 2)),
}


@pytest.mark.parametrize("case", WALKS)
def test_steps_of_a_walk_are_as_many_scales_long_as_before(case):
    dist, before, after, shape = WALKS[case]
    x = np.random.default_rng(1).normal(size=shape)
    moved, back = move(dist, before, after, x, shape=shape)
    np.testing.assert_allclose(back, x)
    axis = 0 if case == "of vectors" else -1
    np.testing.assert_allclose(moved.take(0, axis), x.take(0, axis))
    *mu, sigma = (np.expand_dims(np.asarray(y), -1) for y in before)
    *new_mu, new_sigma = (np.expand_dims(np.asarray(y), -1) for y in after)
    z = (np.diff(x, axis=axis) - sum(mu)) / sigma
    np.testing.assert_allclose(np.diff(moved, axis=axis), sum(new_mu) + new_sigma * z)


def series(rho, sigma, **shape):
    start = pm.Normal.dist(0.5, sigma)
    return pm.AR.dist(rho, sigma, init_dist=start, constant=True, **shape)


@pytest.mark.parametrize("shape", [(7,), (3, 7)])
def test_innovations_of_an_autoregression_are_as_many_scales_long_as_before(shape):
    before, after = ([0.1, 0.5, -0.3], 0.3), ([0.6, 0.2, 0.7], 1.2)
    x = np.random.default_rng(1).normal(size=shape)
    moved, back = move(series, before, after, x, shape=shape)
    np.testing.assert_allclose(back, x)

    def noise(x, rho, sigma):
        of_start = (x[..., :2] - 0.5) / sigma
        mean = rho[0] + rho[1] * x[..., 1:-1] + rho[2] * x[..., :-2]
        return np.concatenate([of_start, (x[..., 2:] - mean) / sigma], axis=-1)

    np.testing.assert_allclose(noise(moved, *after), noise(x, *before))


def of_walk():
    with pm.Model() as model:
        mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
        x = pm.GaussianRandomWalk("x", mu, tau, init_dist=pm.Normal.dist(0, 1), shape=4)
        pm.Normal("release", x.sum(), 1, observed=0.3)
    return model, ["mu", "tau"]


def of_autoregressions():
    with pm.Model() as model:
        rho, tau = pm.Uniform("rho", -1, 1), pm.HalfNormal("tau")
        start = pm.Normal.dist(0, tau / pt.sqrt(1 - rho**2))
        x = pm.AR("x", rho[None], tau, init_dist=start, shape=(2, 4))
        pm.Normal("release", x.sum(), 1, observed=0.3)
    return model, ["rho", "tau"]


@pytest.mark.parametrize("build", [of_walk, of_autoregressions])
def test_the_change_of_the_log_density_is_that_of_the_model_with_the_jacobian_of_the_map(build):
    model, parameters = build()
    reading = read(model, parameters, ["x"])
    fault = twins.with_jacobian_of_the_records("tau")
    for of, agrees in [(reading, True), (fault(reading), False)]:
        change, of_model = changes(model, of, np.random.default_rng(3))
        assert (change == pytest.approx(of_model, abs=1e-6)) == agrees


COUNT = pm.Poisson.dist(2)
CLIPPED = pm.Censored.dist(pm.Normal.dist(), lower=0, upper=None)


@pytest.mark.parametrize(
    ("rv", "reason"),
    [
        (lambda: pm.RandomWalk.dist(init_dist=CLIPPED, innovation_dist=START, steps=3), "masses"),
        (lambda: pm.RandomWalk.dist(init_dist=START, innovation_dist=CLIPPED, steps=3), "masses"),
        (lambda: pm.AR.dist([0.5], 1, init_dist=CLIPPED, steps=3), "masses"),
        (lambda: pm.RandomWalk.dist(init_dist=COUNT, innovation_dist=START, steps=3), "masses"),
        (lambda: pm.AR.dist([0.5], 1, init_dist=START, steps=MOST_STEPS + 1), "known to have"),
    ],
)
def test_other_series_have_no_map(rv, reason):
    node = rv().owner
    with pytest.raises(NoRecordMapError, match=reason):
        record_map(node.op, node, [True] * len(parameters_of(node)))
