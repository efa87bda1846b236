"""Draws of each family follow its law, and are written back through PyMC's own transforms.

A law is judged by the distance of two distribution functions. By the inequality of Dvoretzky,
Kiefer and Wolfowitz, with Massart's constant, it exceeds sqrt(log(2 / alpha) / (2 n)) with
probability alpha at most, wherever it is looked at.
"""

import numpy as np
import pymc as pm
import pytest
from pymc.pytensorf import compile as pymc_compile
from scipy import stats

from pymc_dapper.conjugacy import gaussian
from pymc_dapper.conjugacy.conditional import read_conditionals
from pymc_dapper.conjugacy.families import BELOW_ONE, BETA, DIRICHLET, GAMMA, INVERSE_GAMMA, TINY

N = 20_000
FALSE_ALARM = 1e-6
LARGEST_DISTANCE = np.sqrt(np.log(2 / FALSE_ALARM) / (2 * N))
SHAPES = [1e-3, 0.3, 1.0, 7.5, 1e6]


def distance(draws, law):
    """Largest difference of two distribution functions, at numbers that a draw can be."""
    lower, upper = law.support()
    at = np.append(law.ppf(np.linspace(0.001, 0.999, 500)), [1e-300, 1e-3, 0.5])
    at = at[(at > TINY if lower == 0 else at > -np.inf) & (at < BELOW_ONE if upper == 1 else True)]
    ours = np.searchsorted(np.sort(draws), at, side="right") / len(draws)
    return np.max(np.abs(ours - law.cdf(at)))


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
    # In terms of 1 / theta: its law is told apart where numbers are small.
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


def test_normal():
    rng = np.random.default_rng(6)
    draws = gaussian.draw_entrywise(rng, np.full(N, -2.0), np.full(N, 1e-3))
    z = (draws + 2) / 1e-3
    assert distance(z, stats.norm()) < LARGEST_DISTANCE
    assert distance(z, stats.norm(scale=1.2)) > LARGEST_DISTANCE


def test_joint_normal():
    rng = np.random.default_rng(7)
    mean, root = np.array([1.0, -2.0]), np.array([[2.0, 0.7], [0.0, 0.1]])
    cov = root @ root.T
    slopes = np.linalg.inv(root).T
    draws = np.stack([gaussian.draw_joint(rng, slopes, -mean @ slopes) for _ in range(N)])
    for direction in ([1, 0], [0, 1], [1, 1], [1, -20]):
        c = np.array(direction)
        law = stats.norm(c @ mean, np.sqrt(c @ cov @ c))
        assert distance(draws @ c, law) < LARGEST_DISTANCE
        assert distance(draws @ c, stats.norm(law.mean(), 1.2 * law.std())) > LARGEST_DISTANCE


# Written back -----------------------------------------------------------------------------------


def beta(shape):
    return pm.Beta("theta", 1, 1, shape=shape)


def uniform(shape):
    return pm.Uniform("theta", shape=shape)


def gamma(shape):
    return pm.Gamma("theta", 1, 1, shape=shape)


def inverse_gamma(shape):
    return pm.InverseGamma("theta", 1, 1, shape=shape)


def dirichlet(shape):
    return pm.Dirichlet("theta", np.ones(4), shape=(*shape, 4))


@pytest.mark.parametrize("size", [1e-2, 1.0, 1e4])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)], ids=str)
@pytest.mark.parametrize("prior", [beta, uniform, gamma, inverse_gamma, dirichlet])
def test_pymc_takes_written_values_back_to_theta(prior, shape, size):
    with pm.Model() as model:
        rv = prior(shape)
    [conditional] = read_conditionals(model, [rv])
    [value], [theta] = conditional.to_values, conditional.thetas
    back = model.rvs_to_transforms[rv].backward(value, *rv.owner.inputs)
    both = pymc_compile([theta], [value, back], mode="FAST_COMPILE")
    n_parameters = 1 if prior is dirichlet else 2
    parameters = [np.full(conditional.shapes[0], size)] * n_parameters
    rng = np.random.default_rng(8)
    for _ in range(20):
        drawn = conditional.draw(rng, *parameters)
        written, again = both(drawn)
        assert np.all(np.isfinite(written))
        np.testing.assert_allclose(again, drawn, rtol=1e-9)
