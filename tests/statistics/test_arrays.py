"""What can be no records is refused, with the argument that is wrong."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.tensor.random.type import random_generator_type

from pymc_dapper.statistics import (
    clamped_moments,
    clamped_sum,
    counts,
    cross_counts,
    histogram,
    regression,
    regression_labels,
)
from tests.statistics.records import CATEGORIES, CATEGORY, NUMBER, NUMBERS


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: counts(NUMBER, 4), "record must hold categories.*float64.*use histogram"),
        (lambda: counts(pt.vector(), 4), "record must hold categories"),
        (lambda: counts(["a", "b"], 4), "record must hold numbers"),
        (
            lambda: counts([0, 1, 4], 4),
            r"categories 0, ..., 3: 1 of 3 is wrong, at index 2",
        ),
        (lambda: counts([0, -1], 4), "1 of 2 is wrong, at index 1"),
        (lambda: counts(3, 4), "record must have one axis.* or two.*it has 0"),
        (lambda: counts(pt.ltensor3(), 4), "it has 3"),
        (lambda: counts(pt.lmatrix(), 4), "number of columns of record isn't known"),
        (lambda: counts(random_generator_type(), 4), "not a tensor"),
        (lambda: counts(CATEGORY, 1), "k must be a whole number of at least 2, got 1"),
        (lambda: counts(CATEGORY, 4.0), r"k must be a whole number of at least 2, got 4\.0"),
        (lambda: counts(CATEGORY, 4, neighbours="swap"), "neighbours must be .*got 'swap'"),
        (lambda: cross_counts(CATEGORY, CATEGORIES, 4, 3), "b must have one axis, over records:"),
        (lambda: cross_counts([0, 1], [0, 1, 1], 2, 2), "a has 2 records, but b has 3"),
        (lambda: histogram([np.nan, 1.0], [0, 1]), "x must have no nan in it: 1 of 2 is wrong"),
        (lambda: histogram(NUMBER, [0, 1, 1]), "edges must increase, each above"),
        (lambda: histogram(NUMBER, [0]), "edges must be 2 numbers or more"),
        (lambda: histogram(NUMBER, [0, np.nan]), "edges must increase"),
        (lambda: histogram(NUMBER, [0, 1], outside="clip"), "outside must be .* got 'clip'"),
        (lambda: histogram(NUMBER, [0, 1], outside="end_bins"), "counts every record"),
        (lambda: clamped_sum(NUMBER, 1, 1), "lower must be less than upper, got 1 and 1"),
        (lambda: clamped_sum(NUMBER, -np.inf, 1), "lower must be finite, got -inf"),
        (lambda: clamped_sum(NUMBER, 0, None), "upper must be finite, got None"),
        (lambda: clamped_sum(NUMBER, 0, [1, 2]), r"upper must be one number: its shape is \(2,\)"),
        (
            lambda: clamped_sum(NUMBERS, [0, 0, 0], 1),
            "lower must be one number or one per column, 2",
        ),
        (lambda: clamped_sum(NUMBER, 0, 1, neighbours=0), "neighbours must be"),
        (
            lambda: clamped_moments(NUMBER, 0, 1, 0),
            "order must be a whole number of at least 1, got 0",
        ),
        (lambda: clamped_moments(NUMBER, 0, 1, neighbours=2), "neighbours must be"),
        (lambda: regression(NUMBERS, NUMBERS, clamp=(0, 1)), "y must have one axis"),
        (lambda: regression(NUMBERS, NUMBER[1:], clamp=(0, 1)), "x has 9 records, but y has 8"),
        (lambda: regression(NUMBERS[:, :0], NUMBER, clamp=(0, 1)), "x has no columns"),
        (lambda: regression(NUMBERS, NUMBER, clamp=(1, 0)), "lower before upper"),
        (lambda: regression(NUMBERS, NUMBER, clamp=(0, np.inf)), "finite"),
        (lambda: regression(NUMBERS, NUMBER, clamp=10), "one pair .lower, upper. for all columns"),
        (lambda: regression(NUMBERS, NUMBER, clamp=[(0, 1)] * 3), "or a mapping .*'x'.*'y'"),
        (lambda: regression(NUMBERS, NUMBER, clamp={"x": (0, 1)}), "keys 'x' and 'y'"),
        (
            lambda: regression(NUMBERS, NUMBER, clamp={"x": [(0, 1)] * 3, "y": (0, 1)}),
            "for x one pair or one per column, 2;",
        ),
        (
            lambda: regression(NUMBERS, NUMBER, clamp=("a", "b")),
            "clamp must be a number, or an array",
        ),
        (lambda: regression(NUMBERS, NUMBER, clamp=(0, 1), neighbours=""), "neighbours must be"),
        (lambda: regression_labels(0), "p must be a whole number of at least 1, got 0"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
