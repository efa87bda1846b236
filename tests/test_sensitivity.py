"""Sensitivities are numbers that know their norm, and are rounded up."""

import copy
import math
import pickle
from fractions import Fraction

import pytest

from pymc_dapper.statistics import (
    Sensitivity,
    clamped_sum,
    counts,
)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 2**53 + 1), (-1e16, 1.0), (0.1, 0.3), (-(2**62), 2**62), (1e-300, 1e300)]
)
def test_sensitivities_are_rounded_up(low, high):
    s = clamped_sum([1], low, high).sensitivity
    distance = Fraction(high) - Fraction(low)
    assert all(Fraction(float(claimed)) >= distance for claimed in (s.l1, s.l2, s.linf))
    assert Fraction(math.nextafter(s.l1, 0)) < distance
    two = clamped_sum([[1, 1]], low, high).sensitivity.l2
    assert Fraction(float(two)) ** 2 >= 2 * distance**2 > Fraction(math.nextafter(two, 0)) ** 2


def test_rounding_to_nearest_would_be_noticed():
    assert Fraction(float(2**53 + 1)) < 2**53 + 1
    assert Fraction(math.hypot(0.1, 0.1)) ** 2 < 2 * Fraction(0.1) ** 2


def test_a_sensitivity_is_a_number():
    s = Sensitivity(1.5, norm="l1", exact=False)
    assert s == 1.5
    assert type(2 * s) is float
    assert f"{s:.2f} {s} {s!r}" == (
        "1.50 1.5 Sensitivity(1.5 if one person changes, norm='l1', exact=False)"
    )
    for again in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s)):
        assert again == s
        assert vars(again) == vars(s)


def test_a_sensitivity_says_which_neighbours_it_is_for():
    for neighbours, said in [
        ("replace", "l1=2, l2=1.41421, linf=1 if one person changes"),
        ("add_remove", "l1=1, l2=1, linf=1 if one person joins or leaves"),
    ]:
        whole = counts([0, 1], 3, neighbours=neighbours).sensitivity
        assert repr(whole) == f"Sensitivities({said})"
    unsaid = counts([0, 1], 3).sensitivity
    assert repr(unsaid.l1) == (
        "Sensitivity(2.0 if one person changes, 1.0 if one person joins or leaves, norm='l1', "
        "exact=True)"
    )
    both = "if one person changes; l1=1, l2=1, linf=1 if one person joins or leaves)"
    assert repr(unsaid).endswith(both)


def test_unknown_neighbours_of_a_statistic_are_unknown_for_its_multiples():
    table = counts([0, 1], 3)
    for scaled in (table * 5, table / Fraction(1, 5), -(-5 * table)):
        assert scaled.sensitivity.l1 == 10
        assert scaled.sensitivity.among("add_remove").l1 == 5
    # Shares are of a number of records that is public.
    assert (table / 2).sensitivity.l1.if_joined is None
