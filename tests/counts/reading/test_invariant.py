"""What is known exactly must be integers, of the right shape."""

import pymc as pm
import pytest

from pymc_dapper.counts.reading.invariant import invariant


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1, 2, 3], r"must have shape \(2,\), as the expression has, got \(3,\)"),
        ([1.5, 2], "must be integers"),
        ([5, 2**62], r"'rows': counts above 2\*\*53"),
        ([5, 2**70], r"'rows': counts above 2\*\*53"),
    ],
)
def test_an_invariant_must_be_integers_of_the_right_shape(value, message):
    with pm.Model():
        x = pm.Poisson("x", 5, shape=(2, 3))
        with pytest.raises(ValueError, match=message):
            invariant("rows", x.sum(axis=1), value)
