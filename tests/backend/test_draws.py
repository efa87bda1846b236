"""Random numbers of kernels are NumPy's, in compiled code by address, by numba, and in Python."""

import pickle

import numpy as np
import pytest
from numba import njit

from pymc_dapper.backend import draws
from pymc_dapper.backend.accelerate import generators
from pymc_dapper.backend.accelerate.switch import is_on
from tests.long_cases import one_in_three

DRAWS = {
    "standard_gamma": (draws.standard_gamma, (2.5,)),
    "beta": (draws.beta, (0.5, 3.0)),
}
FILLS = {
    "uniform": (draws.fill_uniform, "random"),
    "normal": (draws.fill_normal, "standard_normal"),
    "exponential": (draws.fill_exponential, "standard_exponential"),
}


def assert_same(ours, numpys):
    """Draw by both; draws of 32 bits may have left half of one behind."""
    for kind in (np.random.PCG64, np.random.MT19937):
        mine, theirs = (np.random.Generator(kind(1)) for _ in range(2))
        for turn in range(3):
            for rng in (mine, theirs):
                rng.random(turn, dtype="float32")
            np.testing.assert_array_equal(ours(mine), numpys(theirs))
            assert str(mine.bit_generator.state) == str(theirs.bit_generator.state)


@pytest.mark.parametrize("name", DRAWS)
def test_a_number_is_the_one_that_numpy_draws(name):
    draw, parameters = DRAWS[name]

    @njit
    def at(address):
        return draw(address.item(), *parameters)

    @njit
    def of(rng):
        return draw(rng, *parameters)

    ways = [of, lambda rng: draw(rng, *parameters)]
    if is_on("generators"):
        ways.append(lambda rng: at(generators.address_of(rng)))
    for way in ways:
        assert_same(way, lambda rng: getattr(rng, name)(*parameters))


@pytest.mark.parametrize("name", one_in_three(FILLS))
def test_an_array_is_filled_as_numpy_does(name):
    fill, method = FILLS[name]

    def filled(how):
        def run(rng):
            out = np.empty(200)
            how(rng, out)
            return out

        return run

    @njit
    def at(address, out):
        fill(address.item(), 1, out)

    @njit
    def of(rng, out):
        fill(rng, 1, out)

    ways = [of, lambda rng, out: fill(rng, 1, out)]
    if is_on("generators"):
        ways.append(lambda rng, out: at(generators.address_of(rng), out))
    for way in ways:
        assert_same(filled(way), lambda rng: getattr(rng, method)(200))


def test_what_is_compiled_is_told_by_where_it_comes_from():
    """Numba finds these functions by types, where a kernel's key follows names."""
    for function, _ in (*DRAWS.values(), *FILLS.values()):
        [told] = function.__defaults__
        assert told.endswith(draws.LOWERED_BY)


@pytest.mark.parametrize("name", ["fill_uniform", "fill_exponential", "fill_normal"])
def test_another_process_is_handed_the_function_itself(name):
    """A copy would be unknown to numba: chains of spawned processes ended with an error."""
    function = getattr(draws, name)
    assert pickle.loads(pickle.dumps(function)) is function
