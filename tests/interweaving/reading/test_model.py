"""Models read with the records' noise in their place."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.traversal import ancestors

import pymc_dapper as pmd
from pymc_dapper import ReadingError
from pymc_dapper.interweaving.reading.model import can_interweave
from pymc_dapper.interweaving.reading.self_check import check_noise
from tests.interweaving.linked import LINKED, changes, linked_model, read
from tests.sizes.unknown_numbers import MODELS


def test_all_but_the_priors_of_the_moved_records_decides():
    """The prior of y does, too: y has an outcome, and moves by its law given this."""
    reading = read(linked_model(), *LINKED)
    assert set(reading.factors) == {
        *("theta", "upper", "slope", "apart", "child", "outcome", "public", "z", "release"),
        *("other", "y"),
    }


def test_the_change_of_the_log_density_is_that_of_the_model_with_the_jacobian_of_the_map():
    model = linked_model()
    reading, rng = read(model, *LINKED), np.random.default_rng(3)
    for _ in range(3):
        change, of_model = changes(model, reading, rng)
        assert change == pytest.approx(of_model, abs=1e-7)


def test_a_record_that_depends_on_a_moved_one_follows():
    with pm.Model() as model:
        theta = pm.Normal("theta")
        x = pm.Normal("x", theta, 1, shape=4)
        y = pm.Normal("y", x, 1, shape=4)
        pm.Normal("release", y.sum(), 1, observed=0.3)
    reading = read(model, ["theta"], ["y", "x"])
    assert [r.name for r in reading.records] == ["x", "y"]
    assert reading.factors == ("theta", "release")
    # Not among the records: it stays, and its prior decides.
    reading = read(model, ["theta"], ["x"])
    assert [r.name for r in reading.records] == ["x"]
    assert set(reading.factors) == {"theta", "y"}


def test_records_that_no_parameter_moves_stay():
    with pm.Model() as model:
        theta = pm.Normal("theta")
        x = pm.Normal("x", 0, 1, shape=4)
        y = pm.Normal("y", theta * x, 1, shape=4)
        pm.Normal("release", y.sum() + x.sum(), 1, observed=0.3)
    reading = read(model, ["theta"], ["x", "y"])
    assert [r.name for r in reading.records] == ["y"]
    assert [g.name for g in reading.given] == ["x"]


def test_records_of_dims_follow_by_quantiles():
    """PyMC's quantiles take the shape of a variable from the lengths of its dims: shared data."""
    with pm.Model(coords={"area": range(3)}) as model:
        shape = pm.Gamma("shape", 2, 1)
        x = pm.Gamma("x", shape, 1, dims="area")
        pm.Potential("release", -(x.sum() ** 2))
    reading = read(model, ["shape"], ["x"])
    graphs = [*reading.noise, *reading.moved_records, reading.log_density]
    assert not [x for x in ancestors(graphs) if isinstance(x, SharedVariable)]


def test_parameters_that_move_no_record_are_left_alone():
    with pm.Model() as model:
        tau = pm.HalfNormal("tau")
        theta = pm.Normal("theta", 0, tau)
        x = pm.Normal("x", theta, 1, shape=4)
        pm.Normal("release", x.sum(), 1, observed=0.3)
        k = pm.Poisson("k", 3)
    reading = read(model, ["tau", "theta"], ["x"])
    assert reading.names(reading.parameters) == ["theta"]
    assert can_interweave(model, [tau, theta, k], [x]) == [theta]
    with pytest.raises(ReadingError, match=r"nothing to do: 'tau' doesn't enter the prior"):
        read(model, ["tau"], ["x"])
    with pytest.raises(ReadingError, match="'k' is discrete"):
        read(model, ["k"], ["x"])
    with pytest.raises(ReadingError, match="'x' was passed both"):
        read(model, ["theta", "x"], ["x"])


def test_numbers_of_records_move_with_their_parameters():
    model = MODELS["groups"]()
    reading = read(model, ["mu", "n", "m"], ["x", "z"])
    assert [x.name for x in reading.numbers] == ["n"]  # of those of 'm' no parameter moves any
    assert reading.names(reading.parameters) == ["mu"]
    assert reading.factors == ("n", "mu", "both", "number")
    check_noise(reading, model.initial_point() | {"n": np.array(3)})
    [n] = reading.proposed_numbers
    wrong = replace(reading, log_density=reading.log_density + 0.1 * n)
    with pytest.raises(ReadingError, match="can't read the model exactly"):
        check_noise(wrong, model.initial_point() | {"n": np.array(3)})


def test_numbers_do_not_move_without_parameters_and_records():
    model = MODELS["groups"]()
    with pytest.raises(ReadingError, match=r"'n', a number of records, .*as in records=\[x\]"):
        read(model, ["mu", "n"], [])
    with pytest.raises(ReadingError, match=r"'n', a number of records, .*pass parameters"):
        read(model, ["n"], ["x"])


def test_numbers_that_there_is_no_room_for_are_not_looked_up():
    """Compiled code would read other memory beyond a table's end."""
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 0, 2)
        mu = pm.Normal("mu")
        x = pm.Normal("x", mu, 1, shape=2)
        pm.Potential("known", pt.as_tensor([-1.0, -2.0, -3.0])[n])
        pm.Potential("total", -pt.switch(pmd.present(n, 2), pt.abs(x), 0).sum())
    reading = read(model, ["mu", "n"], ["x"])
    inputs = [*reading.parameters, *reading.records, *reading.proposed, *reading.proposed_numbers]
    f = pytensor.function(inputs, reading.log_density, mode="FAST_COMPILE")
    at = [f(0.3, [1.0, 2.0], 0.3, n) for n in (0, 1, 2, 3, 2**31 - 1)]
    np.testing.assert_allclose(np.diff(at[:3]), [-2.0, -3.0])
    assert at[3:] == [-np.inf, -np.inf]


def test_parameters_that_are_not_checked_move_their_records_as_those_that_are():
    readings = []
    for check_bounds in (True, False):
        with pm.Model(check_bounds=check_bounds) as model:
            mu = pm.Normal("mu")
            x = pm.Normal("x", mu, 1, shape=2)
            pm.Potential("total", -pt.abs(x.sum()))
        readings.append(read(model, ["mu"], ["x"]))
    at = [0.3, [1.0, 2.0], -0.4]
    checked, unchecked = (
        pytensor.function(
            [*x.parameters, *x.records, *x.proposed], x.log_density, mode="FAST_COMPILE"
        )(*at)
        for x in readings
    )
    assert unchecked == checked


def test_each_parameter_is_judged_by_the_records_it_moves():
    with pm.Model() as model:
        a, kappa = pm.Normal("a"), pm.HalfNormal("kappa")
        x = pm.Normal("x", a, 1, shape=4)
        angle = pm.VonMises("angle", 0, kappa, shape=4)
        pm.Normal("release", x.sum() + angle.sum(), 1, observed=0.3)
    assert can_interweave(model, [a, kappa], [x, angle]) == [a]


def test_an_infinite_record_is_impossible_even_if_it_is_clipped():
    with pm.Model() as model:
        theta = pm.Normal("theta")
        x = pm.LogNormal("x", theta, 1, shape=4, default_transform=None)
        pm.Normal("release", pt.clip(x, 0, 1).sum(), 1, observed=3.0)
    reading = read(model, ["theta"], ["x"])
    f = pytensor.function(
        [*reading.parameters, *reading.records, *reading.proposed],
        reading.log_density,
        mode="FAST_COMPILE",
    )
    with np.errstate(over="ignore"):
        assert f(0.0, np.ones(4), 800.0) == -np.inf
    assert np.isfinite(f(0.0, np.ones(4), 5.0))
