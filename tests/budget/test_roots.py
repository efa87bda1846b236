"""Roots of functions of one number."""

from math import exp, log

import pytest

from pymc_dapper.budget.roots import root, root_below


def test_a_root_is_found_to_the_last_digits():
    assert root(lambda x: x**2 - 2, 0.0, 2.0) == pytest.approx(2**0.5, rel=1e-15)


@pytest.mark.parametrize("at", [-0.3, -50.0, -600.0])
def test_a_root_is_found_however_far_below(at):
    assert root_below(lambda x: exp(x) - exp(at), 0.0) == pytest.approx(at, rel=1e-12)


def test_a_root_may_be_where_the_search_begins():
    assert root_below(lambda x: x - log(2), log(2)) == log(2)
