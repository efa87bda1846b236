"""Moves aren't made from where records don't come back from their noise."""

import numpy as np
import pymc as pm
import pytensor
import pytest

from pymc_dapper.interweaving.compiled.moves import _come_back, _unravel
from tests.interweaving.linked import read


@pytest.mark.parametrize(("x", "comes_back"), [(2.0, True), (1e4, False)])
def test_records_come_back_unless_they_lie_too_far_out(x, comes_back):
    """By quantiles, of which digits are lost far out in a tail."""
    with pm.Model() as model:
        shape = pm.Gamma("shape", 2, 2)
        pm.Gamma("x", shape, 1.0, shape=2, default_transform=None)
        pm.Potential("release", -model["x"].sum())
    reading = read(model, ["shape"], ["x"])
    f = pytensor.function(
        [*reading.parameters, *reading.records], _come_back(reading), mode="FAST_COMPILE"
    )
    assert f(0.3, np.array([1.0, x])) == comes_back


def test_a_flat_vector_is_taken_apart():
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=(2, 2))
        sigma = pm.HalfNormal("sigma")
        x = pm.Normal("x", mu[0, 1], sigma, shape=3)
        pm.Potential("release", -x.sum())
    reading = read(model, ["mu", "sigma"], ["x"])
    pieces = _unravel(pytensor.tensor.constant(np.arange(5.0)), reading)
    found = [piece.eval(mode="FAST_COMPILE").tolist() for piece in pieces]
    assert found == [[[0, 1], [2, 3]], 4]
