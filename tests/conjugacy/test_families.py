"""Draws of each family follow its law."""

import numpy as np
import pytest
from scipy import stats

from pymc_dapper.conjugacy.families import BETA, DIRICHLET, GAMMA, INVERSE_GAMMA
from pymc_dapper.conjugacy.kernels.families import BELOW_ONE, TINY
from tests.conjugacy.laws import LARGEST_DISTANCE, N, distance

SHAPES = [1e-3, 0.3, 1.0, 7.5, 1e6]


def assert_law(draws, law, another):
    assert np.all((draws >= TINY) & (draws < np.inf))
    assert distance(draws, law) < LARGEST_DISTANCE
    assert distance(draws, another) > LARGEST_DISTANCE


@pytest.mark.parametrize("a", SHAPES)
@pytest.mark.parametrize("b", SHAPES)
def test_beta(a, b):
    draws = BETA.draw(np.random.default_rng(1), np.full(N, a), np.full(N, b))
    assert np.all(draws < 1)
    another = stats.beta(2 * a, b) if a <= b else stats.beta(a, 2 * b)
    assert_law(draws, stats.beta(a, b), another)


@pytest.mark.parametrize("shape", SHAPES)
def test_gamma(shape):
    draws = GAMMA.draw(np.random.default_rng(2), np.full(N, shape), np.full(N, 3.0))
    assert_law(draws, stats.gamma(shape, scale=1 / 3), stats.gamma(1.2 * shape, scale=1 / 3))


@pytest.mark.parametrize("shape", SHAPES)
def test_inverse_gamma(shape):
    draws = INVERSE_GAMMA.draw(np.random.default_rng(3), np.full(N, shape), np.full(N, 3.0))
    # In terms of 1 / theta, whose law differs visibly at small values.
    law, another = (stats.gamma(x, scale=1 / 3) for x in (shape, 1.2 * shape))
    assert_law(1 / draws, law, another)


@pytest.mark.parametrize(
    "a",
    [[1.0, 1.0, 1.0], [0.3, 2.0, 5.0], [1e-3, 1e-3, 1e-3], [1e-3, 0.1, 40.0], [1e5, 2e5, 3e6]],
    ids=str,
)
@pytest.mark.parametrize("one_by_one", [False, True])
def test_dirichlet(a, one_by_one):
    a = np.array(a)
    rng = np.random.default_rng(4)
    if one_by_one:
        draws = np.stack([DIRICHLET.draw(rng, a) for _ in range(N)])
    else:
        draws = DIRICHLET.draw(rng, np.tile(a, (N, 1)))
    np.testing.assert_allclose(draws.sum(axis=1), 1, rtol=1e-12)
    for k in range(3):
        rest = a.sum() - a[k]
        p = np.minimum(draws[:, k], BELOW_ONE)
        assert_law(p, stats.beta(a[k], rest), stats.beta(1.2 * a[k], rest))


def test_shares_of_a_dirichlet_are_independent_of_the_rest():
    a = np.array([0.8, 2.0, 3.0])
    p = DIRICHLET.draw(np.random.default_rng(5), np.tile(a, (N, 1)))
    first = stats.beta(a[0], a[1]).cdf(p[:, 0] / (p[:, 0] + p[:, 1]))
    rest = stats.beta(a[2], a[:2].sum()).cdf(p[:, 2])
    # The fractional part of a sum of independent uniforms is uniform.
    assert distance((first + rest) % 1, stats.uniform()) < LARGEST_DISTANCE
    assert distance((first + (1 - first) / 2) % 1, stats.uniform()) > LARGEST_DISTANCE
