"""Rules by themselves: what they publish, and which values they can have published.

What they make of the likelihood is in `test_published.py`.
"""

import numpy as np
import pytest

from pymc_dapper.mechanisms.rules import (
    SUPPRESSED,
    Clamping,
    Publication,
    Ranges,
    Rounding,
    Scaling,
    Threshold,
)


@pytest.mark.parametrize(
    ("rule", "value", "published"),
    [
        (Rounding(5.0, "half even"), [2.5, 7.5, -2.5, 3.1], [0, 10, 0, 5]),
        (Rounding(5.0, "half up"), [2.5, 7.5, -2.5, 3.1], [5, 10, 0, 5]),
        (Rounding(5.0, "down"), [2.5, 7.5, -2.5, 5.0], [0, 5, -5, 5]),
        (Rounding(5.0, "toward zero"), [2.5, 7.5, -7.5, -5.0], [0, 5, -5, -5]),
        (Rounding(0.1, "half even"), [0.31, 0.29], [0.3, 0.3]),
        (Clamping(0, 5), [-1.0, 2.0, 7.0], [0, 2, 5]),
        (Clamping(None, 2**60 + 1), [2**61, 3], [2**60 + 1, 3]),
        (Scaling(100.0), [0.25], [25]),
        (Ranges(np.array([0.0, 10.0])), [-1.0, 0.0, 9.9, 10.0], [0, 1, 1, 2]),
        (Threshold(">=", 3), [2.9, 3.0], [False, True]),
        (Threshold(">", 3), [3.0, 3.1], [False, True]),
    ],
)
def test_what_a_rule_publishes(rule, value, published):
    np.testing.assert_array_equal(rule.publish(np.array(value)), published)


@pytest.mark.parametrize(
    ("start", "rules"),
    [
        (1.0, [Rounding(4.0, "half even"), Clamping(-4, 8)]),
        (1.0, [Clamping(-4, 7), Rounding(4.0, "half up")]),
        (1.0, [Clamping(-4, 6), Rounding(4.0, "half even"), Threshold(">", 0)]),
        (1.0, [Threshold(">=", 2), Rounding(4.0, "down"), Threshold(">", 0)]),
        (1.0, [Rounding(4.0, "toward zero"), Clamping(-4, 8)]),
        (None, [Clamping(-4, 6), Rounding(4.0, "half even")]),
        (None, [Rounding(4.0, "toward zero")]),
        (None, [Clamping(-6, 6), Rounding(2.5, "toward zero"), Clamping(-2.5, None)]),
        (None, [Clamping(-4, 6), Rounding(4.0, "half up")]),
        (None, [Threshold(">", 2), Clamping(3, 6), Rounding(1.0, "down")]),
        (None, [Threshold(">", 2), Rounding(4.0, "half up"), Threshold(">=", 3)]),
        (1.0, [Threshold(">", 0), Ranges(np.array([-3.0, 2, 5.5]))]),
    ],
)
def test_a_span_holds_what_is_published_as_that_value_and_nothing_else(start, rules):
    publication = Publication(start)
    for rule in rules:
        publication = publication.then(rule)
    # Ends that are ties are among the quarters.
    noisy = np.arange(-12, 13) if start else np.arange(-12, 12.25, 0.25)
    published = publication.publish(noisy, noisy)
    for y in np.unique(published):
        span = publication.span(np.array([y]))
        low, high = (np.ravel(end.value)[0] for end in (span.low, span.high))
        from_low = (
            noisy >= low if span.low.closed is True or np.all(span.low.closed) else noisy > low
        )
        to_high = noisy <= high if np.all(span.high.closed) else noisy < high
        inside = (from_low | span.below) & (to_high | span.above) & ~np.asarray(span.never)
        np.testing.assert_array_equal(inside, published == y)


def test_grids_are_followed_through_the_rules():
    publication = Publication(1.0).then(Scaling(100.0)).then(Rounding(500.0, "down"))
    assert publication.grids == [1.0, 100.0, 500.0]
    assert publication.factor == 100
    with pytest.raises(ValueError, match="must be a multiple of 500"):
        publication.then(Rounding(700.0, "down"))
    assert Publication(None).then(Clamping(0, 1)).grid is None


def test_a_suppressed_entry_stays_suppressed_whatever_follows():
    publication = Publication(None).then(Threshold(">", 5)).then(Clamping(6, None))
    np.testing.assert_array_equal(
        publication.publish(np.array([4.0, 5.5]), np.zeros(2)), [SUPPRESSED, 6]
    )
    publication.check("s", np.array([SUPPRESSED, 6.0]))
    with pytest.raises(ValueError, match="all 2 entries are suppressed"):
        publication.check("s", np.array([SUPPRESSED, SUPPRESSED]))
    assert Publication(None).of_nonempty().publish(np.array([3.0]), np.array([0])) == SUPPRESSED
