"""What is linear in counts, and with which coefficients."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dapper.graphs.rebuild import inline_symbolic_ops
from pymc_dapper.graphs.terms.roles import Linear
from pymc_dapper.graphs.terms.walk import CountWalk

SHAPE = (2, 3)
WEIGHTS = np.arange(6.0).reshape(3, 2)
PLACES = np.array([1, 0, 1])

LINEAR = {
    "sum": lambda x: x.sum(),
    "margins": lambda x: pt.concatenate([x.sum(axis=0), x.sum(axis=1)]),
    "difference": lambda x: 3 - x[0] + 2 * x[1] / 4,
    "product": lambda x: x @ WEIGHTS,
    "product from the left": lambda x: WEIGHTS @ x,
    "product with a vector": lambda x: pt.dot(x, WEIGHTS[:, 1]),
    "einsum": lambda x: pt.einsum("ij,jk->ik", x, WEIGHTS),
    "reshaped": lambda x: x.T.reshape((6,))[::2],
    "looked up": lambda x: x[:, PLACES].flatten(),
    "stacked": lambda x: pt.stack([x[0, 1], x[1, 2], pt.constant(4)]),
    "cumulative": lambda x: pt.cumsum(x, axis=1),
    "added up by group": lambda x: pt.zeros((2, 2))[:, PLACES].inc(x),
    "set": lambda x: pt.zeros((3, 3))[1:, :].set(x),
    "broadcast": lambda x: x[:, None, :] + np.ones((2, 4, 3)),
    "mean": lambda x: x.mean(axis=1),
}


@pytest.mark.parametrize("name", LINEAR)
def test_what_is_linear_is_read_with_its_coefficients(name):
    x = pt.tensor("x", dtype="int64", shape=SHAPE)
    [statistic] = inline_symbolic_ops([LINEAR[name](x)])
    role = CountWalk([x], {}).follow(statistic)
    assert isinstance(role, Linear)
    for seed in range(3):
        counts = np.random.default_rng(seed).integers(0, 9, SHAPE)
        expected = statistic.eval({x: counts}, mode="FAST_COMPILE")
        found = (
            role.matrix @ counts.ravel()
            + role.offset.eval({x: counts}, on_unused_input="ignore", mode="FAST_COMPILE").ravel()
        )
        np.testing.assert_allclose(found.reshape(role.shape), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["square", "product of two", "maximum", "sorted"])
def test_what_is_not_linear_is_not(name):
    x = pt.tensor("x", dtype="int64", shape=SHAPE)
    statistic = {
        "square": x**2,
        "product of two": x[0] * x[1],
        "maximum": x.max(axis=0),
        "sorted": pt.sort(x),
    }[name]
    assert not isinstance(CountWalk([x], {}).follow(statistic), Linear)
