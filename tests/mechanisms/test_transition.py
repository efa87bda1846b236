"""Laws of users' own, as a matrix or a function."""

import numpy as np
import pytest

from pymc_dapper.mechanisms import TransitionMechanism


def test_a_matrix_and_a_function_say_the_same():
    def law(n):
        return {n - n % 2: 0.75, n + n % 2: 0.25} if n % 2 else {n: 1.0}

    by_function = TransitionMechanism.from_function(law, largest=9)
    by_differences = TransitionMechanism(
        [[0, 1, 0], [0.75, 0, 0.25]], differences=[-1, 0, 1], repeats=2
    )
    values, counts = np.arange(12), np.arange(10)[:, None]
    first, second = (
        each.logp(values, counts).eval(mode="FAST_COMPILE")
        for each in (by_function, by_differences)
    )
    np.testing.assert_array_equal(first, second)
    assert np.exp(first[3, 2]) == 0.75
    beyond = by_function.logp(10, 10).eval(mode="FAST_COMPILE")
    assert beyond == -np.inf


def test_arguments_of_a_function_are_checked():
    with pytest.raises(TypeError, match="law"):
        TransitionMechanism.from_function({0: 1.0}, largest=2)
    with pytest.raises(ValueError, match=r"add up to 0\.5"):
        TransitionMechanism.from_function(lambda n: {n: 0.5}, largest=2)
