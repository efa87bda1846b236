"""Priors of true values, as users write them."""

import numpy as np
import pytest

from pymc_dapper.answers.prior import Prior, read_prior


@pytest.mark.parametrize(
    ("prior", "told"),
    [
        ("flat", "counts, flat on 0, 1, 2 and so on"),
        ("smooth", "smooth: gamma-Poisson, concentration unknown"),
        (range(1, 51), "counts, flat on 1, ..., 50"),
        ((0, 2.5), "real numbers, flat from 0 to 2.5"),
        ((0, np.array([2.0, 3.0])), "real numbers, flat from 0 to 3, each within its own limits"),
    ],
)
def test_it_says_what_it_is(prior, told):
    assert read_prior(prior, (2,)).describe(total=False) == told


def test_given_a_total_it_says_so():
    assert "given what is known of sums" in Prior("flat").describe(total=True)
    assert "Dirichlet-multinomial" in Prior("smooth").describe(total=True)


@pytest.mark.parametrize(
    "prior",
    [
        None,
        "Flat",
        3,
        [0, 1],
        (1, 0),
        (0, np.inf),
        (0, np.nan),
        range(0),
        range(0, 9, 2),
        (0, 1, 2),
    ],
)
def test_others_are_refused(prior):
    with pytest.raises((TypeError, ValueError), match="prior"):
        read_prior(prior, (2,))


def test_limits_must_fit_the_cells():
    with pytest.raises(ValueError, match="prior: its limits must be numbers, or arrays of shape"):
        read_prior((0, np.array([1.0, 2, 3])), (2,))
