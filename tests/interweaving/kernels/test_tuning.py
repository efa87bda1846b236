"""What is learnt in tuning: how many moves pay, and where they lead."""

import numpy as np
import pytest

from pymc_dapper.interweaving.kernels.tuning import (
    DEFAULT_MOVES,
    MAX_MOVES,
    best_number_of_moves,
    fit_draws,
    moves_waste_time,
)


def paths(elsewhere, inside, m=400, k=4, seed=0):
    """An autoregressive parameter, moved by others and then k times; each in units of its sd."""
    rng = np.random.default_rng(seed)
    result = np.empty((m, k + 1, 1))
    x = rng.standard_normal()
    for t in range(m):
        x = elsewhere * x + np.sqrt(1 - elsewhere**2) * rng.standard_normal()
        result[t, 0] = x
        for i in range(1, k + 1):
            x = inside * x + np.sqrt(1 - inside**2) * rng.standard_normal()
            result[t, i] = x
    return result


@pytest.mark.parametrize(
    ("elsewhere", "inside", "evaluations", "expected"),
    [
        (0.0, 0.2, 2, {0}),  # others do it all
        (0.99, 0.0, 2, {1}),  # one move does it all
        (0.99, 0.6, 2, {3, 4}),  # it takes several
        (0.7, 0.97, 30, {0}),  # moves are short, and cost much
        (1.0, 0.5, 2, {2, 3, 4}),  # nobody else moves it
        (1.0, 0.99, 50, {1, 2, 3, 4}),
    ],
)
def test_as_many_moves_are_made_as_pay(elsewhere, inside, evaluations, expected):
    chosen = best_number_of_moves(paths(elsewhere, inside), np.full((400, 4), evaluations), 10_000)
    assert chosen in expected


@pytest.mark.parametrize(
    ("elsewhere", "evaluations", "n_records", "expected"),
    [
        (0.2, 20, 100_000, True),  # other steps do well, and moves take long
        (0.95, 20, 100_000, False),  # the chain crawls without
        (0.2, 1, 100_000, False),  # moves are cheap: tuning can go on
        (0.2, 10, 100, False),  # the rest of an iteration takes as long
    ],
)
def test_moves_are_given_up_early_only_where_they_waste_time(
    elsewhere, evaluations, n_records, expected
):
    made = np.full((100, 4), evaluations)
    assert moves_waste_time(paths(elsewhere, 0.5, m=100), made, n_records) == expected


def test_a_short_tuning_leaves_the_number_of_moves_alone():
    few = paths(0.0, 0.0, m=10, k=MAX_MOVES)
    assert best_number_of_moves(few, np.ones((10, MAX_MOVES)), 100) == DEFAULT_MOVES


def test_what_never_moves_counts_as_stuck():
    stuck = np.concatenate([paths(0.99, 0.0), np.zeros((400, 5, 1))], axis=-1)
    assert best_number_of_moves(stuck, np.full((400, 4), 2), 100) == 0  # no move would help it


def test_the_fit_has_the_moments_of_many_draws_and_is_usable_for_few():
    rng = np.random.default_rng(0)
    factor = np.array([[2.0, 0.0], [0.9, 1e-3]])
    draws = np.array([3.0, -1.0]) + rng.standard_normal((4000, 2)) @ factor.T
    mean, fitted = fit_draws(draws)
    np.testing.assert_allclose(mean, draws.mean(axis=0))
    shrinkage = 4000 / 4007
    np.testing.assert_allclose((fitted @ fitted.T)[0, 1], shrinkage * np.cov(draws.T)[0, 1])
    np.testing.assert_allclose(np.diag(fitted @ fitted.T), np.var(draws, axis=0, ddof=1))
    for few in (draws[:3], np.zeros((3, 2))):
        assert np.all(np.diag(fit_draws(few).factor) > 0)
