"""Tuning: how many moves are worth their cost, and the fitted distribution."""

import numpy as np
import pytest

from pymc_dapper.interweaving.kernels.tuning import (
    DEFAULT_MOVES,
    MOVES_IN_TUNING,
    PASSES,
    Costs,
    beside,
    best_numbers_of_moves,
    counted,
    fit_draws,
    moves_in_tuning,
)
from pymc_dapper.kernels.tuning import forgets_slowly


def costs(n_records):
    """An evaluation that takes a hundredth of the rest of an iteration, where there are many."""
    return Costs(n_records + 50.0, 4 * n_records + 1_000.0, 100 * n_records + 30_000.0)


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


def best(path, evaluations, n_records):
    """How many moves are best, of one kind."""
    numbers, _ = best_numbers_of_moves([path], [evaluations], [costs(n_records)])
    return numbers


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
    [chosen] = best(paths(elsewhere, inside), np.full((400, 4), evaluations), 10_000)
    assert chosen in expected


@pytest.mark.parametrize("seed", range(5))
def test_of_moves_that_leave_next_to_nothing_the_cheapest_are_made(seed):
    """And not those after which an estimate happens to be smallest."""
    cheap = Costs(evaluation=150.0, set_up=8_000.0, rest=450_000.0)
    path = paths(0.9, 0.05, m=500, k=MOVES_IN_TUNING, seed=seed)
    made = np.full((500, MOVES_IN_TUNING), 4)
    [chosen], _ = best_numbers_of_moves([path], [made], [cheap])
    assert 1 <= chosen <= 4


@pytest.mark.parametrize(
    ("evaluation", "expected"), [(1e3, MOVES_IN_TUNING), (5e5, 8), (1e8, DEFAULT_MOVES)]
)
def test_tuning_makes_fewer_moves_that_take_very_long(evaluation, expected):
    assert moves_in_tuning(Costs(evaluation, set_up=8_000.0, rest=500_000.0)) == expected


@pytest.mark.parametrize(("n_evaluations", "fewer"), [(1, False), (2_000, True)])
def test_how_much_less_an_iteration_is_worth_than_in_tuning_is_known(n_evaluations, fewer):
    """By autoregressions: a lag of 0.9 by others, and 0.8 for each move."""
    path, made = paths(0.9, 0.8, m=20_000, k=8), np.full((20_000, 8), n_evaluations)
    [chosen], slower = best_numbers_of_moves([path], [made], [costs(10_000)])
    worth = {k: (1 - 0.9 * 0.8**k) / (1 + 0.9 * 0.8**k) for k in (chosen, 8)}
    assert slower == pytest.approx(worth[8] / worth[chosen], rel=0.1)
    assert (slower > 1.5) == fewer


def test_operations_counted_in_graphs_are_a_part_of_all_costs():
    none, some = counted(0, 0, 0, 100, 1), counted(500, 70, 3, 100, 1)
    assert some.evaluation - none.evaluation == 500
    assert some.set_up - none.set_up == 70
    assert some.rest - none.rest == 3 * PASSES
    assert counted(0, 0, 0, 100, 3).rest > none.rest
    assert counted(0, 0, 0, 200, 1).set_up > none.set_up


def test_a_short_tuning_leaves_the_number_of_moves_alone():
    few = paths(0.0, 0.0, m=10, k=MOVES_IN_TUNING)
    assert best(few, np.ones((10, MOVES_IN_TUNING)), 100) == [DEFAULT_MOVES]


def test_what_never_moves_counts_as_stuck():
    stuck = np.concatenate([paths(0.99, 0.0), np.zeros((400, 5, 1))], axis=-1)
    assert best(stuck, np.full((400, 4), 2), 100) == [0]  # no move would help it


def two_kinds(elsewhere, first, second, m=600, k=4):
    """Parameters that others move, and two kinds of moves: autocorrelations of each parameter."""
    rng = np.random.default_rng(1)
    x, seen = rng.standard_normal(len(elsewhere)), []
    for _ in range(m):
        seen.append([])
        for left in np.array([elsewhere, *[first] * k, *[second] * k]):
            x = left * x + np.sqrt(1 - left**2) * rng.standard_normal(len(left))
            seen[-1].append(x)
    path = np.array(seen)
    affine = rng.standard_normal((m, k + 1, 2))  # affine moves have more that moves
    paths = [path[:, : k + 1], np.concatenate([path[:, k:], affine], axis=-1)]
    return paths, [np.full((m, k), 2)] * 2


@pytest.mark.parametrize(
    ("elsewhere", "first", "second", "expected"),
    [
        ([0.02, 0.02], [0.5, 0.5], [0.5, 0.5], [{0}, {0}]),  # others do it all
        ([0.99, 0.99], [0.5, 0.5], [0.99, 0.99], [{2, 3, 4}, {0}]),  # one kind does
        ([0.99, 0.99], [0.99, 0.99], [0.5, 0.5], [{0}, {2, 3, 4}]),
        ([0.99, 0.99], [0.4, 0.99], [0.99, 0.4], [{1, 2, 3, 4}] * 2),  # each does its own
    ],
)
def test_of_two_kinds_of_moves_those_are_made_that_pay(elsewhere, first, second, expected):
    chosen, _ = best_numbers_of_moves(*two_kinds(elsewhere, first, second), [costs(1_000)] * 2)
    assert all(k in allowed for k, allowed in zip(chosen, expected, strict=True))


def test_a_chain_that_hardly_moves_is_not_left_alone_for_what_its_moves_cost():
    seen = two_kinds([0.8, 0.8], [0.99, 0.99], [0.8, 0.8])
    [_, chosen], _ = best_numbers_of_moves(*seen, [counted(3_000, 19_000, 3_000, 100, 1)] * 2)
    assert chosen > 0


def test_a_parameter_with_a_long_memory_is_seen():
    rng = np.random.default_rng(4)
    noise, path = rng.standard_normal((125, 3)), np.zeros((125, 1))
    for k in range(1, 125):  # worth a ninth
        path[k] = 0.8 * path[k - 1] + 0.6 * rng.standard_normal()
    assert not forgets_slowly(noise)
    assert forgets_slowly(np.concatenate([noise, path], axis=1))


def test_the_fit_has_the_moments_of_many_draws_and_is_usable_for_few():
    rng = np.random.default_rng(0)
    factor = np.array([[2.0, 0.0], [0.9, 1e-3]])
    draws = np.array([3.0, -1.0]) + rng.standard_normal((4000, 2)) @ factor.T
    location, scale, skewness, fitted = fit_draws(draws)
    np.testing.assert_allclose(location, draws.mean(axis=0), atol=0.1 * draws.std(axis=0).min())
    np.testing.assert_allclose(skewness, 0, atol=0.1)
    fitted = scale[:, None] * fitted
    np.testing.assert_allclose(fitted @ fitted.T, np.cov(draws.T), rtol=0.1)
    for few in (draws[:3], np.zeros((3, 2))):
        assert np.all(np.diag(fit_draws(few).factor) > 0)


def test_skewness_is_found_and_made_symmetric():
    """Logarithms of exponential variates, one turned around, and one skewed as moves take it."""
    rng = np.random.default_rng(1)
    logs, normal = np.log(rng.exponential(size=(3000, 2))), rng.standard_normal(3000)
    known = 5 + 0.1 * np.sinh(np.arcsinh(normal) + 0.7)
    fit = fit_draws(np.column_stack([logs[:, 0], -logs[:, 1], known]))
    assert fit.skewness[0] < -0.3
    assert fit.skewness[1] > 0.3
    np.testing.assert_allclose(fit.skewness[2], 0.7, atol=0.1)
    np.testing.assert_allclose(fit.location[2], 5, atol=0.02)
    np.testing.assert_allclose(fit.scale[2], 0.1, rtol=0.1)
    np.testing.assert_allclose(fit.factor @ fit.factor.T, np.eye(3), atol=0.15)


def test_affine_moves_of_noise_begin_independent_of_the_parameters():
    draws = np.random.default_rng(3).normal(size=(200, 2)) @ np.array([[2.0, 0.0], [1.5, 0.3]])
    fit = fit_draws(draws)
    start = np.array([9.0, 9.0, 0.1, -0.2, 0.3])
    begun = beside(fit, start, 25)
    for before, after in zip(fit, begun, strict=True):
        np.testing.assert_array_equal(after[(slice(2),) * after.ndim], before)
    np.testing.assert_array_equal(begun.location[2:], start[2:])
    np.testing.assert_allclose(begun.scale[2:], 0.2)
    np.testing.assert_array_equal(begun.factor[2:], np.eye(5)[2:])
