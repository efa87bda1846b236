"""Brute force is checked by hand calculations: nothing else is as simple as it is."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import beta

from tests.enumeration import conditional_posterior, dirichlet_posterior


def flat(records):
    return 0.0


def test_conditional_posterior_is_prior_times_mechanism_normalised():
    def log_mechanism(records):
        return -abs(2.3 - sum(records))

    posterior = conditional_posterior((0.3, 0.7), log_mechanism, n_records=3)

    states = list(product((0, 1), repeat=3))
    weights = [math.prod((0.3, 0.7)[x] for x in s) * math.exp(log_mechanism(s)) for s in states]
    np.testing.assert_array_equal(posterior.states, states)
    np.testing.assert_allclose(posterior.probabilities, np.array(weights) / sum(weights), 1e-14)


def test_each_record_may_have_a_prior_of_its_own():
    prior = np.array([[0.3, 0.7], [0.5, 0.5], [0.9, 0.1]])

    posterior = conditional_posterior(prior, flat)

    expected = np.einsum("i,j,k->ijk", *prior).ravel()
    np.testing.assert_allclose(posterior.probabilities, expected, rtol=1e-14)


def test_mechanism_sees_the_values_and_states_hold_their_places():
    seen = []

    def log_mechanism(records):
        seen.append(records)
        return 0.0

    posterior = conditional_posterior((0.5, 0.5), log_mechanism, n_records=2, values=("no", "yes"))

    assert seen == [("no", "no"), ("no", "yes"), ("yes", "no"), ("yes", "yes")]
    np.testing.assert_array_equal(posterior.states, [[0, 0], [0, 1], [1, 0], [1, 1]])


def test_ruled_out_records_have_probability_zero():
    def at_least_one(records):
        return 0.0 if any(records) else -math.inf

    posterior = conditional_posterior((0.5, 0.5), at_least_one, n_records=2)

    np.testing.assert_allclose(posterior.probabilities, [0, 1 / 3, 1 / 3, 1 / 3])


def test_mechanism_of_large_negative_log_density_does_not_underflow():
    posterior = conditional_posterior((0.5, 0.5), lambda x: -5000.0 - x[0], n_records=1)

    np.testing.assert_allclose(posterior.probabilities[1], 1 / (1 + math.e))


def test_uniform_prior_makes_every_count_as_likely():
    posterior = dirichlet_posterior((1, 1), 4, flat)

    np.testing.assert_allclose(posterior.count_pmf, np.full((2, 5), 0.2))


def test_flat_mechanism_leaves_the_dirichlet_prior_as_it_was():
    alpha = np.array([0.5, 1.0, 2.5])

    posterior = dirichlet_posterior(alpha, 5, flat)

    prior = beta(alpha, alpha.sum() - alpha)
    np.testing.assert_allclose(posterior.mean, prior.mean(), rtol=1e-12)
    np.testing.assert_allclose(posterior.sd, prior.std(), rtol=1e-12)
    cdfs = [posterior.cdf(k, 0.3) for k in range(3)]
    np.testing.assert_allclose(cdfs, prior.cdf(0.3), rtol=1e-12)


def test_records_seen_exactly_update_the_dirichlet_prior_by_their_counts():
    def exact(records):
        return 0.0 if records == (0, 2, 2) else -math.inf

    posterior = dirichlet_posterior((0.5, 1.0, 2.5), 3, exact)

    np.testing.assert_allclose(posterior.mean, np.array([1.5, 1.0, 4.5]) / 7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: conditional_posterior((0.5, 0.5), flat, n_records=21), r"2\^21 states"),
        (lambda: dirichlet_posterior(np.ones(4), 11, flat), r"4\^11 states"),
        (lambda: conditional_posterior((0.5, 0.5), flat), "n_records is needed"),
        (lambda: conditional_posterior(np.ones((2, 1)), flat, n_records=3), "prior has 2 rows"),
        (lambda: conditional_posterior((0.5, 0.6), flat, n_records=2), "add up to 1"),
        (lambda: conditional_posterior((1.5, -0.5), flat, n_records=2), "add up to 1"),
        (lambda: conditional_posterior(0.5, flat, n_records=2), "prior must have shape"),
        (lambda: conditional_posterior((0.5, 0.5), flat, n_records=0), "at least 1"),
        (
            lambda: conditional_posterior((0.5, 0.5), flat, n_records=2, values=(1, 2, 3)),
            "values must have 2 entries",
        ),
        (
            lambda: conditional_posterior((0.5, 0.5), lambda x: math.nan, n_records=2),
            r"returned nan for the records \(0, 0\)",
        ),
        (
            lambda: conditional_posterior((0.5, 0.5), lambda x: -math.inf, n_records=2),
            "rules out every state",
        ),
        (lambda: dirichlet_posterior((1, 0), 2, flat), "alpha must be positive"),
        (lambda: dirichlet_posterior(1.0, 2, flat), "alpha must be a vector"),
    ],
)
def test_senseless_problems_are_refused_with_the_reason(call, message):
    with pytest.raises(ValueError, match=message):
        call()
