"""Clamped sums and moments: their values, and how far one record moves them."""

import math
from fractions import Fraction

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dapper.statistics import (
    clamped_moments,
    clamped_sum,
    regression,
)
from tests.statistics.records import NUMBER, NUMBERS


def test_clamped_sums_and_moments():
    clipped = np.clip(NUMBER, -1, 2)
    np.testing.assert_allclose(clamped_sum(NUMBER, -1, 2).value, clipped.sum())
    np.testing.assert_allclose(
        clamped_moments(NUMBER, -1, 2, order=3).value, [np.sum(clipped**k) for k in (1, 2, 3)]
    )
    low, high = [-1, 0], [1, 0.5]
    columns = np.clip(NUMBERS, low, high)
    np.testing.assert_allclose(clamped_sum(NUMBERS, low, high).value, columns.sum(axis=0))
    np.testing.assert_allclose(
        clamped_moments(NUMBERS, low, high).value,
        np.stack([columns.sum(axis=0), (columns**2).sum(axis=0)], axis=1),
    )
    # Integers stay what they are, so that an integer mechanism can take them.
    assert clamped_sum([1, 5, 9], 2, 6).value.dtype.kind == "i"


@pytest.mark.parametrize("order", range(1, 9))
@pytest.mark.parametrize(
    ("low", "high"), [(-1, 1), (-0.3, 1), (-5, 7), (-1e-3, 1e4), (-1e5, 1e5), (2, 3), (-3, -2)]
)
def test_sensitivity_of_moments_against_a_grid(low, high, order):
    largest = max(-low, high)
    v = np.concatenate(
        [
            np.linspace(low, high, 2001),
            np.outer([-1, 1], np.geomspace(1e-8, 1, 4001)).ravel() * largest,
        ]
    )
    powers = v[(v >= low) & (v <= high), None] ** np.arange(1, order + 1)
    s = clamped_moments([0.0], low, high, order).sensitivity
    # One of the two records is at an end of the interval: the search above, of pairs, agrees.
    ends = [np.array([float(end)]) ** np.arange(1, order + 1) for end in (low, high)]
    for claimed, norm in ((s.l1, 1), (s.l2, 2), (s.linf, np.inf)):
        on_grid = max(np.linalg.norm(powers - end, norm, axis=1).max() for end in ends)
        assert on_grid * (1 - 1e-12) <= claimed <= on_grid * (1 + 1e-4)


@pytest.mark.parametrize("records", [np.full(4, 2**62), pt.lvector("x", shape=(4,))])
def test_sums_that_need_not_fit_into_64_bits_are_refused(records):
    with pytest.raises(ValueError, match="may not fit into 64-bit integers: give them as floats"):
        clamped_sum(records, 0, 2**62)
    if isinstance(records, np.ndarray):
        assert clamped_sum(records, 0, 2.0**62).value == 2.0**64
        assert clamped_sum(records // 4, 0, 2**60).value == 2**62
    with pytest.raises(ValueError, match="within 2"):
        clamped_sum(records, 0, 2**63)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: clamped_sum([0.5], -1e308, 1e308), "sensitivity is too large for a float"),
        (lambda: clamped_sum([0.5] * 9, 0, 1e308), "a sum may not fit into a float"),
        (lambda: clamped_moments([0.5], 0, 100, order=400), "powers up to 400 may not fit"),
        (lambda: regression([0.5], [0.5], clamp=(-1e308, 1e308)), "distance isn't a float"),
    ],
)
def test_limits_that_overflow_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_high_moments_within_one():
    s = clamped_moments([0.5], -1, 1, order=400).sensitivity
    w = np.linspace(0, 1, 100_001)
    power, distance = np.ones_like(w), np.zeros_like(w)
    for _ in range(400):
        power *= -w
        distance += 1 - power
    assert 0 <= s.l1 / distance.max() - 1 < 1e-8
    assert Fraction(float(s.l2)) ** 2 >= 800 > Fraction(math.nextafter(s.l2, 0)) ** 2
