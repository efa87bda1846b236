"""Draws from standard noise, and priors that can't be drawn from."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import CategoricalRV

from pymc_dapper import DapperStep
from pymc_dapper.graphs.noise import FEW_CATEGORIES, FROM_NOISE, with_randomness
from tests.records.refusals import refuse, with_mechanism
from tests.sweep_parts import take_apart

K = FEW_CATEGORIES + 4


@pytest.mark.parametrize("leading", [(), (1,), (1, 1)])
def test_probabilities_of_all_records_are_searched_and_not_compared(leading):
    rng = np.random.default_rng(1)
    p, u = rng.dirichlet(np.ones(K)).reshape(*leading, K), rng.random((30,) * max(1, len(leading)))
    weights, noise = pt.tensor("p", shape=p.shape), pt.tensor("u", shape=u.shape)
    _, transform = FROM_NOISE[CategoricalRV]
    drawn = transform(noise, weights)
    np.testing.assert_array_equal(
        drawn.eval({weights: p, noise: u}, mode="FAST_COMPILE"),
        (u[..., None] >= p.cumsum(axis=-1)[..., :-1]).sum(axis=-1),
    )
    # Nothing is computed with an axis of records and one of categories.
    assert all(x.type.ndim <= max(u.ndim, p.ndim) for x in ancestors([drawn]))
    assert not any(x.type.shape == (*u.shape, K - 1) for x in ancestors([drawn]))


@pytest.mark.parametrize(
    "prior",
    [
        lambda: pm.Flat("x", shape=5),
        lambda: pm.CustomDist("x", logp=lambda value: -(value**2), shape=5),
    ],
)
def test_a_prior_that_cannot_be_drawn_from(prior):
    refuse(
        lambda: with_mechanism(prior()),
        "the records 'x' from their prior, but it can't be drawn from",
    )


@pytest.mark.parametrize(
    "prior",
    [
        lambda: pm.Truncated("x", pm.DiscreteWeibull.dist(0.5, 0.8), lower=1, shape=5),
        lambda: pm.AR("x", rho=[0.5], init_dist=pm.Normal.dist(0, 1), shape=(5, 4)),
    ],
)
def test_a_prior_that_is_drawn_in_a_loop(prior):
    refuse(lambda: with_mechanism(prior()), r"records 'x' is drawn in a loop \(operation Scan")


@pytest.mark.usefixtures("uncompiled")  # but what proposes
@pytest.mark.parametrize(
    "prior",
    [
        lambda: pm.Truncated("x", pm.Gamma.dist(2, 1), lower=1, upper=3, shape=5),
        # Its type is float64.
        lambda: pm.Binomial("x", n=pm.Data("trials", 3), p=0.4, shape=5),
    ],
)
def test_priors_that_were_refused_once(prior):
    with pm.Model() as model:
        x = with_mechanism(prior())
    step = DapperStep([x], model=model)
    propose = take_apart(step._reading).propose
    [drawn] = propose(np.random.default_rng(0), *step._given(model.initial_point()))
    assert np.all(np.isfinite(drawn))
    assert len(set(drawn)) > 1


VECTORS = {
    "one covariance": lambda: pm.MvNormal.dist(
        [1.0, 2.0], cov=[[1.0, 0.4], [0.4, 2.0]], shape=(5, 2)
    ),
    "a mean each": lambda: pm.MvNormal.dist(
        np.arange(10.0).reshape(5, 2), chol=[[1.0, 0], [0.4, 2]]
    ),
    "a covariance each": lambda: pm.MvNormal.dist(
        [1.0, 2.0], cov=np.arange(1, 6)[:, None, None] * np.array([[1.0, 0.4], [0.4, 2.0]])
    ),
    "one vector": lambda: pm.MvNormal.dist([1.0, 2.0], tau=np.diag([4.0, 9.0])),
}


@pytest.mark.parametrize("vectors", VECTORS.values(), ids=VECTORS)
def test_vectors_are_drawn_as_numpy_draws_them(vectors):
    drawn = vectors()
    randomness, [graph] = with_randomness([drawn])
    assert randomness.rng is None
    ours = graph.eval(
        dict(zip(randomness.inputs, randomness.draw(np.random.default_rng(3)), strict=True)),
        mode="FAST_COMPILE",
    )
    parameters = [x.eval(mode="FAST_COMPILE") for x in drawn.owner.op.dist_params(drawn.owner)]
    rng, size = np.random.default_rng(3), ours.shape[:-1]
    np.testing.assert_allclose(ours, drawn.owner.op.rng_fn(rng, *parameters, size), rtol=1e-14)


def test_vectors_by_other_factors_of_their_covariance_take_a_generator():
    drawn = pm.MvNormal.dist([1.0, 2.0], cov=np.eye(2), method="svd")
    randomness, _ = with_randomness([drawn])
    assert randomness.rng is not None
    assert not randomness.noise
