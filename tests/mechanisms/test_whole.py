"""Which statistics hold fractions, and can't get noise that is for whole numbers."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.mechanisms.whole import has_fractions

COUNTS, NUMBERS = pt.lvector("counts"), pt.dvector("numbers")


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        (COUNTS.sum(), False),
        (COUNTS.astype("float64").sum(), False),
        (COUNTS.mean(), True),
        (2 + (COUNTS / 3).sum(), True),
        (pt.stack([COUNTS.sum() / 2, pt.constant(1.0)]), True),
        (pm.Normal.dist(shape=3).sum(), True),
        (pm.Poisson.dist(3, shape=3).sum(), False),
        (pt.round(COUNTS / 3), False),
        # Not known: these may be whole.
        (NUMBERS.sum(), False),
        (np.arange(3.0) @ NUMBERS, False),
    ],
)
def test_quotients_and_real_draws_hold_fractions(statistic, expected):
    assert has_fractions(statistic) == expected
