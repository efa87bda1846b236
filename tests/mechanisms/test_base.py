"""What all mechanisms ask of scales, statistics and releases."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper import DapperStep
from pymc_dapper.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    KNormMechanism,
    LaplaceMechanism,
    NoisyStats,
    RandomizedResponse,
    base,
)
from pymc_dapper.mechanisms.base import (
    as_pair,
    as_tensor,
    positive,
    whole_release,
)


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (np.array([1, 2], dtype="uint8"), "int64"),
        ([True, False], "int64"),
        (0.1, "float64"),
        (np.array([2**63 + 2**11], dtype="uint64"), "float64"),
        (pmd.statistics.counts([0, 1, 1], 2), "int64"),
        (pt.bvector(), "int8"),
    ],
)
def test_statistics_become_tensors_that_can_be_subtracted(given, dtype):
    tensor = as_tensor(given)
    assert tensor.dtype == dtype
    if not isinstance(given, pt.TensorVariable):
        expected = np.asarray(getattr(given, "value", given), dtype=dtype)
        np.testing.assert_array_equal(tensor.eval(mode="FAST_COMPILE"), expected)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (["a"], TypeError, "must be a tensor, or an array, of real numbers"),
        (np.array([pt.scalar()]), TypeError, "holds variables of a model"),
        (np.ma.masked_array([1.0], mask=[True]), ValueError, "entries are masked"),
    ],
)
def test_what_holds_no_numbers_is_no_statistic(given, error, message):
    with pytest.raises(error, match=message):
        as_tensor(given)


@pytest.mark.parametrize(
    ("shapes", "fit"),
    [
        (((3,), (3,)), True),
        (((3,), ()), True),
        (((2, 3), (3,)), True),
        (((1, 3), (2, 1)), True),
        (((None,), (3,)), True),
        (((3,), (4,)), False),
        (((2, 3), (3, 2)), False),
    ],
)
def test_shapes_go_together_or_not(shapes, fit):
    tensors = [pt.tensor(dtype="float64", shape=shape) for shape in shapes]
    if fit:
        assert as_pair(*tensors) == tuple(tensors)
    else:
        with pytest.raises(ValueError, match="doesn't go with a statistic"):
            as_pair(*tensors)


def test_releases_are_made_whole_as_long_as_they_fit():
    whole = whole_release(np.array([3.0, -(2.0**62)]), "Noise")
    assert (whole.tolist(), whole.dtype) == ([3, -(2**62)], np.int64)
    for far in (2.0**63, np.inf, np.nan):
        with pytest.raises(ValueError, match="Noise releases integers, which must be within"):
            whole_release(np.array([0.0, far]), "Noise")


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (0, ValueError, "scale must be positive and finite, got 0"),
        ([1, np.inf], ValueError, "must be positive and finite"),
        (pt.scalar("b"), TypeError, "must be known"),
        (pmd.PureDP(1.0), TypeError, r"got the budget .*calibrate\(budget"),
        ("one", TypeError, "scale"),
    ],
)
def test_scales_are_positive_numbers(value, error, message):
    np.testing.assert_array_equal(positive("scale", [0.5, 2]), [0.5, 2.0])
    with pytest.raises(error, match=message):
        positive("scale", value)


def test_the_same_seed_gives_the_same_release():
    mechanism = DiscreteGaussianMechanism(6.0)
    first, second, other = (mechanism.release(np.arange(50), seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
    assert first.dtype == np.int64


SECRET = 41250


@pytest.mark.parametrize(
    ("mechanism", "statistic"),
    [
        (DiscreteGaussianMechanism(1.0), [SECRET + 0.5, 1.0]),
        (DiscreteLaplaceMechanism(1.0), SECRET + 0.5),
        (DiscreteGaussianMechanism(1.0), [SECRET, np.inf]),
        (DiscreteGaussianMechanism(1.0), [SECRET, 1e300]),
        (GaussianMechanism(1e300).rounded(), [SECRET]),
        (RandomizedResponse(0.9, 3), [0, SECRET]),
        (LaplaceMechanism(np.ones(3)), [SECRET]),
        (KNormMechanism(1.0, 2), SECRET),
        (NoisyStats(1.0, 9), [SECRET]),
        (LaplaceMechanism(1.0), [SECRET, "a"]),
        (LaplaceMechanism(1.0), np.ma.masked_equal([SECRET, 1], 1)),
    ],
)
def test_messages_do_not_say_what_is_confidential(mechanism, statistic):
    with pytest.raises((TypeError, ValueError)) as error:
        mechanism.release(statistic, random_seed=1)
    assert str(SECRET) not in str(error.value)


def test_a_session_is_told_once_that_releases_are_simulated(monkeypatch):
    monkeypatch.setattr(base, "_has_warned", False)
    with pytest.warns(UserWarning, match="isn't for production"):
        LaplaceMechanism(1.0).release(0.0, random_seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LaplaceMechanism(1.0).release(0.0, random_seed=1)


def model_with(add):
    with pm.Model() as model:
        record = pm.Categorical("record", pm.Dirichlet("p", np.ones(3)), shape=30)
        add(pt.eye(3)[record].sum(axis=0))
    return model


@pytest.mark.usefixtures("uncompiled")
def test_a_potential_keeps_its_release_as_data():
    mechanism = DiscreteGaussianMechanism(3.0)
    model = model_with(lambda s: mechanism.potential("privacy", s, released=[10, 12, 8]))
    assert model["privacy"] in model.potentials
    np.testing.assert_array_equal(model["privacy_released"].get_value(), [10, 12, 8])
    step = DapperStep([model["record"]], model=model)
    assert "privacy (function of sums)" in repr(step)


@pytest.mark.usefixtures("uncompiled")
def test_releases_of_several_mechanisms_enter_one_model():
    with pm.Model() as model:
        record = pm.Categorical("record", pm.Dirichlet("p", np.ones(3)), shape=30)
        table = pt.eye(3)[record].sum(axis=0)
        DiscreteGaussianMechanism(3.0).potential("cells", table, released=[10, 12, 8])
        LaplaceMechanism(2.0).observe("first_two", table[:2].sum(), released=21.3)
    step = DapperStep([record], model=model)
    assert "cells (function of sums)" in repr(step)
    assert "first_two (function of sums)" in repr(step)


@pytest.mark.usefixtures("uncompiled")
def test_a_release_lands_in_the_constant_data():
    mechanism = DiscreteGaussianMechanism(3.0)
    model = model_with(lambda s: mechanism.potential("privacy", s, released=[10, 12, 8]))
    with model, pytest.warns(UserWarning, match="Potentials"):  # not used in prior draws
        idata = pm.sample_prior_predictive(2, random_seed=1)
    np.testing.assert_array_equal(idata["constant_data"]["privacy_released"], [10, 12, 8])


@pytest.mark.usefixtures("uncompiled")
def test_a_changed_release_is_checked_when_a_chain_starts():
    mechanism = DiscreteGaussianMechanism(3.0)
    with pm.Model() as model:
        record = pm.Categorical("record", np.ones(3) / 3, shape=30)
        released = pm.Data("release", np.array([10.0, 12.0, 8.0]))
        mechanism.potential("privacy", pt.eye(3)[record].sum(axis=0), released=released)
    assert "privacy_released" not in model.named_vars
    step = DapperStep([record], model=model)
    with model:
        pm.set_data({"release": np.array([10.5, 12.0, 8.0])})
    with pytest.raises(ValueError, match="'privacy': DiscreteGaussianMechanism releases integers"):
        step.setup_chain(np.random.default_rng(0), tune=0, draws=1)


@pytest.mark.usefixtures("uncompiled")
def test_an_observed_release_can_be_predicted():
    mechanism = GaussianMechanism(3.0).rounded().clamped(0, None)
    model = model_with(lambda s: mechanism.observe("release", s, released=[10, 12, 8]))
    with model:
        prior = pm.sample_prior_predictive(300, random_seed=1)
    drawn = prior.prior_predictive["release"].values
    assert drawn.shape == (1, 300, 3)
    assert drawn.dtype == np.int64
    assert drawn.min() == 0
    assert "release (function of sums)" in repr(DapperStep([model["record"]], model=model))


def test_a_generator_is_advanced_from_release_to_release():
    rng = np.random.default_rng(3)
    mechanism = LaplaceMechanism(1.0)
    first, second = (mechanism.release(0.0, random_seed=rng) for _ in range(2))
    assert first != second


@pytest.mark.parametrize(
    "mechanism", [DiscreteGaussianMechanism(1e4), LaplaceMechanism(1e4).rounded()]
)
def test_releases_larger_than_what_pymc_keeps_of_integers(mechanism):
    # PyMC keeps integer data in 32 bits: 3e9 would turn into -1294967296.
    released = np.array([3_000_000_000, 5])
    with pm.Model() as model:
        total = pm.Poisson("total", 3e9, shape=2)
        mechanism.potential("a", total, released=released)
        mechanism.observe("b", total, released=released)
        with pytest.raises(ValueError, match="'c': released values of up to"):
            mechanism.potential("c", total, released=6 * released * 10**6)
    np.testing.assert_array_equal(model["a_released"].get_value(), released)
    np.testing.assert_array_equal(
        model.rvs_to_values[model["b"]].eval(mode="FAST_COMPILE"), released
    )
    point = {"total": released + np.array([3000, 4])}
    expected = mechanism.logp(released, point["total"]).sum().eval(mode="FAST_COMPILE")
    for name in "ab":
        logp = model.compile_logp(vars=[model[name]], mode="FAST_COMPILE")(point)
        assert logp == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("released", "message"),
    [
        (
            [10.0, 12.0],
            r"'privacy': the release has shape \(2,\), where the mechanism releases shape \(3,\)",
        ),
        ([10.5, 12.0, 8.0], "releases integers"),
        ([np.nan, 12.0, 8.0], "finite numbers"),
        ([12.0, 1e300, 8.0], "within 2"),
        ([12, 2**63, 8], "within 2"),
    ],
)
@pytest.mark.parametrize("how", ["potential", "observe"])
def test_an_impossible_release_is_refused(how, released, message):
    mechanism = DiscreteLaplaceMechanism(3.0)
    with pytest.raises(ValueError, match=message):
        model_with(lambda s: getattr(mechanism, how)("privacy", s, released=released))
