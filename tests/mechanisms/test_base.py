"""What all mechanisms ask of scales, statistics and releases."""

import numpy as np
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.mechanisms.base import (
    as_tensor,
    check_broadcast,
    check_rounding,
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
def test_statistics_become_tensors_of_which_differences_can_be_taken(given, dtype):
    tensor = as_tensor(given)
    assert tensor.dtype == dtype
    if not isinstance(given, pt.TensorVariable):
        expected = np.asarray(getattr(given, "value", given), dtype=dtype)
        np.testing.assert_array_equal(tensor.eval(mode="FAST_COMPILE"), expected)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (["a"], TypeError, "must be a tensor, or an array, of real numbers"),
        (np.array([pt.scalar()]), TypeError, "an array of variables"),
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
        check_broadcast(*tensors)
    else:
        with pytest.raises(ValueError, match="doesn't go with a statistic"):
            check_broadcast(*tensors)


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


def test_rounding_is_to_whole_numbers_or_not_at_all():
    check_rounding(True)
    with pytest.raises(TypeError, match=r"rounding must be True or False.*multiples of 10"):
        check_rounding(10)
