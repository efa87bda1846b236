"""Moves aren't made from where records don't come back from their noise."""

import numpy as np
import pymc as pm
import pytensor
import pytest

import pymc_dapper as pmd
from pymc_dapper.interweaving.compiled.moves import _come_back, _unravel
from pymc_dapper.interweaving.kernels.tuning import unfitted
from tests.evaluated_in_python import evaluated_in_python
from tests.interweaving.linked import read
from tests.sizes.models import MODELS
from tests.sizes.reading.test_model import log_joint


@pytest.mark.parametrize(("x", "comes_back"), [(2.0, True), (1e4, False)])
def test_records_come_back_unless_they_lie_too_far_out(x, comes_back):
    """By quantiles, which lose digits far out in a tail."""
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


def test_a_number_of_records_moves_by_its_logarithm():
    """Its density there is that of the number times n + u, and it is the whole part again."""
    model = MODELS["normal"]()
    parameters, records = ("rate", "slope", "n"), [model["x"], model["y"]]
    with evaluated_in_python():
        step = pmd.InterweaveStep([model[x] for x in parameters], records=records, model=model)
        [kind] = step._kinds
        assert kind.dim == 2  # no record follows the rate
        names = [x.name for x in (*kind.reading.parameters, *kind.reading.numbers)]
        start = model.initial_point(random_seed=2)
        joint, rng, found, expected = log_joint(model), np.random.default_rng(0), [], []
        for n in range(8):
            point = start | {"n": np.array(n)}
            fit = unfitted(np.zeros(2))
            for u in (1e-6, 0.3, 1 - 1e-6):
                *values, path, [log_density] = kind.call(point, [np.array([u])], fit, 0, rng)
                new = dict(zip(names, values, strict=False))
                assert new["n"] == n
                assert new["n"].dtype == start["n"].dtype
                assert path[0, -1] == pytest.approx(np.log(n + u))
                found.append(log_density - np.log(n + u))
                expected.append(joint(point))
    np.testing.assert_allclose(np.diff(found), np.diff(expected), atol=1e-9)
