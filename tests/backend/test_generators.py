"""Draws in graphs: whose they are, and in which order."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.tensor.random.basic import poisson
from pytensor.tensor.random.type import random_generator_type

from pymc_dapper.backend.accelerate.switch import is_on
from pymc_dapper.backend.generators import NOISE, Drawn, drawn_noise
from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.backend.kernel_key import kernel_key
from pymc_dapper.backend.numba_ops import numba_function
from tests.evaluated_in_python import evaluated_in_python

ORDER = [("standard_normal", (3, 2)), ("random", (4,)), ("standard_normal", (150,))]
ORDER += [("standard_exponential", ())]


def function_of(of_next=lambda rng: []):
    rng = after = random_generator_type("rng")
    outputs = []
    for kind, shape in ORDER:
        after, noise = drawn_noise(kind, shape, after)
        outputs.append(noise)
    # Asked for in another order than that in which they are drawn.
    outputs = [*reversed(outputs), *of_next(after)]
    return JitFunction([rng], outputs, model=pm.Model(), compile_kwargs={})


def of_numpy(rng):
    return [getattr(rng, kind)(shape) for kind, shape in ORDER][::-1]


@pytest.mark.parametrize("way", ["by address", "plain", "in python"])
def test_noise_is_drawn_in_the_order_of_the_graph(way, monkeypatch):
    if way == "plain":
        monkeypatch.setenv("PYMC_DAPPER_PLAIN", "1")
    if way == "in python":
        with evaluated_in_python():
            function = function_of()
    else:
        function = function_of()
    assert function._by_address == (way == "by address" and is_on("generators"))
    ours, numpys = (np.random.default_rng(1) for _ in range(2))
    for _ in range(3):
        for x, expected in zip(function(ours), of_numpy(numpys), strict=True):
            np.testing.assert_array_equal(x, expected)
    # Another generator isn't taken for the one of before.
    other, its = (np.random.default_rng(2) for _ in range(2))
    np.testing.assert_array_equal(function(other)[-1], of_numpy(its)[-1])


def test_what_others_draw_needs_the_generator_itself():
    """They may hand it to Python."""
    function = function_of(
        lambda rng: [poisson(pt.constant(4.0), rng=rng, return_next_rng=True)[1]]
    )
    assert not function._by_address
    ours, numpys = (np.random.default_rng(1) for _ in range(2))
    for _ in range(2):
        *noise, _ = function(ours)
        np.testing.assert_array_equal(noise[-1], of_numpy(numpys)[-1])
        numpys.bit_generator.state = ours.bit_generator.state


def test_each_way_to_draw_has_its_own_machine_code_on_disk():
    """Two of them draw the same numbers, by different functions."""
    kernels = NOISE.values()
    keys = {kernel_key(numba_function(Drawn(kernel))) for kernel in kernels}
    assert len(keys) == len(kernels)
