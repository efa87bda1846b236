"""Draws in compiled code are those of NumPy. They are held against the laws in `test_families`."""

import numpy as np
import pytest

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.conjugacy import gaussian
from pymc_dapper.conjugacy.kernels import families as kernels
from pymc_dapper.conjugacy.kernels.families import TINY

POSITIVE = np.array([0.3, 1.0, 2.5, 40.0, 1e-3])
ROWS = np.random.default_rng(3).normal(size=(4, 9))
SQUARE = np.vstack([np.diag([2.0, -0.5]), [0.3, 0.1]])


def filled(kernel, rng, shape, *parameters):
    out = np.empty(int(np.prod(shape)))
    in_python(kernel)(rng, shape[-1], out, *(np.ravel(x) for x in parameters))
    return out.reshape(shape)


def beta(rng, a, b):
    return np.clip(rng.beta(a, b), TINY, 1 - np.finfo(float).epsneg)


def gamma(rng, shape, rate):
    return np.maximum(rng.standard_gamma(shape) / rate, TINY)


def inverse_gamma(rng, shape, scale):
    smallest = TINY * np.maximum(scale, 1.0)
    return np.maximum(scale / np.maximum(rng.standard_gamma(shape), smallest), TINY)


def dirichlet(rng, a):
    weights = rng.standard_gamma(a)
    if weights.sum(axis=-1).min() < 1:
        logs = np.log(rng.standard_gamma(a + 1)) - rng.standard_exponential(a.shape) / a
        weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.maximum(weights / weights.sum(axis=-1, keepdims=True), TINY)


CASES = {
    "beta": (kernels.draw_beta, beta, (5,), POSITIVE, POSITIVE[::-1]),
    "gamma": (kernels.draw_gamma, gamma, (5,), POSITIVE, POSITIVE[::-1]),
    "inverse gamma": (kernels.draw_inverse_gamma, inverse_gamma, (5,), POSITIVE, POSITIVE),
    "dirichlet": (kernels.draw_dirichlet, dirichlet, (5,), POSITIVE + 1),
    "dirichlets": (kernels.draw_dirichlet, dirichlet, (2, 3), np.ones((2, 3))),
    "small dirichlets": (kernels.draw_dirichlet, dirichlet, (2, 3), np.full((2, 3), 1e-3)),
    "normals": (kernels.draw_entrywise, np.random.Generator.normal, (5,), POSITIVE, POSITIVE),
    "joint normal": (kernels.draw_joint, gaussian.draw_joint, (3,), ROWS),
    "diagonal joint normal": (kernels.draw_joint, gaussian.draw_joint, (2,), SQUARE),
}


@pytest.mark.parametrize("name", CASES)
def test_draws_are_those_of_numpy(name):
    kernel, draw, shape, *parameters = CASES[name]
    ours, numpys, others = (np.random.default_rng(seed) for seed in (1, 1, 2))
    for _ in range(20):
        expected = draw(numpys, *parameters)
        np.testing.assert_allclose(filled(kernel, ours, shape, *parameters), expected, rtol=1e-9)
        assert not np.allclose(filled(kernel, others, shape, *parameters), expected)
    assert ours.bit_generator.state == numpys.bit_generator.state


def test_a_joint_normal_without_a_spread_is_refused():
    for bad in (0.0, np.nan):
        rows = np.array([[1.0, 2.0], [bad, bad], [0.0, 1.0]])
        with np.errstate(all="ignore"), pytest.raises(np.linalg.LinAlgError, match="definite"):
            filled(kernels.draw_joint, np.random.default_rng(1), (2,), rows)
