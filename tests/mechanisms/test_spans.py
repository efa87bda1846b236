"""Spans of values: conditions and ends, for arrays and for numbers."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dapper.mechanisms.spans import End, Span, both, either, no, one_of


@pytest.mark.parametrize("a", [True, False])
@pytest.mark.parametrize("b", [True, False])
def test_conditions_of_all_entries_agree_with_those_of_each(a, b):
    for x in (a, np.array([a])):
        for y in (b, np.array([b])):
            assert np.all(both(x, y) == (a and b))
            assert np.all(one_of(x, y) == (a or b))
        assert np.all(no(x) == (not a))
        assert either(x, 1.5, 2.5) == (1.5 if a else 2.5)
    assert isinstance(both(False, np.array([a])), bool)


def test_symbolic_choices_keep_double_precision():
    chosen = either(pt.constant(np.array([True, False])), 0.1, pt.dvector("x"))
    assert chosen.dtype == "float64"


def test_ends_know_whether_they_are_part_of_a_span():
    closed, open_ = End(np.array([3.0]), 0.5), End(np.array([3.0]), 0.5, False)
    assert closed.value == 3.5
    assert closed.at_most(3.5, 0.0)
    assert not open_.at_most(3.5, 0.0)
    assert closed.at_least(3.5, 0.0)
    assert not open_.at_least(3.5, 0.0)
    assert open_.at_least(3.4, 0.0)
    replaced = open_.or_else(np.array([True]), End(1.0))
    assert (replaced.value, replaced.closed) == (1.0, True)
    assert closed.over(2.0).value == 1.75


def test_a_width_is_known_where_all_entries_have_the_same():
    at = np.array([0.0, 5.0])
    assert Span(End(at, -2.5), End(at, 2.5)).width == 5
    assert Span(End(at), End(at + 1)).width is None
