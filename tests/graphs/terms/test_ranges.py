"""Ranges of a sum in which a term of the log-density is possible."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import sparse

from pymc_dapper import RandomRounding, TulapMechanism
from pymc_dapper.graphs.terms.of_sums import Terms
from pymc_dapper.graphs.terms.ranges import PossibleRanges

MINUS_INFINITY = np.array(-np.inf)


def ranges(term, present, *fixed, whole=True, given=()):
    """The range of terms that are a function of a sum and of fixed values."""
    x, scalars = pt.dscalar(), [pt.dscalar() for _ in fixed]
    linear = {x: sparse.eye_array(len(present), format="csr")}
    values = {s: pt.constant(np.array(v, dtype=float)) for s, v in zip(scalars, fixed, strict=True)}
    terms = Terms("noise", term(x, *scalars), linear, values)
    find = PossibleRanges(pm.Model(), [], [terms], [whole])
    [found] = find(given, [np.array(present, dtype=float)])
    return found


def test_ranges_about_what_was_released_are_found_from_afar():
    released = [0.0, 300.0, 123_456.0]

    def term(x, r):
        return RandomRounding(3).logp(r, x)

    found = ranges(term, [70.0, 5.0, 123_400.0], released)
    np.testing.assert_array_equal(found.low, [0, 298, 123_454])
    np.testing.assert_array_equal(found.high, [2, 302, 123_458])


def test_ranges_may_have_no_end_or_one_that_is_no_whole_number():
    def above(x, r):
        return pt.switch(x > r, 0.0, MINUS_INFINITY)

    found = ranges(above, [0.0, 50.0], [10.5, 10.5], whole=False)
    np.testing.assert_allclose(found.low, 10.5, rtol=1e-15)
    assert np.all(np.isposinf(found.high))
    found = ranges(above, [0.0, 50.0], [10.5, 10.5])
    np.testing.assert_array_equal(found.low, [11, 11])


@pytest.mark.parametrize("whole", [True, False])
def test_narrow_noise_around_a_constant(whole):
    noise = TulapMechanism(0.5, 0.4)
    found = ranges(lambda x: noise.logp(4000.25, x), [0.0], whole=whole)

    def possible(x):
        return np.isfinite(noise.logp(4000.25, x).eval(mode="FAST_COMPILE"))

    for end, outwards in ((found.low[0], -1), (found.high[0], 1)):
        assert possible(end)
        assert not possible(end + outwards * (1 if whole else 1e-9))


def test_ends_of_whole_sums_are_whole_whatever_else_terms_depend_on():
    # Casts cut fractions off: 2.9 would be as possible as 2.
    found = ranges(lambda x, r: RandomRounding(3).logp(0, x.astype("int64")) + r, [50.0], [2.9])
    np.testing.assert_array_equal([found.low, found.high], [[0], [2]])


def test_where_none_is_found_the_range_is_not_known():
    found = ranges(lambda x, r: pt.switch(pt.eq(x, r + 0.123), 0.0, MINUS_INFINITY), [1.0], [2.0])
    assert not found.known[0]
