"""Counts keep their place in the step of the distribution function that they lie in."""

import pymc as pm
import pytest
from scipy import stats

from tests.interweaving.moving import assert_steps_are_kept


def negative_binomial(n, p):
    return stats.nbinom(n, p)


COUNTS = {
    "Poisson": (pm.Poisson.dist, stats.poisson, (2.5,), (4.1,)),
    "Poisson, large": (pm.Poisson.dist, stats.poisson, (900.0,), (1300.0,)),
    "Binomial": (pm.Binomial.dist, stats.binom, (12.0, 0.3), (12.0, 0.6)),
    "NegativeBinomial": (
        lambda n, p, **k: pm.NegativeBinomial.dist(n=n, p=p, **k),
        negative_binomial,
        (2.5, 0.3),
        (1.7, 0.6),
    ),
}


@pytest.mark.parametrize("family", COUNTS)
def test_counts_move_to_the_step_that_a_point_in_theirs_lies_in(family):
    assert_steps_are_kept(*COUNTS[family])
